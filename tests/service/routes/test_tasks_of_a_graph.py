"""Several tasks from one graph: each reads its own columns, and answers say what their scores mean."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
TEXTS = ("a man plays the guitar", "a dog runs", "a man plays the flute", "a man runs")


@pytest.fixture(scope="module")
def root(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of other tests, and `both`: the graph of `pair-sick` with two more tasks of its five outputs."""
    folder = tmp_path_factory.mktemp("tasks") / "models"
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.graded_model(folder / "avg-sick")
    fakes.tasks_model(folder / "both")
    fakes.blended_model(folder / "blended")
    return folder


@pytest.fixture
async def client(serve: Serve, root: Path) -> AsyncIterator[Client]:
    """A service of these."""
    async with serve(models_dir=root) as client:
        yield client


def ids_of(*texts: str) -> list[tuple[int, ...]]:
    return [fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids for text in texts]


def outputs(root: Path, a: str, b: str) -> np.ndarray:
    """The graph's five outputs for a pair."""
    run = fakes.runs_of(root / "both")["relatedness.onnx"]
    sides = zip("ab", ids_of(a, b), strict=True)
    feeds = {}
    for side, of_side in sides:
        feeds[f"input_ids_{side}"] = np.array([of_side])
        feeds[f"lengths_{side}"] = np.array([len(of_side)])
    return np.asarray(run(feeds)[0], dtype=np.float64)


async def test_each_task_reads_its_columns(client: Client, root: Path) -> None:
    a, b = TEXTS[:2]
    own = outputs(root, a, b)
    body = {"pairs": [{"a": a, "b": b}], "model": "both"}
    for _ in range(2):  # the second time from the cache
        plain = (await client.post("/similarity", json=body)).json()
        answer = (await client.post("/similarity", json=body | {"task": "paraphrase"})).json()
        assert (plain["scale"], answer["scale"]) == ("similarity", "paraphrase_probability")
        assert answer["results"][0]["score"] == pytest.approx(np.exp(own[3]) / np.exp(own[2:4]).sum(), abs=1e-6)
        assert "rating" not in answer["results"][0]
        answer = (await client.post("/similarity", json=body | {"task": "relevance"})).json()
        assert answer["scale"] == "relevance_probability"
        assert answer["results"][0]["score"] == pytest.approx(1 / (1 + np.exp(-2 * own[0] - 1)), abs=1e-6)
        assert plain["results"][0]["raw_score"] == pytest.approx(np.exp(own) @ [1, 2, 3, 4, 5], abs=1e-5)


async def test_a_directed_task_beside_a_symmetric_one_keeps_its_scores_by_direction(serve: Serve, root: Path) -> None:
    (there, back) = ({"pairs": [{"a": a, "b": b}], "model": "both"} for a, b in (TEXTS[:2], TEXTS[1::-1]))
    async with serve(models_dir=root, cache="memory") as client:
        for task, found in (("similarity", 1), ("relevance", 0), ("paraphrase", 0)):
            before = await client.metric("semblance_cache_hits_total", tier="scores")
            for body in (there, back):
                assert (await client.post("/similarity", json=body | {"task": task})).status_code == 200
            assert await client.metric("semblance_cache_hits_total", tier="scores") - before == found


async def test_candidates_are_ordered_by_relevance(client: Client, root: Path) -> None:
    query, *candidates = TEXTS
    raw = np.array([outputs(root, query, each)[0] for each in candidates])
    body = {"query": query, "candidates": candidates}
    answer = (await client.post("/rank", json=body | {"model": "both"})).json()
    assert answer["scale"] == "relevance_probability"
    assert [each["index"] for each in answer["results"]] == np.argsort(-raw, kind="stable").tolist()
    expected = np.sort(1 / (1 + np.exp(-2 * raw - 1)))[::-1]
    assert [each["score"] for each in answer["results"]] == pytest.approx(expected, abs=1e-6)
    answer = (await client.post("/rank", json=body | {"rerank_model": "both", "rerank_top": 2})).json()
    assert (answer["scale"], answer["rerank_scale"]) == ("similarity", "relevance_probability")


async def test_a_task_that_a_model_lacks_is_refused(client: Client) -> None:
    body = {"pairs": [{"a": "a man", "b": "a dog"}]}
    answer = await client.post("/similarity", json=body | {"task": "paraphrase"})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == ("unsupported_task", "model")
    assert "models that have it: both" in error["message"]
    answer = await client.post("/similarity", json=body | {"task": "irony"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "task")
    tasks = {model["id"]: model["tasks"] for model in (await client.get("/models")).json()["models"]}
    assert tasks["both"] == ["similarity", "entailment", "paraphrase", "relevance", "explanation"]


async def test_a_blend_counts_the_cosine_of_both_texts_and_embeds_each_once(serve: Serve, root: Path) -> None:
    query, *candidates = TEXTS
    rows = [fakes.table()[list(ids)].mean(axis=0) for ids in ids_of(query, *candidates)]
    cosines = [float(rows[0] @ row / np.linalg.norm(rows[0]) / np.linalg.norm(row)) for row in rows[1:]]
    raw = [
        0.5 * outputs(root, query, each)[0] + 3 * max(cosine, 0)
        for each, cosine in zip(candidates, cosines, strict=True)
    ]
    expected = 1 / (1 + np.exp(-np.array(raw)))
    counted = {"model": "blended", "graph": "encoder.onnx"}
    body = {"pairs": [{"a": query, "b": each} for each in candidates], "model": "blended", "task": "relevance"}
    async with serve(models_dir=root, preload="blended", cache="memory") as client:
        before = await client.metric("semblance_batch_rows_sum", **counted)
        ranked = (
            await client.post("/rank", json={"query": query, "candidates": candidates, "model": "blended"})
        ).json()
        assert [each["index"] for each in ranked["results"]] == np.argsort(-expected, kind="stable").tolist()
        assert await client.metric("semblance_batch_rows_sum", **counted) - before == len(TEXTS)
        for _ in range(2):
            answer = (await client.post("/similarity", json=body)).json()
            assert [each["score"] for each in answer["results"]] == pytest.approx(expected, abs=1e-6)
        assert await client.metric("semblance_batch_rows_sum", **counted) - before == len(TEXTS)
        plain = (await client.post("/similarity", json=body | {"task": "similarity"})).json()
        other = (await client.post("/similarity", json=body | {"task": "similarity", "model": "both"})).json()
        assert plain["results"] == other["results"]


@pytest.mark.parametrize("cache", ["off", "memory"])
async def test_a_text_is_as_like_itself_as_can_be_also_unknown_and_long_ones(
    serve: Serve, tmp_path: Path, models: Path, cache: str
) -> None:
    fakes.tasks_model(tmp_path / "both")
    async with serve(models_dir=(models, tmp_path), cache=cache) as client:
        for text in ("\U0001f44d", "a \U0001f44d", "a man plays " * 40):
            pair = {"pairs": [{"a": text, "b": text}], "model": "both"}
            for task in ("similarity", "paraphrase"):
                answer = await client.answer("/similarity", **pair, task=task)
                assert [each["score"] for each in answer["results"]] == [1.0]
            asked = {"pairs": [{"premise": text, "hypothesis": text}], "model": "both"}
            assert (await client.answer("/entailment", **asked))["results"][0]["probabilities"]["entailment"] == 1.0
            ranked = await client.answer("/rank", query=text, candidates=["a dog", text], model="avg-sick")
            assert (ranked["results"][0]["index"], ranked["results"][0]["score"]) == (1, 1.0)
