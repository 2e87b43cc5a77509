"""The search on toy corpora: by development score alone, recorded, resumable."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import toys
from training.__main__ import app
from training.architectures import LSTMConfig
from training.objectives.transfer import MarginConfig
from training.pairs import Pair
from training.recipes import RECIPES, find
from training.recipes.recipe import OptimiserConfig, Recipe, Schedule
from training.results.report.searches import searches
from training.runs import search as module
from training.runs.search import SearchRecord, search, shortened
from training.runs.spaces import (
    SPACES,
    Choice,
    Range,
    SearchError,
    SearchSpace,
    find_space,
    setting_of,
    with_setting,
)
from training.sources.rated import SickPairs
from training.sources.transfer import ParaphrasePairs

TOY = Recipe(
    name="toy-lstm",
    reaches="nothing",
    table=toys.TABLE,
    architecture=LSTMConfig(),
    data=ParaphrasePairs(limit=40),
    objective=MarginConfig(margin=0.4),
    optimiser=OptimiserConfig(learning_rate=0.01, embedding_learning_rate=0.01),
    schedule=Schedule(epochs=9, batch_size=8),
)
SPACE = SearchSpace(
    "toy-lstm",
    (Range("optimiser.learning_rate", 1e-3, 1e-1, log=True), Choice("objective.margin", (0.2, 0.4))),
    epochs=2,
    pairs=16,
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs with a word table; test sets must not be read."""
    toys.table().save(tmp_path / "runs" / "tables" / "toy")
    rated: Sequence[Pair] = toys.RATED

    def unread(*arguments: object) -> list[Pair]:
        raise AssertionError("a search read a test set")

    def development_only(year: str) -> dict[str, Sequence[Pair]]:
        assert year == "2016-test"
        return {"toy": rated}

    monkeypatch.setattr("training.corpora.mixtures.paraphrase_pairs", lambda limit, seed: toys.pairs(limit))
    monkeypatch.setattr("training.corpora.readers.sts.read_year", development_only)
    monkeypatch.setattr("training.corpora.transfer.read", unread)
    monkeypatch.setattr("training.corpora.readers.sick.read", unread)
    return tmp_path / "runs"


def go(runs: Path, trials: int, **options: int) -> SearchRecord:
    return search(TOY, SPACE, runs, None, runs / "searches", trials=trials, **{"seed": 3, **options})


def test_trials_are_short_runs_and_the_record_tells_each(runs: Path) -> None:
    record = go(runs, trials=4)
    assert SearchRecord.load(runs / "searches" / "toy-lstm.json") == record
    assert [each.number for each in record.trials] == [0, 1, 2, 3]
    assert record.trials[0].settings == record.present == {"optimiser.learning_rate": 0.01, "objective.margin": 0.4}
    for each in record.trials:
        folder = runs / "search" / "toy-lstm" / f"trial-{each.number}"
        settings = json.loads((folder / "recipe.json").read_text())
        assert settings["optimiser"]["learning_rate"] == each.settings["optimiser.learning_rate"]
        assert settings["objective"]["margin"] == each.settings["objective.margin"]
        assert (settings["data"]["limit"], settings["schedule"]["epochs"], settings["seed"]) == (16, 2, 3)
        assert each.development == json.loads((folder / "result.json").read_text())["best"]["selection"]
        assert not list(folder.glob("*.pt"))
    best = max(record.trials, key=lambda each: each.development or 0.0)
    assert record.best == best.number
    assert record.command == "python -m training search toy-lstm --trials 4 --seed 3 --epochs 2 --pairs 16"
    line = searches(runs / "searches").splitlines()[-1]
    scores = f"| 4 complete | {record.trials[0].development:.4f} | {best.development:.4f} |"
    assert line.startswith(f"| [toy-lstm](searches/toy-lstm.json) {scores} optimiser.learning_rate ")


def test_the_same_seed_searches_alike_and_another_call_goes_on(runs: Path, tmp_path: Path) -> None:
    whole = go(runs, trials=3)
    assert [each.state for each in go(runs, trials=3).trials] == ["complete"] * 3
    longer = go(runs, trials=5)
    assert longer.trials[:3] == whole.trials
    assert len({tuple(each.settings.values()) for each in longer.trials}) == 5
    toys.table().save(tmp_path / "again" / "tables" / "toy")
    again = search(TOY, SPACE, tmp_path / "again", None, tmp_path / "again", trials=3, seed=3)
    assert [each.settings for each in again.trials] == [each.settings for each in whole.trials]
    assert [each.development for each in again.trials] == [each.development for each in whole.trials]


def test_a_space_of_choices_alone_is_searched_cell_by_cell(runs: Path) -> None:
    margins, rates = (0.2, 0.4), (0.01, 0.02)
    grid = SearchSpace("toy-lstm", (Choice("objective.margin", margins), Choice("optimiser.learning_rate", rates)), 1)
    search(TOY, grid, runs, None, runs / "searches", trials=2, seed=3, pairs=16)
    record = search(TOY, grid, runs, None, runs / "searches", trials=9, seed=3, pairs=16)
    assert record.sampler.startswith("every combination")
    tried = [
        tuple(each.settings[name] for name in ("objective.margin", "optimiser.learning_rate")) for each in record.trials
    ]
    assert tried[0] == (0.4, 0.01)  # the recipe's own first
    assert sorted(tried) == sorted((margin, rate) for margin in margins for rate in rates)


def test_an_interrupted_trial_is_resumed_in_its_folder(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = module.run

    def killed_after_an_epoch(*arguments, watch, **named):  # type: ignore[no-untyped-def]
        def watch_and_die(epoch: int, development: float) -> None:
            watch(epoch, development)
            raise KeyboardInterrupt

        return original(*arguments, watch=watch_and_die, **named)

    go(runs, trials=1)
    monkeypatch.setattr(module, "run", killed_after_an_epoch)
    with pytest.raises(KeyboardInterrupt):
        go(runs, trials=2)
    assert (runs / "search" / "toy-lstm" / "trial-1" / "checkpoint.pt").is_file()
    monkeypatch.setattr(module, "run", original)
    record = go(runs, trials=2)
    assert [(each.number, each.state) for each in record.trials] == [(0, "complete"), (1, "complete")]
    log = (runs / "search" / "toy-lstm" / "trial-1" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in log] == [0, 1, 2]


def test_an_endless_loss_ends_its_trial_only(runs: Path) -> None:
    space = replace(SPACE, settings=(Choice("objective.margin", (float("inf"), 0.4)),))
    record = search(TOY, space, runs, None, runs, trials=4, seed=1)
    failed = [each for each in record.trials if each.state == "failed"]
    assert len(failed) in (1, 2, 3)
    assert all(each.settings["objective.margin"] == float("inf") for each in failed)
    assert record.best is not None
    assert record.best not in {each.number for each in failed}


def test_a_trial_behind_the_others_is_pruned(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.5, 0.6, 0.5, 0.6, 0.5, 0.6, 0.1])
    original = module.run

    def scored(*arguments, watch, **named):  # type: ignore[no-untyped-def]
        score = next(scores)
        return original(*arguments, watch=lambda epoch, _: watch(epoch, score), **named)

    monkeypatch.setattr(module, "run", scored)
    record = go(runs, trials=7)
    assert [each.state for each in record.trials] == ["complete"] * 6 + ["pruned"]
    assert (record.trials[-1].epochs, record.trials[-1].development) == (1, 0.1)


@pytest.mark.parametrize(
    ("option", "what"), [({"seed": 4}, "seed"), ({"pairs": 8}, "recipe"), ({"epochs": 1}, "recipe")]
)
def test_a_search_is_not_resumed_with_other_options(runs: Path, option: dict[str, int], what: str) -> None:
    go(runs, trials=1)
    with pytest.raises(SearchError, match=f"holds a search with another {what}: move it away to start afresh"):
        go(runs, trials=2, **option)


def test_pairs_are_refused_where_there_is_no_limit_and_never_add_to_it() -> None:
    with pytest.raises(SearchError, match="recipe avg-sick always takes all of its data: leave out --pairs"):
        shortened(find("avg-sick"), epochs=1, pairs=100)
    assert isinstance(shortened(find("avg-sick"), epochs=1, pairs=None).data, SickPairs)
    assert shortened(TOY, epochs=1, pairs=100).data == ParaphrasePairs(limit=40)


@pytest.mark.parametrize("name", SPACES)
def test_every_space_is_of_settings_its_recipe_has_and_can_take(name: str) -> None:
    recipe, space = find_space(name)
    changed = recipe
    for each in space.settings:
        value = each.low if isinstance(each, Range) else each.values[-1]
        changed = with_setting(changed, each.setting, value)
        assert setting_of(changed, each.setting) == value
        assert not each.holds(-1.0)
    assert changed != recipe
    assert shortened(recipe, space.epochs, space.pairs).schedule.epochs == space.epochs


def test_unknown_settings_and_spaces_are_told_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="no setting 'speed': OptimiserConfig has name, learning_rate"):
        with_setting(TOY, "optimiser.speed", 1.0)
    with pytest.raises(KeyError, match=r"no setting 'name\.length': str has no settings"):
        setting_of(TOY, "name.length")
    with pytest.raises(
        KeyError, match="recipe 'gran-5' has no search space; those that have: avg-near, avg-paraphrase"
    ):
        find_space("gran-5")


def test_the_command_shows_the_best_trials(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, "toy-lstm", TOY)
    monkeypatch.setitem(SPACES, "toy-lstm", SPACE)
    arguments = ["search", "toy-lstm", "--trials", "2", "--runs", str(runs), "--records", str(runs / "searches")]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0
    assert "2 trials in" in ended.output
    assert (runs / "searches" / "toy-lstm.json").is_file()
