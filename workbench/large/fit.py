"""What is kept of the large models: calibrations, figures and confidence, fitted and measured on SEMBLANCE_DATA.

Only the machine that fits needs the data. All sets are samples of `most` pairs, as these models cost five times the
others; a figure says of how many.
"""

import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.golden import GOLDEN_TEXTS
from core.manifest import MANIFEST_NAME, Figure, Manifest, Provenance
from core.ranking import ConfidenceFit
from training.data import pairwise, tasks
from training.data.pairs import Pair
from training.data.readers import labelled_pairs
from training.families.heads import RAW_RANGE, HeadCalibrations, fit_relevance
from training.families.interaction import PAIR
from training.families.siamese import STS_SCALE
from training.families.transformer import write_cross_encoder
from training.families.words import TOKENIZER
from training.objectives.metrics import binary, graded, ranked
from training.objectives.supervised import LABELS
from training.publish.calibrate import fit_centred_isotonic, fit_platt, fit_temperature
from training.publish.folders import GOLDEN, assemble, environment, finish
from training.publish.publish import training_data_for
from training.publish.runtime import PublishedModel
from training.recipes import find
from training.recipes.sources.credits import MPNET
from training.recipes.sources.figures import entailment_figures
from training.recipes.teacher import SERVED
from workbench.confidence import Drawn, draw, fit_of, joined, rows_of
from workbench.imports.calibration import sample
from workbench.large.build import (
    COMMAND,
    CROSS_ID,
    ENCODER_ID,
    KEPT,
    Said,
    describe,
    fetched,
    merged,
    write_encoder,
)

Floats = npt.NDArray[np.float64]
_TITLE = "all-mpnet-base-v2 as it was published: a transformer of 109 million weights, here in int8"
_CROSS_TITLE = "all-mpnet-base-v2 that reads pairs: similarity, entailment, paraphrase, relevance"


def fit_large(
    runs: Path, models: Path, most: int, seed: int, said: Said, *, teacher: str = SERVED, kept: Path = KEPT
) -> None:
    """Build both models, fit and measure them, and keep what was found.

    Args:
        runs: where the published weights are.
        models: where the models go.
        most: pairs of each set.
        seed: of the FAQs that are drawn.
        said: called with a line about each step.
        teacher: name of the teacher's recipe.
        kept: where manifests and golden answers go.

    Raises:
        CorpusError: a corpus is missing or malformed.
        WeightsError, ParityError: as in `build_large`.
    """
    recipe, command = find(teacher), f"python -m workbench fit-large --pairs {most} --seed {seed}"
    source = fetched(recipe, runs, said)
    if not (models / ENCODER_ID).is_dir():
        write_encoder(source, models, said)
    with tempfile.TemporaryDirectory(prefix="large-") as temporary:
        draft = Path(temporary) / CROSS_ID
        draft.mkdir()
        fields = write_cross_encoder(merged(recipe, runs), source / TOKENIZER, draft, CROSS_ID, HeadCalibrations())
        manifest = assemble(
            draft,
            fields,
            title=_CROSS_TITLE,
            architecture=recipe.architecture.name,
            training_data=training_data_for(recipe),
            provenance=Provenance(
                created=datetime.now(UTC).date(),
                recipe=recipe.as_json(),
                commands=(COMMAND, command),
                seed=seed,
                environment=environment(),
            ),
            languages=("en",),
        )
        manifest = with_calibrations(manifest, calibrations(PublishedModel(draft, manifest), manifest, most))
        said(f"{CROSS_ID}: calibrated; temperature {manifest.entailment and manifest.entailment.temperature}")
        measured = cross_figures(PublishedModel(draft, manifest), most)
        for figure in measured:
            said(f"{figure.corpus} {figure.metric} {figure.value:.4f}")
        finish(draft, manifest, measured, GOLDEN_TEXTS, models, models / CROSS_ID)
    encoder = Manifest.load(models / ENCODER_ID)
    credits = (
        MPNET.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"}),
        sample().credit(),
    )
    (fit, auc) = confidence(PublishedModel(models / ENCODER_ID), encoder, seed, command)
    said(f"{ENCODER_ID}: AUC of confidence {auc:.3f}, calibration error {fit.calibration_error:.3f}")
    known = encoder.model_copy(
        update={"title": _TITLE, "training_data": credits, "confidence": (fit,), "languages": ("en",)}
    )
    describe(models, ENCODER_ID, known)
    for name in (ENCODER_ID, CROSS_ID):
        (kept / name).mkdir(parents=True, exist_ok=True)
        for file in (MANIFEST_NAME, GOLDEN):
            shutil.copyfile(models / name / file, kept / name / file)


def calibrations(model: PublishedModel, manifest: Manifest, most: int) -> HeadCalibrations:
    """As those of other cross-encoders (`training.families.heads`), on samples of the same development parts."""

    def outputs(task: str, pairs: Sequence[Pair]) -> Floats:
        first, last = _columns(manifest)[task]
        found = model.outputs(PAIR, [p.a for p in pairs], [p.b for p in pairs])
        return found[:, first:last].astype(np.float64)

    labels = [*tasks.development("snli")[:most], *tasks.development("multinli")[:most]]
    rated, same = tasks.development("stsb")[:most], tasks.development("msrp")[:most]
    raw = 1 / (1 + np.exp(-outputs("similarity", rated)[:, 0]))
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    kinds = [_groups(pairs, most) for pairs in tasks.answers_of_three_kinds().values()]
    return HeadCalibrations(
        temperature=fit_temperature(
            outputs("entailment", labels), np.array([LABELS.index(pair.label) for pair in labels])
        ),
        similarity=fit_centred_isotonic(raw, gold, raw_range=RAW_RANGE, target_range=STS_SCALE),
        paraphrase=fit_platt(outputs("paraphrase", same)[:, 0], np.array([pair.label == "1" for pair in same])),
        relevance=fit_relevance([(outputs("relevance", pairs)[:, 0], pairs) for pairs in kinds]),
    )


def _columns(manifest: Manifest) -> dict[str, tuple[int, int]]:
    found: dict[str, Any] = {name: manifest.task(name).columns for name in manifest.tasks}
    return found


def with_calibrations(manifest: Manifest, fitted: HeadCalibrations) -> Manifest:
    """A cross-encoder's manifest with the calibrations of its tasks."""
    updates: Mapping[str, dict[str, Any]] = {
        "entailment": {"temperature": fitted.temperature},
        "similarity": {"calibration": fitted.similarity},
        "paraphrase": {"calibration": fitted.paraphrase},
        "relevance": {"calibration": fitted.relevance},
    }
    return manifest.model_copy(
        update={name: manifest.task(name).model_copy(update=update) for name, update in updates.items()}  # type: ignore[arg-type]
    )


def cross_figures(model: PublishedModel, most: int) -> list[Figure]:
    """Test parts of MSRP and WikiQA; development parts of STS-B, SNLI, MultiNLI and SciTail."""
    found: list[Figure] = []

    def add(task: Any, corpus: str, split: str, rows: int, measured: Mapping[str, float]) -> None:
        found.extend(
            Figure(task=task, corpus=corpus, split=split, metric=name, value=round(value, 6), rows=rows)
            for name, value in measured.items()
        )

    rated = random.Random(1).sample(labelled_pairs.read("stsb-dev"), most)
    raw = model.similarity([p.a for p in rated], [p.b for p in rated]).raw_score
    add("similarity", "STS-B", "development", most, graded(raw, np.array([p.target for p in rated], dtype=np.float64)))
    same = random.Random(1).sample(pairwise.read("msrp").test["test"], most)
    predicted = model.similarity([p.a for p in same], [p.b for p in same], "paraphrase").score > 0.5
    add("paraphrase", "MSRP", "test", most, binary(predicted.tolist(), [p.label == "1" for p in same]))
    asked = _groups(pairwise.read("wikiqa").test["test"], 2 * most)
    raw = model.similarity([p.a for p in asked], [p.b for p in asked], "relevance").raw_score
    measured = ranked(raw, [p.label == "1" for p in asked], [p.group for p in asked])
    add("relevance", "WikiQA", "test", len(asked), measured)
    sets = {
        "SNLI": tasks.measured(labelled_pairs.read("snli-dev")),
        "MultiNLI": tasks.measured(labelled_pairs.read("multinli")),
        "SciTail": labelled_pairs.read("scitail-dev"),
    }
    for corpus, pairs in sets.items():
        found += entailment_figures(model, corpus, random.Random(1).sample(list(pairs), most))
    return found


def _groups(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Whole questions with a right and a wrong answer, drawn until there are so many pairs."""
    groups: dict[object, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    drawn = [group for group in groups.values() if len({pair.label for pair in group}) > 1]
    random.Random(1).shuffle(drawn)
    found: list[Pair] = []
    for group in drawn:
        if found and len(found) + len(group) > most:
            break
        found += group
    return found


def confidence(model: PublishedModel, manifest: Manifest, seed: int, command: str) -> tuple[ConfidenceFit, float]:
    """How probable it is that the first of its rankings is right, as of the main models, and the area under the ROC."""
    drawn = draw(seed)
    by_source = [joined([rows_of(faq, _cosines(model, faq), None) for faq in faqs]) for faqs in drawn.values()]
    return fit_of(manifest, None, by_source, command)


def _cosines(model: PublishedModel, faq: Drawn) -> Floats:
    texts, questions = (model.embed(list(each)).astype(np.float64) for each in (faq.texts, faq.questions))
    found: Floats = questions @ texts.T / np.outer(*(np.linalg.norm(each, axis=1) for each in (questions, texts)))
    return found
