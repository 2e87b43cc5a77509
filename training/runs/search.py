"""Hyper-parameter search with Optuna, on development scores only; no test set is read.

Trials are runs in `runs/search/<recipe>/trial-<n>/`, with the study as a journal beside them. A killed search resumes,
its interrupted trial too. Trials are recorded in `analyses/searches/<recipe>.json`.
"""

import json
import logging
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState
from pydantic import JsonValue

from training.recipes.recipe import Recipe
from training.records import Record, RecordFile
from training.runs.run import run
from training.runs.spaces import Choice, Range, SearchError, SearchSpace, setting_of, with_setting

logger = logging.getLogger(__name__)

FOLDER = "folder"  # user attribute of a trial; a trial that resumes an interrupted one has the same
_STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


class TriedSettings(Record):
    """One trial."""

    number: int
    state: str  # complete, pruned (stopped early, below the median of the others) or failed (infinite loss)
    settings: dict[str, float]
    development: float | None  # the selection score of its best epoch; of a pruned one, of its last
    epochs: int
    seconds: float


class SearchRecord(RecordFile):
    """analyses/searches/<recipe>.json: every trial of a search, and the settings that did best."""

    recipe: str
    command: str
    written: date
    sampler: str
    seed: int  # of the sampler and of every trial's run
    epochs: int
    pairs: int | None
    space: list[dict[str, JsonValue]]
    present: dict[str, float]  # the recipe's own settings; the first trial where they lie within the space
    trials: list[TriedSettings]
    best: int | None  # number of the best complete trial

    @property
    def stem(self) -> str:
        """The recipe's name."""
        return self.recipe

    def trial(self, number: int) -> TriedSettings:
        """A trial by its number."""
        return next(each for each in self.trials if each.number == number)


def search(
    recipe: Recipe,
    space: SearchSpace,
    runs: Path,
    teacher: Path | None,
    records: Path,
    *,
    trials: int,
    seed: int,
    epochs: int | None = None,
    pairs: int | None = None,
) -> SearchRecord:
    """Search until `trials` trials have ended, those of earlier calls included; the record is written after each.

    Tree-structured Parzen estimator, or every combination of the values once where a space has choices alone (a grid).
    A trial below the median of the others after an epoch is pruned.

    Args:
        epochs: of a trial, instead of the space's.
        pairs: training items of a trial, instead of the space's.

    Raises:
        SearchError: the folder has a search with another seed, space or length of trials, or pairs are given for a
            recipe without a limit of pairs.
        RunMissing, CorpusError: as for any run.
        KeyError: the space has a setting that the recipe lacks.
    """
    epochs, pairs = epochs or space.epochs, pairs or space.pairs
    trials = min(trials, len(space.cells()) or trials)
    base = shortened(recipe, epochs, pairs)
    folder = runs / "search" / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    study = _open_study(folder, recipe, base, space, seed)

    def record() -> SearchRecord:
        tried = _tried(study)
        complete = [each for each in tried if each.state == "complete" and each.development is not None]
        return SearchRecord(
            recipe=recipe.name,
            command=f"python -m training search {recipe.name} --trials {trials} --seed {seed} --epochs {epochs}"
            + (f" --pairs {pairs}" if pairs else ""),
            written=datetime.now(UTC).date(),
            sampler=("every combination" if space.cells() else "TPE")
            + f", median pruning after each epoch (optuna {version('optuna')})",
            seed=seed,
            epochs=epochs,
            pairs=pairs,
            space=[_as_json(each) for each in space.settings],
            present={each.setting: setting_of(recipe, each.setting) for each in space.settings},
            trials=tried,
            best=max(complete, key=lambda each: each.development or 0.0).number if complete else None,
        )

    def run_trial(trial: Trial, folder: Path) -> None:
        candidate = base
        for each in space.settings:
            candidate = with_setting(candidate, each.setting, _suggest(trial, each))
        logger.info("%s: %s", folder, trial.params)

        def watch(epoch: int, development: float) -> None:
            trial.report(development, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            result = run(candidate, runs, teacher, seed, folder=folder, watch=watch)
            study.tell(trial, result.best["selection"])
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)
        except FloatingPointError:
            study.tell(trial, state=TrialState.FAIL)
        for weights in folder.glob("*.pt"):  # only the score of a trial is kept
            weights.unlink()

    while len(_tried(study)) < trials:
        trial = study.ask()
        if FOLDER not in trial.user_attrs:
            trial.set_user_attr(FOLDER, f"trial-{trial.number}")
        run_trial(trial, folder / trial.user_attrs[FOLDER])
        record().save(records)
    final = record()
    final.save(records)
    return final


def shortened(recipe: Recipe, epochs: int, pairs: int | None) -> Recipe:
    """The recipe of a trial: with these epochs, on at most `pairs` training items.

    Raises:
        SearchError: pairs are given and its data has no limit.
    """
    short = replace(recipe, schedule=replace(recipe.schedule, epochs=epochs))
    if pairs is None:
        return short
    data = recipe.data.limited(pairs)
    if data is None:
        raise SearchError(f"recipe {recipe.name} always takes all of its data: leave out --pairs")
    return replace(short, data=data)


def _open_study(folder: Path, recipe: Recipe, base: Recipe, space: SearchSpace, seed: int) -> optuna.Study:
    """The study of a folder. Queued first: interrupted trials; in a new study the recipe's settings, then a grid."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(folder / "study.journal"))),
        study_name=recipe.name,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        load_if_exists=True,
    )
    # With the same seed again, the sampler would repeat its first settings.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))
    settings = {**base.as_json(), "reaches": "", "publication": None}
    options = {"seed": seed, "space": [_as_json(each) for each in space.settings], "recipe": settings}
    begun = study.user_attrs.get("options")
    if begun is None:
        study.set_user_attr("options", options)
        present = {each.setting: setting_of(recipe, each.setting) for each in space.settings}
        if all(each.holds(present[each.setting]) for each in space.settings):
            study.enqueue_trial(present)
        for cell in space.cells():
            if cell != present:
                study.enqueue_trial(cell)
    elif begun != json.loads(json.dumps(options)):
        changed = ", ".join(
            sorted(name for name in options if begun.get(name) != json.loads(json.dumps(options[name])))
        )
        raise SearchError(f"{folder} holds a search with another {changed}: move it away to start afresh")
    for trial in _latest(study).values():
        if trial.state is TrialState.RUNNING:
            study.enqueue_trial(trial.params, user_attrs={FOLDER: trial.user_attrs[FOLDER]})
    return study


def _latest(study: optuna.Study) -> dict[str, FrozenTrial]:
    """The last trial of each folder: an interrupted trial stays `running` in the journal, and another continues it."""
    return {each.user_attrs[FOLDER]: each for each in study.trials if FOLDER in each.user_attrs}


def _suggest(trial: Trial, setting: Range | Choice) -> float:
    if isinstance(setting, Range):
        return trial.suggest_float(setting.setting, setting.low, setting.high, log=setting.log)
    value = trial.suggest_categorical(setting.setting, setting.values)
    assert isinstance(value, int | float)
    return value


def _tried(study: optuna.Study) -> list[TriedSettings]:
    return [
        TriedSettings(
            number=int(folder.removeprefix("trial-")),
            state=_STATES[trial.state],
            settings=trial.params,
            development=trial.value,
            epochs=max(trial.intermediate_values, default=0),
            seconds=round(trial.duration.total_seconds(), 1) if trial.duration else 0.0,
        )
        for folder, trial in _latest(study).items()
        if trial.state in _STATES
    ]


def _as_json(setting: Range | Choice) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = json.loads(json.dumps({"kind": type(setting).__name__, **asdict(setting)}))
    return plain
