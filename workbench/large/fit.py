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
from core.manifest import MANIFEST_NAME, BiEncoder, Figure, Limits, Manifest, Provenance, TrainingData
from core.ranking import ConfidenceFit
from core.scoring import cosine
from training.data import pairwise, tasks
from training.data.pairs import Pair
from training.data.readers import labelled_pairs
from training.families.heads import HeadCalibrations, fit_multiple, fit_weight, task_fields
from training.families.interaction import PAIR
from training.families.siamese import ENCODER
from training.families.transformer import MAX_TOKENS
from training.families.words import TOKENIZER
from training.models import CrossEncoderConfig
from training.models.transformer import MEAN
from training.objectives.metrics import binary, graded, ranked
from training.objectives.supervised import LABELS
from training.publish.calibrate import fit_platt, fit_temperature
from training.publish.folders import GOLDEN, environment, finish
from training.publish.publish import training_data_for
from training.publish.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Recipe
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
    SERVED_AS,
    Said,
    describe,
    fetched,
    put,
    write_cross,
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
    with tempfile.TemporaryDirectory(prefix="large-") as temporary:
        work = Path(temporary)
        encoder = write_encoder(source, work, said)
        files = write_cross(source, recipe, runs, work, encoder, said)
        made = Provenance(
            created=datetime.now(UTC).date(),
            recipe=recipe.as_json(),
            commands=(COMMAND, command),
            seed=seed,
            environment=environment(),
        )
        manifest = cross_manifest(recipe, files, training_data_for(recipe), made)
        manifest = fitted(PublishedModel(work / CROSS_ID, manifest), manifest, most, said)
        measured = cross_figures(PublishedModel(work / CROSS_ID, manifest), most)
        for figure in measured:
            said(f"{figure.corpus} {figure.metric} {figure.value:.4f}")
        finish(work / CROSS_ID, manifest, measured, GOLDEN_TEXTS, work, work / CROSS_ID)
        imported = Manifest.load(work / ENCODER_ID)
        credits = (
            MPNET.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"}),
            sample().credit(),
        )
        fit, auc = confidence(PublishedModel(work / ENCODER_ID), imported, seed, command)
        said(f"{ENCODER_ID}: AUC of confidence {auc:.3f}, calibration error {fit.calibration_error:.3f}")
        update = {"title": _TITLE, "training_data": credits, "confidence": (fit,), "languages": ("en",)}
        describe(work, ENCODER_ID, imported.model_copy(update=update))
        put(work, models)
    for name in (ENCODER_ID, CROSS_ID):
        (kept / name).mkdir(parents=True, exist_ok=True)
        for file in (MANIFEST_NAME, GOLDEN):
            shutil.copyfile(models / name / file, kept / name / file)


def cross_manifest(
    recipe: Recipe, files: Mapping[str, Any], data: Sequence[TrainingData], made: Provenance
) -> Manifest:
    """That of the cross-encoder before anything is fitted; it blends the cosine of `mpnet` into two of its tasks."""
    architecture = recipe.architecture
    assert isinstance(architecture, CrossEncoderConfig)
    ends = np.cumsum(list(architecture.heads.values())).tolist()
    columns = {
        SERVED_AS.get(name, name): (end - width, end)
        for (name, width), end in zip(architecture.heads.items(), ends, strict=True)
    }
    blends = {"similarity": (0.5, 0.5), "relevance": (1.0, 1.0)}
    return Manifest(
        id=CROSS_ID,
        title=_CROSS_TITLE,
        architecture=architecture.name,
        family="interaction",
        tokenizer=TOKENIZER,
        golden=GOLDEN,
        fingerprint="0" * 64,
        limits=Limits(max_tokens=MAX_TOKENS),
        bi_encoder=BiEncoder(graph=ENCODER, dim=architecture.bert.hidden, pooling=MEAN),
        training_data=tuple(data),
        figures=(),
        languages=("en",),
        provenance=made,
        **task_fields(PAIR, columns, HeadCalibrations(), blends, raw=True),
        **files,
    )


def fitted(model: PublishedModel, manifest: Manifest, most: int, said: Said) -> Manifest:
    """The blends and calibrations of a cross-encoder, on samples of development parts."""

    def outputs(task: str, pairs: Sequence[Pair]) -> Floats:
        columns = manifest.task(task).columns  # type: ignore[arg-type]
        assert columns is not None
        found = model.outputs(PAIR, [p.a for p in pairs], [p.b for p in pairs])
        return found[:, slice(*columns)].astype(np.float64)

    def cosines(pairs: Sequence[Pair]) -> Floats:
        limit = manifest.limits.max_tokens
        a, b = (
            model.embed_ids([model.tokenizer.encode(text, limit).ids for text in texts])
            for texts in ([p.a for p in pairs], [p.b for p in pairs])
        )
        return np.maximum(cosine(a, b), 0.0)

    labels = [*tasks.development("snli")[:most], *tasks.development("multinli")[:most]]
    temperature = fit_temperature(
        outputs("entailment", labels), np.array([LABELS.index(pair.label or "") for pair in labels])
    )
    same = tasks.development("msrp")[:most]
    paraphrase = fit_platt(outputs("paraphrase", same)[:, 0], np.array([pair.label == "1" for pair in same]))

    rated = tasks.development("stsb")[:most]
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    weight, similarity = fit_weight(outputs("similarity", rated)[:, 0], cosines(rated), gold)
    kinds = [_groups(pairs, most) for pairs in tasks.answers_of_three_kinds().values()]
    multiple, relevance = fit_multiple([(pairs, outputs("relevance", pairs)[:, 0], cosines(pairs)) for pairs in kinds])
    said(f"{CROSS_ID}: temperature {temperature}, {weight:.2f} of the cosine in similarity, {multiple:g} in relevance")
    updates: Mapping[str, dict[str, Any]] = {
        "entailment": {"temperature": temperature},
        "similarity": {"calibration": similarity, "blend": (1.0 - weight, weight)},
        "paraphrase": {"calibration": paraphrase},
        "relevance": {"calibration": relevance, "blend": (1.0, multiple)},
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
