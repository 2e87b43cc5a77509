"""Encoders of single sentences: what is answered over HTTP is what the offline half answers, however it is batched.

That a published graph answers as its module: tests/training/publish/test_publish.py.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from core.measures import expected_rating
from tests.harness import fakes, toys
from tests.harness.service import Serve
from training.publish.runtime import BATCH, PublishedModel

WORDLESS = "\u732b\u304c \U0001f600"  # buckets only
TEXTS = [
    *(text for pair in toys.RATED for text in (pair.a, pair.b)),
    "Mow, the DOG!",
    WORDLESS,
    "the man " * 20,  # cut at the limit
    "small",
]
A, B = zip(*pairwise(TEXTS), strict=True)


@pytest.mark.parametrize("name", ["avg-paraphrase", "avg-sick"])
def test_a_model_answers_the_same_however_sentences_are_batched(models: Path, name: str) -> None:
    model = PublishedModel(models / name)
    alone = {text: model.embed([text])[0] for text in TEXTS}
    many = (TEXTS * (BATCH // len(TEXTS) + 2))[: BATCH + 7]
    assert model.embed(many) == pytest.approx(np.stack([alone[text] for text in many]), abs=1e-6)
    found = model.similarity(A, B)
    assert np.ptp(found.raw_score) > 0.1  # there is something to agree on
    assert found.raw_score == pytest.approx(model.similarity(B, A).raw_score, abs=1e-6)
    if name == "avg-paraphrase":
        assert model.similarity(TEXTS, TEXTS).score == pytest.approx(np.ones(len(TEXTS)), abs=1e-9)


def test_heads_are_read_as_the_manifest_says(models: Path) -> None:
    model, runs = PublishedModel(models / "avg-sick"), fakes.runs_of(models / "avg-sick")
    sides = {"embedding_a": model.embed(A), "embedding_b": model.embed(B)}
    task = model.manifest.similarity
    assert task is not None
    rating = expected_rating(runs["relatedness.onnx"](sides), task.classes)
    assert model.similarity(A, B).raw_score == pytest.approx(rating, abs=1e-5)
    labels = [list(row.values()) for row in model.entailment(A, B)]
    assert np.array(labels) == pytest.approx(np.exp(runs["entailment.onnx"](sides)), abs=1e-5)


@pytest.mark.anyio
async def test_over_http_every_answer_is_the_offline_one(serve: Serve, models: Path) -> None:
    pairs = [{"a": a, "b": b} for a, b in zip(A, B, strict=True)]
    asked = [{"premise": a, "hypothesis": b} for a, b in zip(A, B, strict=True)]
    async with serve() as client:
        for name in ("avg-paraphrase", "avg-sick"):
            scored = (await client.answer("/similarity", pairs=pairs, model=name))["results"]
            offline = PublishedModel(models / name).similarity(A, B)
            assert [row["raw_score"] for row in scored] == pytest.approx(offline.raw_score, abs=1e-7)
            assert [row["score"] for row in scored] == pytest.approx(offline.score, abs=1e-7)
        labelled = (await client.answer("/entailment", pairs=asked, model="avg-sick"))["results"]
    for a, b, row, expected in zip(A, B, labelled, PublishedModel(models / "avg-sick").entailment(A, B), strict=True):
        if not {WORDLESS, "small"} & {a, b}:  # nothing follows from a text without a word that the model knows
            assert row["probabilities"] == pytest.approx(expected, abs=1e-7)
