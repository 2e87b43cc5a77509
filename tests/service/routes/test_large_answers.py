"""Large answers are made and written beside the event loop, and bounded before they are made."""

import asyncio
import gc
import json
import threading
from typing import Any

import numpy as np
import orjson
import pytest
from fastapi import FastAPI

from service.routes.limits import MAX_TOLD_TOKENS
from service.routes.routing import JsonAnswer, write
from service.scoring import verification
from tests.harness.service import Client, Serve, until

pytestmark = pytest.mark.anyio
SMALL = {"pairs": [{"a": "a man", "b": "a dog"}]}
TEXTS = ["a dog sleeps"] * 2000
MANY = [f"a dog {i}" for i in range(10_000)]
OBJECTS = [{"text": text, "n": 1, "m": {"k": [1, 2]}} for text in MANY]
LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "embeddings": ("/embed", {"sentences": TEXTS}),
    "OpenAI's embeddings": ("/v1/embeddings", {"input": TEXTS}),
    "embeddings in base64": ("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"}),
    "embeddings in three types": ("/v2/embed", {"texts": TEXTS, "embedding_types": ["float", "int8", "base64"]}),
    "Cohere's embeddings": ("/cohere/v1/embed", {"texts": TEXTS}),
    "TEI's embeddings": ("/tei/embed", {"inputs": TEXTS}),
    "tokens": ("/tei/tokenize", {"inputs": TEXTS}),
    "a ranking": ("/rank", {"query": "a man", "candidates": MANY}),
    "TEI's ranking": ("/tei/rerank", {"query": "a man", "texts": MANY}),
    "Cohere's ranking": ("/v1/rerank", {"query": "a man", "documents": MANY}),
    "documents given back": ("/v1/rerank", {"query": "a man", "documents": OBJECTS, "return_documents": True}),
    "duplicates": ("/dedupe", {"texts": [f"dog {i} y z" for i in range(500)], "model": "avg-paraphrase"}),
    "warnings": ("/v1/rerank", {"query": "a man", "documents": MANY, "truncate_prompt_tokens": 1}),
}


@pytest.fixture(scope="module")
async def wide(serve: Serve) -> Any:
    """A service with a time limit that a busy machine keeps."""
    async with serve(request_timeout=200) as client:
        yield client


@pytest.mark.parametrize("name", LARGE)
async def test_others_are_answered_while_a_large_answer_is_written(wide: Client, monkeypatch, name: str) -> None:
    began, answered, dumps = threading.Event(), threading.Event(), orjson.dumps

    def slow(content: Any, **options: Any) -> bytes:
        written = dumps(content, **options)
        if len(written) > 600:
            began.set()
            answered.wait(10)
        return written

    path, body = LARGE[name]
    monkeypatch.setattr(orjson, "dumps", slow)
    waiting = asyncio.create_task(wide.post(path, json=body))
    await until(began.is_set)
    assert (await wide.post("/similarity", json=SMALL)).status_code == 200
    assert not waiting.done()
    answered.set()
    assert (await waiting).status_code == 200


async def test_others_are_answered_while_passages_of_documents_are_made(wide: Client, monkeypatch) -> None:
    began, answered, make = threading.Event(), threading.Event(), verification.passages_of
    waited: list[bool] = []

    def slow(*arguments: Any) -> Any:
        began.set()
        waited.append(answered.wait(10))
        return make(*arguments)

    monkeypatch.setattr(verification, "passages_of", slow)
    body = {"documents": "\n".join(f"- a dog {i}" for i in range(3000)), "claims": ["a dog"]}
    waiting = asyncio.create_task(wide.post("/claims", json=body))
    await until(began.is_set)
    assert (await wide.post("/similarity", json=SMALL)).status_code == 200
    assert waited == []
    answered.set()
    assert (await waiting).status_code == 200


async def test_others_are_answered_while_the_description_is_made_once(serve: Serve, monkeypatch) -> None:
    began, answered, make = threading.Event(), threading.Event(), FastAPI.openapi
    made: list[bool] = []

    def slow(app: FastAPI) -> dict[str, Any]:
        began.set()
        made.append(answered.wait(10))
        return make(app)

    monkeypatch.setattr(FastAPI, "openapi", slow)
    async with serve(request_timeout=200) as client:
        waiting = [asyncio.create_task(client.get("/openapi.json")) for _ in range(2)]
        await until(began.is_set)
        assert (await client.get("/health/live")).status_code == 200
        assert made == []
        answered.set()
        assert {(await each).status_code for each in waiting} == {200}
    assert made == [True]


async def test_so_many_tokens_are_told_and_no_more(serve: Serve) -> None:
    text = "a man plays the guitar " * 4
    async with serve(max_sentences=10_000, request_timeout=200) as client:
        each = len((await client.answer("/tei/tokenize", inputs=[text]))[0])
        fit = MAX_TOLD_TOKENS // each
        assert len(await client.answer("/tei/tokenize", inputs=[text] * fit)) == fit
        refusal = await client.post("/tei/tokenize", json={"inputs": [text] * (fit + 1)})
    assert refusal.status_code == 422  # TEI knows no 413 of a field
    assert refusal.json()["error"] == f"inputs: {each * (fit + 1)} tokens of all texts, the limit is {MAX_TOLD_TOKENS}"


CONTENTS: list[Any] = [
    {},
    [],
    {"a": [], "b": {}, "c": None, "d": "x", "é": 1.5},
    [[{"id": i} for i in range(40)], [], [1]],
    {
        "results": [{"index": i, "document": {"k": [i, {"l": "\u4e2d"}]}} for i in range(100)],
        "meta": {"n": list(range(33))},
    },
    list(range(64)),
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_what_is_written_in_parts_is_the_same(content: Any) -> None:
    assert write(content) == orjson.dumps(content)


def test_what_one_writer_cannot_say_is_written_by_another() -> None:
    rows = list(np.ones((70, 2), np.float32))
    content = {"rows": rows, "documents": [{"n": 2**70 if i == 50 else i} for i in range(100)]}
    assert json.loads(JsonAnswer(content).body) == {"rows": [[1.0, 1.0]] * 70, "documents": content["documents"]}
    assert orjson.loads(JsonAnswer([{"a": 2**70, "b": float("inf")}]).body) == [
        {"a": float(2**70), "b": None}
    ]  # strict: no Infinity


async def test_large_documents_that_the_faster_writer_cannot_give_back_are_refused(serve: Serve) -> None:
    """The other one lets nobody else have a turn; small ones it writes: `tests/dialects/test_reranking.py`."""
    documents = [{"text": "a dog", "x": [2**64] * 12_000}]
    body = {"query": "a man", "documents": documents, "return_documents": True}

    def held() -> list[list[int]]:
        return [each for each in gc.get_objects() if type(each) is list and len(each) == 12_000]

    async with serve(max_candidates=10_000) as client:
        refused = await client.post("/v2/rerank", json=body)
        assert refused.status_code == 400, refused.text  # Cohere knows no 422
        assert "an integer of more than 64 bits" in refused.json()["message"]
        assert (await client.post("/v2/rerank", json=body | {"return_documents": False})).status_code == 200
        content = json.dumps(body).encode()
        documents.clear()
        gc.collect()
        gc.disable()  # what is refused is given back at once, not when many more have come
        try:
            assert (await client.post("/v2/rerank", content=content)).status_code == 400
            await until(lambda: not held(), "the event loop and the thread let go of what they have told")
        finally:
            gc.enable()


async def test_answers_that_are_made_are_held_before_they_are_sent(serve: Serve, monkeypatch) -> None:
    monkeypatch.setattr("service.http.admission.BUFFERED_BYTES_PER_REQUEST", 1)
    monkeypatch.setattr("service.http.admission._TEXT_BYTES", 0)  # of the bodies: the answers are to be too much
    answered, dumps = threading.Event(), orjson.dumps

    def slow(content: Any, **options: Any) -> bytes:
        written = dumps(content, **options)
        if len(written) > 1000:
            answered.wait(10)
        return written

    async with serve(request_timeout=200, max_body_bytes=200_000) as client:  # so 1 MB may be held
        monkeypatch.setattr(orjson, "dumps", slow)
        waiting = [asyncio.create_task(client.post("/embed", json={"sentences": TEXTS})) for _ in range(5)]
        await until(lambda: sum(each.done() for each in waiting) >= 3, "the others are refused")
        answered.set()
        statuses = [(await each).status_code for each in waiting]
    assert set(statuses) == {200, 429}
