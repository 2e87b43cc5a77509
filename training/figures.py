"""Measure a model folder on the test sets, through ONNX Runtime and the contract: what the service would answer."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, JsonValue

from contract.manifest import Figure
from contract.scores import to_unit
from contract.scoring import most_likely
from training.corpora import pairwise, sick, transfer
from training.corpora.pairwise import Corpus
from training.metrics import binary, graded, labelled, ranked
from training.pairs import Pair
from training.recipe import RecipeError
from training.runtime import PublishedModel


class FigureFile(BaseModel):
    """Figures of one run, with all it takes to get them again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: str
    seed: int
    storage: str  # of the word table: float32, float16 or int8
    command: str
    measured: date
    figures: tuple[Figure, ...]
    settings: dict[str, JsonValue] | None = None  # of the recipe then; None in files older than this field

    def save(self, folder: Path) -> Path:
        """Write `<recipe>-seed<n>-<storage>.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.recipe}-seed{self.seed}-{self.storage}.json"
        path.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        return path


def transfer_figures(model: PublishedModel) -> list[Figure]:
    """Pearson and Spearman of the raw score (the cosine, as in the papers) on every transfer set, and the means."""
    figures: list[Figure] = []
    by_year: dict[str, list[float]] = {}
    for name in transfer.NAMES:
        pairs = transfer.read(name)
        measured = graded(_raw_scores(model, pairs), _ratings(pairs))
        corpus, split = _names(name)
        for metric in ("pearson", "spearman"):
            figures.append(_similarity(corpus, split, metric, measured[metric], len(pairs)))
        by_year.setdefault(corpus, []).append(measured["pearson"])
    total = sum(map(len, by_year.values()))
    for corpus, values in by_year.items():
        if corpus != "SICK":
            figures.append(_similarity(corpus, "mean of sets", "pearson", float(np.mean(values)), len(values)))
    everything = [value for values in by_year.values() for value in values]
    figures.append(_similarity("transfer", "mean of sets", "pearson", float(np.mean(everything)), total))
    return figures


def sick_figures(model: PublishedModel) -> list[Figure]:
    """The SemEval-2014 measures on SICK test: r, rho and MSE of the rating; accuracy and macro-F1 of the label.

    Of a calibrated model also r, rho and MSE without the calibration.
    """
    pairs = sick.read("test")
    a, b = [p.a for p in pairs], [p.b for p in pairs]
    figures = []
    if model.manifest.similarity is not None:
        task, scores = model.manifest.similarity, model.similarity(a, b)
        assert scores.rating is not None
        assert task.label_scale is not None
        for metric, value in graded(scores.rating, _ratings(pairs)).items():
            figures.append(_similarity("SICK", "test", metric, value, len(pairs)))
        if task.calibration is not None:  # what the raw score gives, stretched over the scale
            low, high = task.label_scale
            stretched = low + (high - low) * to_unit(scores.raw_score, *task.raw_range)
            for metric, value in graded(stretched, _ratings(pairs)).items():
                figures.append(_similarity("SICK", "test", f"{metric}_uncalibrated", value, len(pairs)))
    if model.manifest.entailment is not None:
        predicted = [most_likely(p) for p in model.entailment(a, b)]
        for metric, value in labelled(predicted, [p.label or "" for p in pairs]).items():
            figures.append(
                Figure(task="entailment", corpus="SICK", split="test", metric=metric, value=value, rows=len(pairs))
            )
    return figures


def split_figures(model: PublishedModel, pairs: Sequence[Pair]) -> list[Figure]:
    """Pearson, Spearman and MSE on the test part of the STS split: over all its pairs at once, as the paper has it.

    Beside it the mean of Pearson r over the sets of that part.
    """
    task = model.manifest.similarity
    assert task is not None
    rating = model.similarity([p.a for p in pairs], [p.b for p in pairs]).rating
    assert rating is not None
    gold, groups = _ratings(pairs), np.array([p.group for p in pairs])
    corpus = "STS 2012-2015 split"
    figures = [_similarity(corpus, "test", metric, value, len(pairs)) for metric, value in graded(rating, gold).items()]
    sets = [graded(rating[groups == name], gold[groups == name])["pearson"] for name in np.unique(groups)]
    return [*figures, _similarity(corpus, "mean of sets", "pearson", float(np.mean(sets)), len(sets))]


def test_parts(corpus: Corpus) -> dict[str, tuple[Pair, ...]]:
    """What an interaction model is measured on.

    Raises:
        RecipeError: the corpus has no test part.
    """
    if not (tests := pairwise.read(corpus).test):
        raise RecipeError(f"{corpus} has no test part to measure on")
    return tests


def pairwise_figures(model: PublishedModel, corpus: Corpus) -> list[Figure]:
    """The measures of an interaction model's task on the test parts of its corpus, as the papers give them.

    Ratings: Pearson r and Spearman rho; of SICK also MSE; of STS 2014 r of each set and, as the competition had it,
    their mean weighted by pairs. Answers: MAP and MRR, and the number of questions behind them. Paraphrases: accuracy
    and F1 of what is more probable than not.

    Raises:
        RecipeError: the corpus has no test part.
    """
    if corpus == "sick":
        return sick_figures(model)
    figures: list[Figure] = []
    for part, pairs in test_parts(corpus).items():
        if corpus == "msrp":
            predicted = (_raw_scores(model, pairs) > 0.5).tolist()
            name, split, measured = "MSRP", part, binary(predicted, [p.label == "1" for p in pairs])
        elif corpus in ("wikiqa", "trecqa", "answers"):
            relevant, questions = [p.label == "1" for p in pairs], [p.group for p in pairs]
            name, split = _ANSWERS[part if corpus == "answers" else f"{corpus}-{part}"]
            measured = ranked(_raw_scores(model, pairs), relevant, questions)
        else:
            name, split = ("STS 2012", "MSRvid") if corpus == "msrvid" else ("STS 2014", part)
            measured = graded(_raw_scores(model, pairs), _ratings(pairs))
            del measured["mse"]
        figures += [_similarity(name, split, metric, value, len(pairs)) for metric, value in measured.items()]
    if corpus == "sts2014":
        r = [(f.value, f.rows) for f in figures if f.metric == "pearson"]
        total = sum(rows for _, rows in r)
        mean = sum(value * rows for value, rows in r) / total
        figures.append(_similarity("STS 2014", "weighted mean", "pearson", mean, total))
    return figures


# Parts of answer selection: corpus and split as figures name them.
_ANSWERS = {
    "wikiqa-test": ("WikiQA", "test"),
    "wikiqa": ("WikiQA", "test"),
    "trecqa-raw": ("TrecQA", "raw"),
    "trecqa-clean": ("TrecQA", "clean"),
}


def _raw_scores(model: PublishedModel, pairs: Sequence[Pair]) -> np.ndarray:
    return model.similarity([p.a for p in pairs], [p.b for p in pairs]).raw_score


def _ratings(pairs: Sequence[Pair]) -> np.ndarray:
    return np.array([p.target for p in pairs], dtype=np.float64)


def _names(name: str) -> tuple[str, str]:
    if name == "sick-test":
        return "SICK", "test"
    year, split = name.split("/")
    return f"STS {year.removesuffix('-test')}", split


def _similarity(corpus: str, split: str, metric: str, value: float, rows: int) -> Figure:
    return Figure(task="similarity", corpus=corpus, split=split, metric=metric, value=round(value, 6), rows=rows)
