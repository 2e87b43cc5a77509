"""Figures on the test sets. A `PublishedModel` computes scores with ONNX Runtime, as the service does."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from core.labels import most_likely
from core.manifest import Figure, Manifest, ScoreTask
from core.scoring import CalibratedScores, to_unit
from training.data import pairwise, transfer
from training.data.pairs import Pair
from training.data.pairwise import Corpus
from training.data.readers import labelled_pairs, sst
from training.data.readers.labelled_pairs import NOT_ENTAILMENT
from training.objectives.metrics import binary, calibration_error, graded, labelled, ranked


class PairScorer(Protocol):
    """A model that scores pairs as the service does, such as `training.publish.runtime.PublishedModel`."""

    @property
    def manifest(self) -> Manifest:
        """The description of the model."""

    def similarity(self, a: Sequence[str], b: Sequence[str], name: ScoreTask = "similarity") -> CalibratedScores:
        """Score n pairs, as the task of that name does."""

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n pairs."""

    def classification(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Label probabilities of n texts."""


def transfer_figures(model: PairScorer) -> list[Figure]:
    """Pearson and Spearman of the raw score (the cosine, as in the papers) on every transfer set, and the means."""
    figures: list[Figure] = []
    by_year: dict[str, list[float]] = {}
    for name in transfer.NAMES:
        of_set, pearson = _graded(model, *_names(name), transfer.read(name))
        figures += of_set
        by_year.setdefault(of_set[0].corpus, []).append(pearson)
    total = sum(map(len, by_year.values()))
    for corpus, values in by_year.items():
        if corpus != "SICK":
            figures.append(_similarity(corpus, "mean of sets", "pearson", float(np.mean(values)), len(values)))
    everything = [value for values in by_year.values() for value in values]
    figures.append(_similarity("transfer", "mean of sets", "pearson", float(np.mean(everything)), total))
    return figures


def transfer_set_figures(model: PairScorer, name: str) -> list[Figure]:
    """Pearson and Spearman of the raw score on one set of `training.data.transfer`."""
    return _graded(model, *_names(name), transfer.read(name))[0]


def _graded(model: PairScorer, corpus: str, split: str, pairs: Sequence[Pair]) -> tuple[list[Figure], float]:
    """Pearson and Spearman of the raw score, and Pearson r before rounding."""
    measured = graded(_raw_scores(model, pairs), _ratings(pairs))
    metrics = ("pearson", "spearman")
    figures = [_similarity(corpus, split, metric, measured[metric], len(pairs)) for metric in metrics]
    return figures, measured["pearson"]


def sick_figures(model: PairScorer) -> list[Figure]:
    """The SemEval-2014 measures on SICK test: r, rho and MSE of the rating; accuracy and macro-F1 of the label.

    Of a calibrated model also r, rho and MSE without the calibration.
    """
    pairs = labelled_pairs.read("sick-test")
    a, b = [p.a for p in pairs], [p.b for p in pairs]
    figures = []
    if model.manifest.similarity is not None:
        task, scores = model.manifest.similarity, model.similarity(a, b)
        assert scores.rating is not None
        assert task.label_scale is not None
        for metric, value in graded(scores.rating, _ratings(pairs)).items():
            figures.append(_similarity("SICK", "test", metric, value, len(pairs)))
        if task.calibration is not None:  # the raw score, scaled linearly to the rating scale
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


def sentiment_figures(model: PairScorer) -> list[Figure]:
    """Accuracy and macro-F1 of the label on SST test, and the calibration error of its probability.

    A model of three labels is measured on all sentences, and on those that are not neutral by the likelier of the other
    two labels, as the papers are.
    """
    own = model.manifest.classification
    assert own is not None
    tasks: tuple[sst.Labels, ...] = ("binary", "ternary") if len(own.labels) == 3 else ("binary",)
    figures = []
    for task in tasks:
        rows, names = sst.read("test", task), sst.LABELS[task]
        answers = model.classification([text for text, _ in rows])
        probabilities = np.array([[each[name] for name in names] for each in answers])
        probabilities /= probabilities.sum(1, keepdims=True)
        predicted, gold = [names[i] for i in probabilities.argmax(1)], [names[label] for _, label in rows]
        right = [said == label for said, label in zip(predicted, gold, strict=True)]
        sure = probabilities.max(1).tolist()
        measured = {**labelled(predicted, gold), "calibration_error": calibration_error(sure, right)}
        corpus = "SST" if task == "binary" else "SST with neutral"
        figures += [
            Figure(task="classification", corpus=corpus, split="test", metric=name, value=round(v, 6), rows=len(rows))
            for name, v in measured.items()
        ]
    return figures


def split_figures(model: PairScorer, pairs: Sequence[Pair]) -> list[Figure]:
    """Pearson, Spearman and MSE on the test part of the STS split: over all its pairs at once, as in the paper.

    Also the mean of Pearson r over the sets of that part.
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


def phrase_figures(model: PairScorer) -> list[Figure]:
    """Spearman rho of the raw score on PPDB's rated phrase pairs (Wieting et al. 2016, Table 3), and Pearson r."""
    return _graded(model, "PPDB phrases", "rated", labelled_pairs.read("ppdb-phrases"))[0]


def rated_figures(model: PairScorer, corpus: str, pairs: Sequence[Pair]) -> list[Figure]:
    """Pearson and Spearman of the raw score on the development part of a rated corpus."""
    return _graded(model, corpus, "development", pairs)[0]


def entailment_figures(model: PairScorer, corpus: str, pairs: Sequence[Pair]) -> list[Figure]:
    """Accuracy and macro-F1 of the most likely label on a development part, and the expected calibration error.

    Where the pairs have two classes, entailment or not, neutral and contradiction are one.
    """
    odds = model.entailment([p.a for p in pairs], [p.b for p in pairs])
    gold = [p.label or "" for p in pairs]
    predicted = [most_likely(each) for each in odds]
    sure = [max(each.values()) for each in odds]
    if NOT_ENTAILMENT in gold:
        sure = [max(each["entailment"], 1 - each["entailment"]) for each in odds]
        predicted = ["entailment" if each["entailment"] > 0.5 else NOT_ENTAILMENT for each in odds]
    right = [said == label for said, label in zip(predicted, gold, strict=True)]
    measured = {**labelled(predicted, gold), "ece": calibration_error(sure, right)}
    return [
        Figure(task="entailment", corpus=corpus, split="development", metric=metric, value=value, rows=len(pairs))
        for metric, value in measured.items()
    ]


def pairwise_figures(model: PairScorer, corpus: Corpus, task: ScoreTask = "similarity") -> list[Figure]:
    """The metrics of an interaction model's task on the test parts of its corpus, as in the papers.

    Ratings: Pearson r and Spearman rho; of SICK also MSE; of STS 2014 r of each set and, as the competition had it,
    their mean weighted by pairs. Answers: MAP and MRR, and the number of questions behind them. Paraphrases: accuracy
    and F1 of what is more probable than not. No figures for a corpus without a test part. The pairs are scored by
    the model's `task`.
    """
    if corpus == "sick":
        return sick_figures(model)
    figures: list[Figure] = []
    for part, pairs in pairwise.read(corpus).test.items():
        if corpus == "msrp":
            predicted = (_scores(model, pairs, task) > 0.5).tolist()
            name, split, measured = "MSRP", part, binary(predicted, [p.label == "1" for p in pairs])
        elif corpus in ("wikiqa", "trecqa", "answers"):
            relevant, questions = [p.label == "1" for p in pairs], [p.group for p in pairs]
            name, split = _ANSWERS[part if corpus == "answers" else f"{corpus}-{part}"]
            measured = ranked(_raw_scores(model, pairs, task), relevant, questions)
        else:
            name, split = ("STS 2012", "MSRvid") if corpus == "msrvid" else ("STS 2014", part)
            figures += _graded(model, name, split, pairs)[0]
            continue
        figures += [_similarity(name, split, metric, value, len(pairs), task) for metric, value in measured.items()]
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


def _raw_scores(model: PairScorer, pairs: Sequence[Pair], task: ScoreTask = "similarity") -> np.ndarray:
    return model.similarity([p.a for p in pairs], [p.b for p in pairs], task).raw_score


def _scores(model: PairScorer, pairs: Sequence[Pair], task: ScoreTask) -> np.ndarray:
    return model.similarity([p.a for p in pairs], [p.b for p in pairs], task).score


def _ratings(pairs: Sequence[Pair]) -> np.ndarray:
    return np.array([p.target for p in pairs], dtype=np.float64)


def _names(name: str) -> tuple[str, str]:
    if name in ("sick-test", "pit2015-test"):
        return name.removesuffix("-test").upper(), "test"
    year, split = name.split("/")
    return f"STS {year.removesuffix('-test')}", split


def _similarity(
    corpus: str, split: str, metric: str, value: float, rows: int, task: ScoreTask = "similarity"
) -> Figure:
    return Figure(task=task, corpus=corpus, split=split, metric=metric, value=round(value, 6), rows=rows)
