"""Labelled pairs and a published model -> another published model, measured beside the one it started from."""

import json
import logging
import math
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from core.errors import ManifestError
from core.golden import GOLDEN_TEXTS, INTEGER_TOLERANCE, TOLERANCE, GoldenPairs
from core.manifest import MANIFEST_NAME, Figure, Manifest, Provenance, TrainingData
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND
from semblance.tables.labelled_pairs import Kind, read_own
from training.data.pairs import Pair
from training.objectives.metrics import calibration_error
from training.objectives.tasks import PairTokens
from training.publish.folders import environment, finish
from training.publish.runtime import PublishedModel
from training.train.folder import RecipeChangedError, read_settings, write_settings
from training.train.loop import Result, train
from workbench.imports.calibration import sample
from workbench.imports.model import check_id
from workbench.tuning.material import TuningData, from_pairs
from workbench.tuning.measure import MAIN, figures
from workbench.tuning.networks import SiamesePair
from workbench.tuning.objective import TuneObjective
from workbench.tuning.plan import TRAINED_TOKENS, TuningPlan, plan_for
from workbench.tuning.read_back import Start, TuneRefused, WorseThanStart, look_for, read_start
from workbench.tuning.write import write_tuned

logger = logging.getLogger(__name__)

PUBLISHED = Path("models")
SETTINGS = "tune.json"
ROUNDING = 1e-6  # a figure that is lower by no more is not worse
_CLOSE = 10 * TOLERANCE  # of a golden raw score and that of the weights read back: sums come in another order


@dataclass(frozen=True)
class TuningOptions:
    """What was asked for."""

    start: str  # id of a published model, or ID/VERSION
    model_id: str
    models: Path  # where the new one goes; models to start from are looked for here, and in `models`
    runs: Path
    pairs: Path
    columns: tuple[str, ...] | None = None
    scale: tuple[float, float] | None = None
    seed: int = 1
    epochs: int | None = None
    rate: float | None = None
    even_if_worse: bool = False
    read_as: FileFormat = AS_FOUND  # encoding and separator of the pairs


@dataclass(frozen=True)
class TuningResult:
    """What was done. The figures of the held-out part are by name: the tuned model's, and its start's."""

    folder: Path
    material: TuningData
    cut: int  # pairs of which a text was cut
    result: Result
    after: Mapping[str, float]
    before: Mapping[str, float]


def tune(options: TuningOptions) -> TuningResult:
    """Read, split, train or go on, calibrate, measure, publish.

    Raises:
        PairsError: the file cannot be used.
        TuneRefused: the model cannot be tuned so.
        WorseThanStart: the tuned model is worse than its start.
        RecipeChangedError: a run of that name was begun with other settings.
        FileExistsError: a model of that id was not made by tuning.
        ManifestError, ArtifactError, ParityError: of the model folders.
    """
    target = _target(options)
    origin = look_for((options.models, PUBLISHED), options.start)
    folder = options.runs / f"tune-{options.model_id}" / f"seed-{options.seed}"
    start = read_start(origin)
    read = read_own(options.pairs, options.columns, scale=options.scale, read_as=options.read_as)
    if read.kind == "entailment":
        raise TuneRefused(f"{options.pairs}: labels of entailment are not learnt: ask minilm-cross, or import a model")
    prompts = start.manifest.prompts
    if read.kind == "ranking" and prompts is not None and {prompts.query, prompts.passage} != {prompts.text}:
        raise TuneRefused(f"{options.start}: its queries and passages have prompts of their own: give scores or labels")
    for note in read.notes:
        logger.info("%s", note)
    material = from_pairs(options.pairs, read, start.tokenizer, options.seed)
    plan = plan_for(start, len(material.parts.train), options.epochs, options.rate)
    settings = _settings(options, start, material, plan)
    _check_there(target, settings)
    _record(folder, settings)
    logger.info("%s", _described(material))
    objective = TuneObjective(
        SiamesePair(start.network),
        material.kind,
        material.part("train"),
        material.part("dev"),
        start.tokenizer,
        prompt=start.prompt,
        max_tokens=min(TRAINED_TOKENS, start.manifest.limits.max_tokens),
        batch_size=plan.schedule.batch_size,
        seed=options.seed,
    )
    _agrees(origin, start, objective)
    try:
        result = train(objective, plan.optimiser, plan.schedule, folder, seed=options.seed)
    except FloatingPointError as error:
        raise TuneRefused(f"{error} (--rate)") from None
    held_out = material.part("held_out")
    before = _figures_of(PublishedModel(origin), material.kind, held_out)
    with tempfile.TemporaryDirectory(prefix="tune-") as temporary:
        draft = Path(temporary) / options.model_id
        draft.mkdir()
        manifest = write_tuned(
            start,
            objective,
            material.scale,
            draft,
            tokenizer=start.manifest.path_of(origin, start.manifest.tokenizer),
            title=f"{start.manifest.title}; tuned on {material.name}",
            training_data=_training_data(start, material),
            provenance=_provenance(options, start, material, plan),
        )
        tuned = PublishedModel(draft, manifest)
        after = _figures_of(tuned, material.kind, held_out)
        main = MAIN[material.kind]
        worse = after[main] < before[main] - ROUNDING
        if worse and not options.even_if_worse:
            raise WorseThanStart(
                f"not published: on {len(held_out):,} held-out pairs {main} is {after[main]:.4f}, that of "
                f"{options.start} is {before[main]:.4f} (--even-if-worse publishes it)"
            )
        manifest = _with_comparison(manifest, main, after, before, result)
        measured = _as_figures(material, after)
        finish(draft, manifest, measured, GOLDEN_TEXTS, options.models, target)
    limit = start.manifest.limits.max_tokens
    cut = sum(start.tokenizer.encode(text, limit).truncated for p in material.pairs for text in (p.a, p.b))
    return TuningResult(target, material, cut, result, after, before)


def _target(options: TuningOptions) -> Path:
    """Where the model goes, which may replace one of the same id only if that was tuned too."""
    check_id(options.model_id, options.models, TuneRefused)
    if options.rate is not None and not 0 < options.rate < math.inf:
        raise TuneRefused(f"--rate {options.rate:g}: expected a number above 0")
    if not 0 <= options.seed < 1 << 63:
        raise TuneRefused(f"--seed {options.seed}: expected a number from 0 to {(1 << 63) - 1}")
    target = options.models / options.model_id
    try:
        there = Manifest.load(target).provenance.recipe if (target / MANIFEST_NAME).is_file() else {}
    except ManifestError as error:
        raise FileExistsError(f"{error}: remove that folder, or give another --id") from error
    if any(target.glob("*")) and "tuned" not in there:
        raise FileExistsError(f"{target} was not made by tuning: give another --id")
    return target


def _check_there(target: Path, settings: Mapping[str, JsonValue]) -> None:
    """Refuse to replace what was tuned from another start or on another file."""
    there = Manifest.load(target).provenance.recipe["tuned"] if (target / MANIFEST_NAME).is_file() else settings
    assert isinstance(there, Mapping)
    if any(there.get(name) != settings[name] for name in ("from", "file")):
        raise FileExistsError(f"{target} was tuned from another model or on another file: give another --id")


def _settings(options: TuningOptions, start: Start, material: TuningData, plan: TuningPlan) -> dict[str, JsonValue]:
    found = {
        "from": start.manifest.id,
        "fingerprint": start.manifest.fingerprint,
        "file": material.digest,
        "kind": material.kind,
        "columns": options.columns,
        "scale": material.scale,
        "seed": options.seed,
        "optimiser": asdict(plan.optimiser),
        "schedule": asdict(plan.schedule),
    }
    plain: dict[str, JsonValue] = json.loads(json.dumps(found))  # tuples become lists
    return plain


def _record(folder: Path, settings: Mapping[str, JsonValue]) -> None:
    """Write the settings of a run, or refuse to go on with another one's."""
    path = folder / SETTINGS
    if path.is_file():
        begun = read_settings(path)
        if changed := sorted(name for name in {*begun, *settings} if begun.get(name) != settings.get(name)):
            raise RecipeChangedError(
                f"{folder} was begun with another {', '.join(changed)}: move it away, or give another --id or --runs"
            )
    folder.mkdir(parents=True, exist_ok=True)
    write_settings(path, settings)


def _described(material: TuningData) -> str:
    sizes = [
        f"{len(rows):,} to {what}" for rows, what in zip(material.parts, ("train", "choose", "measure"), strict=True)
    ]
    lines = [f"{material.name}: {material.rows:,} rows, {len(material.pairs):,} pairs ({', '.join(sizes)} on)"]
    lines += [f"left out: {material.place} {fault.line}: {fault.reason}" for fault in material.faults]
    return "\n".join(lines)


def _agrees(folder: Path, start: Start, objective: TuneObjective) -> None:
    """Hold what was read back against the model's golden answers; raises TuneRefused."""
    golden = GoldenPairs.load(start.manifest.path_of(folder, start.manifest.golden)).pairs
    asked = [pair for pair in golden if start.tokenizer.encode(pair.a, 1).ids and start.tokenizer.encode(pair.b, 1).ids]
    objective.model.eval()
    pairs = [Pair(start.prompt + pair.a, start.prompt + pair.b) for pair in asked]
    tokens = PairTokens(pairs, start.tokenizer, start.manifest.limits.max_tokens)
    wanted = np.array([pair.raw_score for pair in asked], dtype=np.float64)
    off = float(np.abs(objective.answers(tokens) - wanted).max())
    integers = start.manifest.network_config is not None and start.storage != "float32"
    if not off <= (INTEGER_TOLERANCE if integers else _CLOSE):  # NaN fails too
        raise TuneRefused(
            f"{start.manifest.id}: its weights, read back, give other answers than its golden pairs (by up to "
            f"{off:.1e}): it cannot be tuned"
        )


def _figures_of(model: PublishedModel, kind: Kind, pairs: Sequence[Pair]) -> dict[str, float]:
    """Figures of a published model, through its graphs."""
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    said = model.similarity(a, b)
    measured = figures(kind, said.raw_score, pairs)
    if kind == "label":
        right = [(score > 0.5) == (pair.label == "1") for score, pair in zip(said.score, pairs, strict=True)]
        measured["calibration_error"] = calibration_error(np.maximum(said.score, 1 - said.score), right)
    return measured


def _with_comparison(
    manifest: Manifest, main: str, after: Mapping[str, float], before: Mapping[str, float], result: Result
) -> Manifest:
    """The manifest with what its card shows: both models' figures on the held-out part."""
    tuned = manifest.provenance.recipe["tuned"]
    assert isinstance(tuned, dict)
    said: dict[str, JsonValue] = {
        **tuned,
        "decided_by": main,
        "best_epoch": result.best_epoch,
        "held_out": {name: {"tuned": value, "start": before.get(name)} for name, value in after.items()},
    }
    recipe = manifest.provenance.recipe | {"tuned": said}
    return manifest.model_copy(update={"provenance": manifest.provenance.model_copy(update={"recipe": recipe})})


def _as_figures(material: TuningData, after: Mapping[str, float]) -> list[Figure]:
    rows = len(material.parts.held_out)
    return [
        Figure(task="similarity", corpus=material.name, split="held-out", metric=metric, value=value, rows=rows)
        for metric, value in after.items()
    ]


def _training_data(start: Start, material: TuningData) -> tuple[TrainingData, ...]:
    own = TrainingData(
        name=material.name,
        use="train: similarity; a tenth for the choice of the epoch and the calibration",
        rows=len(material.pairs) - len(material.parts.held_out),
        licence="as the owner of the file says",
        source="a local file",
    )
    calibrating = (sample().credit(),) if material.kind == "label" else ()
    return tuple(dict.fromkeys([*start.manifest.training_data, own, *calibrating]))


def _provenance(options: TuningOptions, start: Start, material: TuningData, plan: TuningPlan) -> Provenance:
    recipe = start.manifest.provenance.recipe
    counts: dict[str, JsonValue] = {
        "rows": material.rows,
        "left_out": len(material.faults),
        **{name: len(rows) for name, rows in zip(material.parts._fields, material.parts, strict=True)},
    }
    tuned = {"counts": counts, **_settings(options, start, material, plan), "name": material.name}
    return Provenance(
        created=datetime.now(UTC).date(),
        recipe={"architecture": recipe.get("architecture"), "tuned": tuned},
        commands=(*start.manifest.provenance.commands, _command(options)),
        seed=options.seed,
        environment=environment(),
    )


def _command(options: TuningOptions) -> str:
    words = ["python", "-m", "workbench", "tune", options.pairs.name]
    words += ["--from", options.start, "--id", options.model_id, "--seed", str(options.seed)]
    for column in options.columns or ():
        words += ["--column", column]
    if options.scale is not None:
        words += ["--scale", *(f"{end:g}" for end in options.scale)]
    words += ["--epochs", str(options.epochs)] if options.epochs is not None else []
    words += ["--rate", f"{options.rate:g}"] if options.rate is not None else []
    words += ["--even-if-worse"] if options.even_if_worse else []
    return shlex.join(words)
