"""`semblance.scorer`: columns of texts in, columns of answers out, in this process or in another."""

import asyncio
import logging
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.answers import EntailmentLabel
from core.manifest import Limits
from semblance import AsyncClient, Client, scorer
from semblance.errors import BatchError, CannotStart, InvalidRequest
from semblance.jobs import columns
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, Name, make_task
from tests.harness import fakes
from tests.harness.alike import assert_alike
from tests.harness.commands import Run
from tests.harness.tables import read, write

A = ["a man plays guitar", "the dog runs", "a cat sleeps", "a man plays guitar"]
B = ["a woman plays flute", "a dog runs in the park", "the man", "a dog"]


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("similarity", {"model": "avg-sick"}),
        ("entailment", {"model": "pair-sick"}),
        ("embed", {}),
        ("rank", {"top_k": 3, "rerank_model": "pair-sick", "rerank_top": 2}),
    ],
)
def test_columns_and_answers_are_those_of_a_batch(models: Path, task: Name, options: dict[str, Any]) -> None:
    given = {"a": A, "b": B, "premise": A, "hypothesis": B, "sentence": A, "query": A, "candidates": [B] * len(A)}
    names = DEFAULT_COLUMNS[task]
    found = scorer(task=task, models_dir=models, **options)(*(given[name] for name in names))

    async def ask() -> list[dict[str, Any]]:
        async with AsyncClient.local(models) as client:
            made = make_task(BatchOptions(task, names, **options), await client.models())
            return await made.ask(client, list(zip(*(given[name] for name in names), strict=True)))

    expected = asyncio.run(ask())
    assert list(found) == list(expected[0])
    assert_alike(
        {name: column.tolist() for name, column in found.items()}, {k: [e[k] for e in expected] for k in found}
    )


@pytest.mark.parametrize("labels", [("not_entailment", "entailment"), ("contradiction", "entailment")])
def test_a_model_of_two_labels_has_a_column_for_each(
    tmp_path: Path, semblance: Run, labels: tuple[EntailmentLabel, ...]
) -> None:
    folder = tmp_path / "models"
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.interaction_model(folder / "two", "two", labels=labels)
    of_columns = scorer("two", "entailment", models_dir=folder)(A, B)
    pairs = [{"premise": a, "hypothesis": b} for a, b in zip(A, B, strict=True)]
    source, output = write(tmp_path / "in.csv", pairs), tmp_path / "out.csv"
    options = ("--task", "entailment", "--model", "two", "--models-dir", folder)
    assert semblance("batch", source, output, *options).code == 0
    with Client.local(folder) as client:
        assert set(next(m for m in client.models().models if m.id == "two").entailment_labels or ()) == set(labels)
        results = client.entailment(zip(A, B, strict=True), model="two").results
    other = labels[0]
    for i, (row, result) in enumerate(zip(read(output), results, strict=True)):
        assert set(row) == {"premise", "hypothesis", "label", "entailment", other, "truncated"}
        assert row["label"] == of_columns["label"][i] == result.label
        for label in labels:
            expected = getattr(result.probabilities, label)
            assert float(row[label]) == pytest.approx(expected, abs=1e-6)
            assert of_columns[label][i] == pytest.approx(expected, abs=1e-6)
        assert float(row["entailment"]) + float(row[other]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("bad", [None, float("nan"), "", " \n", "\u200b", 3, "\ud800", "x" * 100_001])
def test_a_bad_text_is_an_error_or_null(models: Path, bad: object) -> None:
    given = [A[0], bad, A[2]]
    with pytest.raises(InvalidRequest) as caught:
        scorer(models_dir=models)(B[:3], given)
    assert caught.value.field == "pairs.1.b"
    found = scorer(models_dir=models, nulls=True)(B[:3], given)
    assert np.isnan(found["score"]).tolist() == [False, True, False]
    whole = scorer(models_dir=models)([B[0], B[2]], [A[0], A[2]])
    assert found["score"][[0, 2]].tolist() == whole["score"].tolist()
    embedded = scorer(None, "embed", models_dir=models, nulls=True)([A[0], bad])["embedding"]
    assert np.isnan(embedded[1]).all()
    assert not np.isnan(embedded[0]).any()
    labelled = scorer("pair-sick", "entailment", models_dir=models, nulls=True)([A[0]], [bad])
    assert labelled["label"].tolist() == [None]
    ranked = scorer(None, "rank", models_dir=models, nulls=True)([A[0]] * 3, [B, [B[0], bad], []])
    assert [each is None for each in ranked["ranking"]] == [False, True, True]


def test_columns_of_arrow_are_read_and_a_text_is_no_column(models: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="no pyarrow: pip install '.[parquet]'")
    score = scorer(models_dir=models, nulls=True)
    of_lists = score(A[:2], [B[0], None])["score"]
    for column in (pa.array([B[0], None]), pa.chunked_array([[B[0]], pa.array([None], pa.string())])):
        np.testing.assert_array_equal(score(pa.array(A[:2]), column)["score"], of_lists)
    with pytest.raises(ValueError, match="a column is a list or an array of texts, got one text"):
        score("ab", "cd")


def test_no_rows_are_no_rows(models: Path) -> None:
    assert {name: len(column) for name, column in scorer(models_dir=models)([], []).items()} == {
        "score": 0, "raw_score": 0, "truncated": 0, "unknown": 0
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"similarity reads 2 columns of one length \(a, b\), got 1, 2"):
        scorer(models_dir=models)(A[:1], B[:2])
    with pytest.raises(BatchError, match=r"task: expected one of similarity, .*, found 'same'"):
        scorer(task="same", models_dir=models)  # type: ignore[arg-type]


def test_a_scorer_is_a_few_names_and_opens_once(models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(models, there := tmp_path / "models")
    with caplog.at_level(logging.INFO, "service"):
        first = scorer(models_dir=there)
        packed = pickle.dumps(first)
        assert len(packed) < 1500
        assert not [record for record in caplog.records if record.message == "model opened"]
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda each: each(A, B)["score"].tolist(), [first, pickle.loads(packed)] * 4))
    assert found == found[:1] * 8
    assert [r.__dict__["fields"]["model"] for r in caplog.records if r.message == "model opened"] == ["avg-paraphrase"]


def test_a_worker_refuses_another_model(models: Path, tmp_path: Path) -> None:
    """One with the same name and place, that was replaced after the scorer was made."""
    there = tmp_path / "models"
    shutil.copytree(models, there)
    asked = scorer("pair-sick", models_dir=there)
    columns._opened.cache_clear()  # as in another process
    fakes.sign(there / "pair-sick", limits=Limits(max_tokens=fakes.MAX_TOKENS - 1))
    with pytest.raises(CannotStart, match="all workers must read the same models"):
        asked(A, B)
