"""Measure a model folder on every evaluation set in the data folder."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.manifest import Figure
from training.data.files import CorpusMissing
from training.data.readers import sst, sts
from training.publish.runtime import PublishedModel
from training.recipes.sources.figures import (
    PairScorer,
    pairwise_figures,
    phrase_figures,
    sentiment_figures,
    sick_figures,
    transfer_set_figures,
)

logger = logging.getLogger(__name__)

SICK_SCALE = (1.0, 5.0)


@dataclass
class Evaluation:
    """Measured figures, and the names of the sets that are not in the data folder."""

    figures: list[Figure] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def evaluate_model(folder: Path, only: Sequence[str] = ()) -> Evaluation:
    """Measure a model folder through ONNX Runtime and the contract, as the service answers.

    Args:
        folder: has `manifest.json`; shared files are beside it, as in `models/`.
        only: measure the sets whose name contains one of these; empty: all of them.

    Raises:
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        CorpusError: a file is malformed.
    """
    model = PublishedModel(folder)
    model.manifest.verify(folder)
    found = Evaluation()
    for name, measure in evaluation_sets(model):
        if only and not any(part in name for part in only):
            continue
        try:
            figures = measure()
        except CorpusMissing:
            found.missing.append(name)
            continue
        found.figures += figures
        logger.info("%s: %s", name, "  ".join(f"{f.metric} {f.value:.4f}" for f in figures))
    return found


def evaluation_sets(model: PairScorer) -> Iterator[tuple[str, Callable[[], list[Figure]]]]:
    """Every set that fits the model's tasks: its name and a function that measures it.

    Relatedness: STS 2012 to 2016 and PIT-2015 by the raw score; SICK by the rating where the model rates 1..5. Phrases:
    PPDB's rated pairs, by models that embed each text alone. Answers:
    WikiQA and TrecQA, ranked by the raw score. Paraphrases: MSRP, where the raw score is a probability. Entailment:
    SICK. Labels of sentences: SST, where they are its own.
    """
    task, labels = model.manifest.similarity, model.manifest.classification
    if labels is not None and labels.labels in (sst.LABELS["binary"], sst.LABELS["ternary"]):
        yield "sst", lambda: sentiment_figures(model)
    if task is None and model.manifest.entailment is None:
        return
    if task is None or task.label_scale == SICK_SCALE:
        yield "sick", lambda: sick_figures(model)
    else:
        yield "sick", lambda: transfer_set_figures(model, "sick-test")
    if task is None:
        return
    names = [f"{year}/{name}" for year, sets in sts.SETS.items() if year.endswith("test") for name in sets]
    for name in [*names, "pit2015-test"]:
        yield f"sts-{name}" if "/" in name else name, lambda name=name: transfer_set_figures(model, name)  # type: ignore[misc]
    if model.manifest.family == "siamese":
        yield "ppdb-phrases", lambda: phrase_figures(model)
    yield "wikiqa", lambda: pairwise_figures(model, "wikiqa")
    yield "trecqa", lambda: pairwise_figures(model, "trecqa")
    if task.raw_range == (0.0, 1.0) and task.label_scale is None:
        yield "msrp", lambda: pairwise_figures(model, "msrp")
