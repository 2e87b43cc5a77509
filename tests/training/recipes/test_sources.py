"""Sources of pairs and sentences, and the figures on each corpus for a model whose scores are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.manifest import Figure, SimilarityTask
from core.scoring import CalibratedScores, read_similarity
from training.data import pairwise
from training.data.hard import GROUP
from training.data.pairs import Pair
from training.data.pairwise import Corpus, CorpusParts
from training.data.readers import sst
from training.objectives.metrics import graded, ranked
from training.recipes.sources import tasks as source
from training.recipes.sources.figures import entailment_figures, pairwise_figures
from training.recipes.sources.labelled import SSTSentences
from training.recipes.sources.tasks import TaskPairs


class Scored:
    """Says of every pair the number that its second text is."""

    def __init__(self, low: float, high: float) -> None:
        scale = None if high == 1 else (low, high)
        self.task = SimilarityTask(graph="pair.onnx", raw_range=(low, high), label_scale=scale, symmetric=True)

    def similarity(self, a: list[str], b: list[str], name: str = "similarity") -> CalibratedScores:
        self.asked = name
        return read_similarity(self.task, np.array([float(text) for text in b]))

    def entailment(self, premises: list[str], hypotheses: list[str]) -> list[dict[str, float]]:
        """The number is the probability of entailment; neutral has two thirds of the rest."""
        return [
            {"entailment": p, "neutral": (1 - p) * 2 / 3, "contradiction": (1 - p) / 3} for p in map(float, hypotheses)
        ]


def rated(count: int, seed: int) -> tuple[Pair, ...]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 6, count)
    return tuple(Pair("a", f"{target + rng.normal():.3f}", float(target)) for target in targets)


def answers(seed: int) -> tuple[Pair, ...]:
    rng = np.random.default_rng(seed)
    return tuple(Pair("q ?", f"{rng.random():.3f}", None, str(i % 4 // 3), f"q{i // 4}") for i in range(12))


def measured(
    monkeypatch: pytest.MonkeyPatch, corpus: Corpus, test: dict[str, tuple[Pair, ...]], *model_and_task: Any
) -> list[Figure]:
    monkeypatch.setattr(pairwise, "read", {corpus: CorpusParts((), (), test)}.__getitem__)
    high = 5.0 if corpus in ("msrvid", "sts2014") else 1.0
    return pairwise_figures(*(model_and_task[:1] or [Scored(0.0, high)]), corpus, *model_and_task[1:])


def found(figures: list[Figure]) -> dict[tuple[str, str, str], float]:
    return {(f.corpus, f.split, f.metric): f.value for f in figures}


def scores(pairs: tuple[Pair, ...]) -> list[float]:
    return [float(pair.b) for pair in pairs]


def test_the_mean_of_sts_2014_weighs_a_set_by_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {"images": rated(40, 1), "OnWN": rated(10, 2)}
    figures = measured(monkeypatch, "sts2014", sets)
    r = {name: graded(scores(pairs), [p.target or 0.0 for p in pairs])["pearson"] for name, pairs in sets.items()}
    assert abs(r["images"] - r["OnWN"]) > 1e-3
    values = found(figures)
    for name in sets:
        assert values["STS 2014", name, "pearson"] == pytest.approx(r[name], abs=1e-6)
    mean = values["STS 2014", "weighted mean", "pearson"]
    assert mean == pytest.approx(0.8 * r["images"] + 0.2 * r["OnWN"], abs=1e-6)
    assert next(f.rows for f in figures if f.split == "weighted mean") == 50


@pytest.mark.parametrize(
    ("corpus", "parts"),
    [
        ("wikiqa", {"test": ("WikiQA", "test")}),
        ("trecqa", {"raw": ("TrecQA", "raw"), "clean": ("TrecQA", "clean")}),
        (
            "answers",
            {"wikiqa": ("WikiQA", "test"), "trecqa-raw": ("TrecQA", "raw"), "trecqa-clean": ("TrecQA", "clean")},
        ),
    ],
)
def test_answers_are_ranked_and_their_questions_counted(
    monkeypatch: pytest.MonkeyPatch, corpus: Corpus, parts: dict[str, tuple[str, str]]
) -> None:
    tests = {part: answers(seed) for seed, part in enumerate(parts)}
    values = found(measured(monkeypatch, corpus, tests))
    assert len(values) == 3 * len(parts)
    for part, pairs in tests.items():
        expected = ranked(scores(pairs), [p.label == "1" for p in pairs], [p.group for p in pairs])
        assert expected["questions"] == 3
        for metric, value in expected.items():
            assert values[(*parts[part], metric)] == pytest.approx(value, abs=1e-6)


def test_a_paraphrase_is_what_is_more_probable_than_not(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ("0.51", "1"), ("0.5", "1"), ("0.9", "0"), ("0.1", "0")
    pairs = tuple(Pair("a", score, None, label) for score, label in said)
    values = found(measured(monkeypatch, "msrp", {"test": pairs}))
    assert values == {("MSRP", "test", "accuracy"): 0.5, ("MSRP", "test", "f1"): 0.5}


def test_a_task_of_the_model_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pairs = Scored(0.0, 1.0), (Pair("a", "0.9", label="1"),) * 2
    figures = measured(monkeypatch, "msrp", {"test": pairs}, model, "paraphrase")
    assert model.asked == "paraphrase"
    assert {(figure.task, figure.value) for figure in figures} == {("paraphrase", 1.0)}


def test_labels_and_how_far_their_probabilities_are_off() -> None:
    pairs = [Pair("a", "0.8", label="entailment"), Pair("a", "0.8", label="neutral"), Pair("a", "0.1", label="neutral")]
    figures = found(entailment_figures(Scored(0.0, 1.0), "SNLI", pairs))
    assert figures["SNLI", "development", "accuracy"] == pytest.approx(2 / 3)
    # .8 and .8, of which half is right; .6, which is right
    assert figures["SNLI", "development", "ece"] == pytest.approx((2 * 0.3 + 0.4) / 3)

    # Of two classes neutral and contradiction are one.
    pairs = [Pair("a", "0.45", label="not_entailment"), Pair("a", "0.55", label="entailment")]
    figures = found(entailment_figures(Scored(0.0, 1.0), "SciTail", pairs))
    assert figures["SciTail", "development", "accuracy"] == 1
    assert figures["SciTail", "development", "ece"] == pytest.approx(0.45)


PARTS = {
    "binary.train": [("1", "a dull man finds a joyous dog .")],
    "binary.dev": [("0", "so dull ,")],
    "fine.train": [("1", "a dull man finds a joyous dog ."), ("2", "a man finds a dog .")],
    "fine.dev": [("1", "so dull ,"), ("2", "well , fine")],
    "fine.test": [("4", "joyous !")],
}
PHRASES = [
    ("1", "a dull man"),
    ("3", "joyous dog"),
    ("2", "a man"),
    ("1", "So Dull"),
    ("4", "joyous"),
    ("3", "well fine"),
]


@pytest.fixture(autouse=True)
def sentiment(write):
    """A data folder with the four parts and the phrases."""
    for part, rows in PARTS.items():
        write(f"sst/sst-{part}.tsv", ("label", "sentence"), *rows)
    header = ("label", "sentence", "count", "phrase")
    write(sst.PHRASES_FILE, header, *((label, "0", "1", phrase) for label, phrase in PHRASES))


def test_phrases_join_the_sentences_but_for_those_that_are_sentences_of_other_parts():
    sentences = [("a dull man finds a joyous dog .", 1)]
    assert SSTSentences().train() == sentences
    assert SSTSentences(phrases=True).train() == [*sentences, ("a dull man", 0), ("joyous dog", 1)]
    assert SSTSentences(phrases=True).dev() == SSTSentences().dev() == [("so dull ,", 0)]
    # And a card counts what was learnt.
    assert [(each.name, each.rows) for each in SSTSentences().sources()] == [("sst", 1)]
    assert [(each.name, each.rows) for each in SSTSentences(phrases=True).sources()] == [("sst", 1), ("sst-phrases", 2)]


def test_with_three_labels_what_is_neutral_is_learnt_too():
    found = SSTSentences(labels="ternary", phrases=True)
    sentences = [("a dull man finds a joyous dog .", 0), ("a man finds a dog .", 1)]
    assert found.train() == [*sentences, ("a dull man", 0), ("joyous dog", 2), ("a man", 1)]
    assert found.dev() == [("so dull ,", 0), ("well , fine", 1)]
    assert [(each.name, each.rows) for each in found.sources()] == [("sst", 2), ("sst-phrases", 3)]


FOLDER = Path()
NUMBERED = [Pair(f"text {i}", f"other {i}", label="1") for i in range(40)]
GROUPS = [Pair(f"question {i // GROUP}", f"answer {i}", label=str(int(i % GROUP == 0))) for i in range(40)]


def test_task_pairs_are_those_of_the_named_corpora_and_groups_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source.tasks, "read", lambda name: NUMBERED)
    monkeypatch.setattr(source, "hard_groups", lambda pairs, encode: GROUPS)
    monkeypatch.setattr(source, "Teacher", lambda folder: None)  # no encoder is asked for what is given
    assert TaskPairs(("msrp", "wikiqa-hard")).train(FOLDER, FOLDER) == {"msrp": NUMBERED, "wikiqa-hard": GROUPS}
