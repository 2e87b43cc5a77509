"""Graphs that fail, work that takes too long, callers that leave: an answer in one shape, and nothing kept."""

import asyncio
import logging
import threading

import numpy as np
import pytest
import tokenizers

from core.subwords import Subwords
from service.engine.admission import RequestContext
from tests.harness import fakes
from tests.harness.requests import error_of
from tests.harness.service import Client, Serve, expect

pytestmark = pytest.mark.anyio
GOOD_PAIR = {"pairs": [{"a": "a man", "b": "a dog"}]}
BAD_WORD = "not"


@pytest.fixture
def poisoned(tmp_path):
    """A model that answers as published, except for one word whose row is not a number."""
    rows = fakes.table(seed=0)
    rows[1 + fakes.WORDS.index(BAD_WORD)] = np.nan
    return _models(tmp_path, rows)


@pytest.fixture
def short_table(tmp_path):
    """A model whose table ends before its tokenizer does, as if the two were of different models."""
    return _models(tmp_path, fakes.table(seed=0)[: 1 + len(fakes.WORDS)], golden=[("a man", "a dog")])


def _models(root, rows, golden=fakes.GOLDEN):
    folder = root / "avg-paraphrase"
    folder.mkdir()
    fakes.encoder_graph(folder / "encoder.onnx", rows=rows)
    runs = {"encoder.onnx": fakes.session(folder / "encoder.onnx")}
    pairs = [fakes.answer(a, b, runs, "encoder.onnx", fakes.COSINE, None) for a, b in golden]
    fakes.publish(folder, "avg-paraphrase", encoder="encoder.onnx", similarity=fakes.COSINE, golden=pairs)
    fakes.graded_model(root / "avg-sick")
    return root


async def test_a_tokenizer_that_panics_at_a_text_fails_that_request_alone(
    serve: Serve, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own expression goes through all ways of reading many letters, and the library panics."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(fakes.WORDS)}, "a"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Whitespace(),
            tokenizers.pre_tokenizers.Split(tokenizers.Regex("(a+)+b"), "isolated"),
        ]
    )
    monkeypatch.setattr(fakes, "tokenizer", lambda: Subwords(made.to_str()))
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    monkeypatch.undo()
    fakes.graded_model(tmp_path / "avg-sick")
    text = "a" * 60 + "c"
    bodies: dict[str, dict[str, object]] = {
        "/similarity": {"pairs": [{"a": "a man", "b": text}]},
        "/rank": {"query": "a man", "candidates": [text + " a man" * 400]},  # in a thread
        "/embed": {"sentences": [text]},
        "/explain": {"a": "a man", "b": text},
    }
    async with serve(models_dir=tmp_path) as client:
        for path, body in bodies.items():
            response = await client.post(path, json={**body, "model": "avg-paraphrase"})
            error = error_of(response)
            assert (response.status_code, error["code"]) == (500, "inference_failed")
            assert error["message"] == "model avg-paraphrase failed: its tokenizer cannot read a text"
        good = {**GOOD_PAIR, "model": "avg-paraphrase"}
        assert (await client.post("/similarity", json=good)).status_code == 200
        assert await client.metric("semblance_inference_failures_total", model="avg-paraphrase") == len(bodies)


@pytest.mark.parametrize("path", ["/similarity", "/rank", "/embed"])
async def test_no_number_that_is_not_finite_leaves_or_stays(serve: Serve, poisoned, path: str) -> None:
    bodies = {
        "/similarity": {"pairs": [{"a": "a man", "b": f"a dog {BAD_WORD}"}]},
        "/rank": {"query": "a man", "candidates": ["a dog", BAD_WORD]},
        "/embed": {"sentences": ["a man", BAD_WORD]},
    }
    async with serve(models_dir=poisoned) as client:
        for _ in range(2):
            response = await client.post(path, json=bodies[path])
            assert response.status_code == 500
            error = error_of(response)
            assert error["code"] == "inference_failed"
            assert "avg-paraphrase" in str(error["message"])
            assert "nan" not in response.text.lower()
        assert await client.metric("semblance_inference_failures_total", model="avg-paraphrase") == 2
        assert await client.metric("semblance_requests_total", route=path, status="500") == 2
        assert len(client.app.service.cache) == 0
        assert (await client.post("/similarity", json=GOOD_PAIR)).status_code == 200


@pytest.mark.parametrize(
    ("first", "status"), [(-np.inf, 200), (np.nan, 500), (np.inf, 500)], ids=["minus", "no number", "plus"]
)
@pytest.mark.parametrize("model", ["avg-sick", "pair-sick"])
async def test_a_probability_that_left_the_range_of_floats_is_none(
    client: Client, model: str, first: float, status: int
) -> None:
    scorer = client.app.service.registry[model].scorer
    row = np.array([[first, -np.inf, -80, -1e-9, -30]], np.float32)
    scorer.graphs["relatedness.onnx"].run = lambda _: row
    response = await client.post("/similarity", json=GOOD_PAIR | {"model": model})
    assert response.status_code == status
    if status == 200:
        assert response.json()["results"][0]["raw_score"] == pytest.approx(4.0, abs=1e-6)


async def test_a_graph_that_raises_fails_only_the_request_that_made_it(serve: Serve, short_table, caplog) -> None:
    async with serve(models_dir=short_table) as client:
        with caplog.at_level(logging.ERROR):
            asked = {"pairs": [{"a": "xylophone", "b": "man"}]}
            responses = await asyncio.gather(*(client.post("/similarity", json=asked) for _ in range(3)))
        assert [response.status_code for response in responses] == [500] * 3  # all who wait for the same
        assert error_of(responses[0])["code"] == "inference_failed"
        assert "xylophone" not in caplog.text
        assert "encoder.onnx raised" in caplog.text
        assert (await client.post("/similarity", json=GOOD_PAIR)).status_code == 200


async def test_a_mistake_behind_fastapi_has_the_shape_too(client: Client) -> None:
    client.app.service.registry["avg-sick"].manifest = None  # type: ignore[assignment]
    response = await client.get("/models")
    assert response.status_code == 500
    assert error_of(response)["code"] == "internal_error"


def slow(client: Client, until: threading.Event) -> None:
    """Have the default model's encoder wait for an event, and be known to be slow."""
    scorer = client.app.service.registry["avg-paraphrase"].scorer
    graph, fast = scorer.graphs["encoder.onnx"], scorer.graphs["encoder.onnx"].run
    graph.run = lambda feeds: (until.wait(60), fast(feeds))[1]
    expect(scorer, 1.0)


async def test_too_many_large_requests_are_refused_at_once(serve: Serve) -> None:
    async with serve(worker_threads=1, max_queue_seconds=1.5) as client:
        release = threading.Event()
        slow(client, release)
        bodies = [{"pairs": [{"a": word, "b": word}]} for word in fakes.WORDS[:4]]
        asked = [asyncio.create_task(client.post("/similarity", json=body)) for body in bodies]
        while sum(each.done() for each in asked) < 2:
            await asyncio.sleep(0.01)
        release.set()
        responses = await asyncio.gather(*asked)
        assert sorted(response.status_code for response in responses) == [200, 200, 429, 429]
        refused = next(response for response in responses if response.status_code == 429)
        error = error_of(refused)
        assert error["code"] == "overloaded"
        assert refused.headers["retry-after"] == "1"
        assert await client.metric("semblance_requests_admitted") == 0
        assert (await client.post("/similarity", json=bodies[0])).status_code == 200


async def test_more_requests_than_may_be_in_flight_are_refused_at_the_door(serve: Serve) -> None:
    """But not of a caller who has less than an equal share of the places."""
    async with serve(max_in_flight=4) as client:
        for mine, others, status in ((3, 0, 200), (4, 0, 429), (2, 2, 429), (1, 3, 200), (0, 9, 200)):
            answering = client.app.scoring._answering
            answering.clear()
            answering.update(RequestContext("address:127.0.0.1") for _ in range(mine))
            answering.update(RequestContext("address:10.0.0.1") for _ in range(others))
            response = await client.post("/similarity", json=GOOD_PAIR)
            assert response.status_code == status
            assert (await client.get("/health/ready")).status_code == 200  # nobody must think us dead
            if status == 429:
                error = error_of(response)
                assert (error["code"], error["limit"]) == ("overloaded", 4)
                assert response.headers["retry-after"] == "1"
                assert response.headers["retry-after-ms"] == "1000"


async def test_small_requests_are_answered_while_a_large_one_runs(serve: Serve) -> None:
    async with serve(worker_threads=1) as client:
        assert (await client.post("/similarity", json=GOOD_PAIR)).status_code == 200
        release = threading.Event()
        slow(client, release)
        large = asyncio.create_task(client.post("/embed", json={"sentences": ["sofa"]}))
        await asyncio.sleep(0.05)
        assert (await client.post("/similarity", json=GOOD_PAIR)).status_code == 200
        assert not large.done()
        release.set()
        assert (await large).status_code == 200
