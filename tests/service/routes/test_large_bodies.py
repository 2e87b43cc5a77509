"""No body that one caller sends makes the others wait, or fills the memory; what is wrong with it is said."""

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.routes import routing
from service.routes.routing import SMALL_BYTES
from tests.harness.process import running
from tests.harness.service import Client, Serve, let_in, until

MB = 1_048_576
PAIR = {"a": "a man", "b": "a dog"}
JSON = {"content-type": "application/json"}
LARGE = 4_000_000


def padded(start: bytes, item: bytes, end: bytes) -> bytes:
    """A body of about 4 MB."""
    return start + b",".join([item] * ((LARGE - len(start)) // (len(item) + 1))) + end


# Name -> path, body, status, words of the message.
BODIES: dict[str, tuple[str, bytes, int, str]] = {
    "pairs that are numbers": ("/similarity", padded(b'{"pairs":[', b"1", b"]}"), 413, "values"),
    "300,000 unknown keys": (
        "/rank",
        b'{"query":"a","candidates":["a"],' + b",".join(b'"k%d":1' % i for i in range(300_000)) + b"}",
        413, "the body has more than 161000 values",
    ),
    "four thousand unknown keys": (
        "/rank",
        b'{"query":"a","candidates":["a"],' + b",".join(b'"k%d":1' % i for i in range(4000)) + b"}",
        413, "the body has more than 3064 fields",
    ),
    "a million texts": ("/rank", padded(b'{"query":"a","candidates":[', b'"a"', b"]}"), 413, "values"),
    "a million lists": ("/rank", padded(b'{"query":"a","candidates":[', b"[]", b"]}"), 413, "values"),
    "100,000 bad candidates": (
        "/rank", b'{"query":"a","candidates":[' + b",".join([b"1"] * 100_000) + b"]}", 422, "candidates.0",
    ),
    "a lone surrogate at the end": (
        "/embed", padded(b'{"sentences":[', b'"' + b"a" * 400 + b'"', rb',"\ud800"]}'), 422, "a lone surrogate",
    ),
    "documents that are numbers": ("/v1/rerank", padded(b'{"query":"a","documents":[', b"1", b"]}"), 413, "values"),
    "a field of another dialect": (
        "/similarity", padded(b'{"inputs":1,"pairs":[', b'{"a":"a man","b":"a dog","c":"x"}', b"]}"), 413, "values",
    ),
    "too many texts of another dialect": ("/tei/embed", padded(b'{"inputs":[', b'"a"', b"]}"), 413, "values"),
}  # fmt: skip


@pytest.fixture(scope="module")
def service(models: Path) -> Iterator[tuple[int, str]]:
    with running(models) as (process, url):
        yield process.pid, url


def resident(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) * 1024


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_large_body_is_told_why_and_fills_no_memory(service: tuple[int, str], name: str) -> None:
    pid, url = service
    path, content, status, words = BODIES[name]
    before = resident(pid, "VmRSS")
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    with httpx.Client(base_url=url) as client:
        for _ in range(3):
            response = client.post(path, content=content, headers=JSON)
    assert response.status_code == status, response.text[:500]
    assert words in response.text
    assert len(response.content) < 2000
    assert resident(pid, "VmHWM") - before < 64 * MB
    if name == "too many texts of another dialect":
        assert set(response.json()) == {"error", "error_type"}


@pytest.mark.anyio
async def test_others_are_answered_while_a_large_body_is_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(routing, "check", lambda content, _: len(content) <= SMALL_BYTES or answered.wait(60))
    large = json.dumps({"query": "a man", "candidates": ["a dog who sleeps"] * 10_000}).encode()
    waiting = asyncio.create_task(client.post("/rank", content=large, headers=JSON))
    for _ in range(5):
        assert (await client.post("/similarity", json={"pairs": [PAIR]})).status_code == 200
    assert not waiting.done()
    answered.set()
    assert (await waiting).status_code == 200


REFUSED = {
    "a field that is not known": ("/similarity", {"pairs": [PAIR], "x": 1}),
    "a pair without its second text": ("/similarity", {"pairs": [{"a": "a"}]}),
    "too many pairs": ("/similarity", {"pairs": [PAIR] * 300}),
    "an empty text": ("/similarity", {"pairs": [{"a": " ", "b": "a"}]}),
    "a model that is not there": ("/rank", {"query": "a", "candidates": ["a"], "model": "nope"}),
    "a field of another dialect": ("/v1/embeddings", {"input": ["a"], "late_chunking": True}),
    "an answer": ("/similarity", {"pairs": [PAIR]}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", REFUSED)
async def test_nothing_keeps_a_body_once_it_is_answered(lasting: Client, monkeypatch, name: str) -> None:
    """Not even until the garbage collector comes by, as a circle of references would."""

    class Body(dict):  # which can be looked for by a weak reference
        pass

    path, sent = REFUSED[name]
    kept: list[weakref.ref[Body]] = []
    real = routing.parse

    def parse(body: bytes, most: routing.BodyLimits) -> Body:
        found = Body(real(body, most))
        kept.append(weakref.ref(found))
        return found

    monkeypatch.setattr(routing, "parse", parse)
    gc.collect()
    gc.disable()
    try:
        await lasting.post(path, json=sent)
        (body,) = kept
        await until(lambda: body() is None, "the event loop and threads let go of it")
    finally:
        gc.enable()


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/models", "/metrics", "/docs", "/v1/models"])
async def test_head_is_get_without_the_body(lasting: Client, path: str) -> None:
    got, head = await lasting.get(path), await lasting.head(path)
    assert head.status_code == got.status_code == 200
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.anyio
async def test_head_where_there_is_no_get_or_no_key(lasting: Client, serve: Serve) -> None:
    assert (await lasting.head("/similarity")).status_code == 405
    assert (await lasting.head("/nowhere")).status_code == 404
    async with serve(api_keys=let_in("correct horse battery")) as client:
        refusal = await client.head("/models")
        assert (refusal.status_code, refusal.content) == (401, b"")
        assert (await client.head("/health/ready")).status_code == 200


@pytest.mark.anyio
async def test_preflights_are_counted(serve: Serve) -> None:
    async with serve(cors_origins=("https://a.example",)) as client:
        asked = {"access-control-request-method": "POST"}
        for origin, status in (("https://a.example", 200), ("https://b.example", 400)):
            answer = await client.options("/similarity", headers={"origin": origin} | asked)
            assert answer.status_code == status
            assert await client.metric("semblance_requests_total", route="/similarity", status=str(status)) == 1
