"""Both clients against the real application with tiny models: in this process, and over a port."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic import TypeAdapter

from semblance import AsyncClient, Client
from semblance.errors import (
    InvalidArgument,
    InvalidRequest,
    NoAnswer,
    NotFound,
    RequestFailed,
    SemblanceError,
    ServiceFailed,
    TooLarge,
    Unauthorized,
    UnexpectedAnswer,
)
from service.settings import digest_of
from tests.harness import fakes
from tests.harness.alike import assert_alike
from tests.harness.process import running

PAIRS = [("a man plays the guitar", "the man is playing a guitar ."), ("a dog runs", "a cat sleeps"), ("cat", "\u732b")]
CANDIDATES = ["a dog runs in the park", "the man is playing a guitar .", "a cat sleeps on the sofa", "guitar"]
RANKED: dict[str, Any] = {
    "model": "m",
    "scale": "similarity",
    "answered": True,
    "confidence": None,
    "threshold": None,
    "results": [],
    "truncated": {"query": False, "candidates": []},
}
METHODS: dict[str, tuple[Any, ...]] = {
    "similarity": (PAIRS,),
    "entailment": (PAIRS,),
    "claims": ("A man plays. A dog runs.", CANDIDATES),
    "classify": (CANDIDATES, ["guitar", "dog"]),
    "rank": ("a man plays the guitar", CANDIDATES),
    "embed": (CANDIDATES,),
    "explain": PAIRS[0],
    "models": (),
    "health": (),
}


@pytest.fixture(scope="module")
def client(models: Path) -> Iterator[Client]:
    with Client.local(models) as opened:
        yield opened


def test_every_answer_says_what_the_service_says(url: str) -> None:
    """Those of the other calls: test_cli.py, by the command line."""
    claims = {"documents": ["A man plays.", "A dog runs."], "claims": CANDIDATES, "encoder": "avg-sick"}
    staged = {"top_k": 3, "rerank_model": "pair-sick", "rerank_top": 2}
    with Client(url) as client:
        ranking = {"query": "a man", "candidates": CANDIDATES, **staged}
        for answer, path, body in (
            (client.claims(claims["documents"], CANDIDATES, encoder="avg-sick"), "claims", claims),
            (client.rank("a man", CANDIDATES, **staged), "rank", ranking),
        ):
            found = TypeAdapter(type(answer)).dump_python(answer, mode="json", exclude_none=True)
            said = httpx.post(f"{url}/{path}", json=body).json()
            assert_alike(found, {name: value for name, value in said.items() if value is not None})
        embeddings = client.embed(CANDIDATES)
        said = httpx.post(f"{url}/embed", json={"sentences": CANDIDATES}).json()
        assert embeddings.embeddings.dtype == np.float32
        np.testing.assert_array_equal(embeddings.embeddings, np.asarray(said["embeddings"], np.float32))
        assert client.models().limits.max_pairs == 256
        assert client.health().status == "ready"


def test_blocking_async_over_http_and_in_process_are_one(models: Path, url: str, client: Client) -> None:
    async def ask(opened: AsyncClient) -> list[Any]:
        async with opened:
            return [await getattr(opened, method)(*arguments) for method, arguments in METHODS.items()]

    def timeless(answers: list[Any]) -> list[Any]:
        """Only a service on the network has a time limit; which models are open follows from what was asked before, and
        where their vectors are kept from measured times."""
        at = list(METHODS).index("models")
        limits = replace(answers[at].limits, request_timeout_seconds=0.0)
        models = [replace(model, open=None, provider=None, cache=[]) for model in answers[at].models]
        answers[at] = replace(answers[at], limits=limits, models=models)
        return answers

    expected = timeless([getattr(client, method)(*arguments) for method, arguments in METHODS.items()])
    with Client(url) as over_http:
        found = [getattr(over_http, method)(*arguments) for method, arguments in METHODS.items()]
        assert_alike(timeless(found), expected)
    assert_alike(timeless(asyncio.run(ask(AsyncClient(url)))), expected)
    assert_alike(timeless(asyncio.run(ask(AsyncClient.local(models)))), expected)


@pytest.mark.parametrize("options", [{}, {"top_k": 4}])
def test_a_ranking_in_parts_has_the_services_order_where_calibration_makes_equals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    folder = tmp_path / "flat"
    folder.mkdir()
    fakes.encoder_graph(folder / "encoder.onnx")
    flat = fakes.COSINE.model_copy(update={"calibration": fakes.CentredIsotonic(x=(-1.0, 1.0), y=(0.5, 0.5))})
    fakes.publish(folder, "flat", encoder="encoder.onnx", similarity=flat)
    fakes.graded_model(tmp_path / "avg-sick")
    for name in ("SIMILARITY", "RANK"):
        monkeypatch.setenv(f"SEMBLANCE_DEFAULT_{name}", "flat")
    candidates = [f"{text} {more}" for more in ("", "man", "dog", "sofa") for text in CANDIDATES]
    found = []
    for most in (10_000, 3):
        monkeypatch.setenv("SEMBLANCE_MAX_CANDIDATES", str(most))
        with Client.local(tmp_path) as client:
            found.append(client.rank("a man", candidates, **options))
    whole, parts = found
    assert {result.score for result in whole.results} == {0.5}
    assert [result.index for result in whole.results] != sorted(result.index for result in whole.results)
    assert_alike(parts, whole)


def test_more_than_a_request_may_hold_gives_the_same(
    models: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, candidates = PAIRS * 5, [f"{text} {n}" for n in range(4) for text in CANDIDATES]

    def ask(asked: Client) -> list[Any]:
        return [
            asked.similarity(pairs),
            asked.entailment(pairs),
            asked.claims(CANDIDATES[:2], candidates),
            asked.classify(candidates, ["dog", "cat"]),
            asked.rank("a man", candidates, top_k=7),
            asked.embed(candidates),
        ]

    expected = ask(client)
    for name, most in {"PAIRS": 4, "CANDIDATES": 3, "SENTENCES": 2, "CLAIMS": 3}.items():
        monkeypatch.setenv(f"SEMBLANCE_MAX_{name}", str(most))
    with Client.local(models) as small:
        assert small.models().limits.max_pairs == 4
        assert_alike(ask(small), expected)

    async def at_once() -> Any:
        async with AsyncClient.local(models) as opened:
            return await opened.similarity(pairs)

    assert_alike(asyncio.run(at_once()), expected[0])


def test_a_body_over_the_limit_is_halved(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_MAX_BODY_BYTES", "200")
    with Client.local(models) as small:
        assert len(small.similarity(PAIRS * 5).results) == 15
        with pytest.raises(TooLarge) as caught:
            small.similarity([*PAIRS, ("a man", "dog " * 60)])
    assert (caught.value.limit, caught.value.field) == (200, "pairs.3")


@pytest.mark.parametrize(
    ("ask", "kind", "field"),
    [
        (lambda c: c.similarity([*PAIRS, ("a", " ")]), InvalidRequest, "pairs.3.b"),
        (lambda c: c.similarity([("a", "b")] * 300 + [("a", "")]), InvalidRequest, "pairs.300.b"),
        (lambda c: c.similarity([]), InvalidRequest, "pairs"),
        (lambda c: c.similarity(PAIRS, model="nobody"), NotFound, "model"),
        (lambda c: c.entailment(PAIRS, model="avg-paraphrase"), InvalidRequest, "model"),
        (lambda c: c.rank("", CANDIDATES), InvalidRequest, "query"),
        (lambda c: c.rank("a", CANDIDATES, rerank_top=2), InvalidRequest, "rerank_model"),
        (lambda c: c.embed(["a", "x" * 100_001]), TooLarge, "sentences.1"),
    ],
)
def test_a_refusal_names_the_field(
    client: Client, ask: Callable[[Client], Any], kind: type[RequestFailed], field: str
) -> None:
    with pytest.raises(kind) as caught:
        ask(client)
    assert caught.value.field == field
    assert caught.value.request_id


def test_a_service_that_says_no_to_health_has_answered() -> None:
    body = {"status": "unready", "reasons": ["model m: wrong"], "models": ["m"], "redis": "off"}
    transport = httpx.MockTransport(lambda _: httpx.Response(503, json=body))
    with Client("http://service", transport=transport) as client:
        assert client.health().reasons == ["model m: wrong"]


def test_a_closed_client_says_so() -> None:
    with Client("http://service") as client:
        pass
    with pytest.raises(InvalidArgument, match="has been closed"):
        client.models()


def test_who_asks_while_another_closes_a_service_in_this_process_is_told(models: Path) -> None:
    client = Client.local(models)
    client.health()
    said: list[BaseException] = []

    def ask() -> None:
        try:
            while True:
                client.similarity([(f"a dog {i}", f"a cat {i}") for i in range(1000)])
        except SemblanceError as error:
            said.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    time.sleep(0.2)
    client.close()
    asking.join(60)
    assert [type(error) for error in said] == [InvalidArgument]


def test_connections_of_an_event_loop_that_has_ended_are_made_anew() -> None:
    """As where `asyncio.run` is called for each request."""
    body = {"status": "ready", "reasons": [], "models": [], "redis": "off"}
    said: list[RuntimeError | httpx.Response] = [RuntimeError("Event loop is closed"), httpx.Response(200, json=body)]

    def answer(_: httpx.Request) -> httpx.Response:
        if isinstance(found := said.pop(0), RuntimeError):
            raise found
        return found

    async def at_once(_: float) -> None:
        pass

    client = AsyncClient("http://service", transport=httpx.MockTransport(answer), sleep=at_once)
    assert asyncio.run(client.health()).status == "ready"


def test_no_password_is_in_a_message() -> None:
    with Client("http://bob:hunter2@127.0.0.1:9/path", retries=0) as client, pytest.raises(NoAnswer) as caught:
        client.health()
    assert "http://127.0.0.1:9/path" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_key_and_our_name_are_sent() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"status": "ready", "reasons": [], "models": [], "redis": "off"})

    with Client("https://host/behind/a/path", api_key="s3cret", transport=httpx.MockTransport(answer)) as client:
        client.health()
    assert str(seen[0].url) == "https://host/behind/a/path/health/ready"
    assert seen[0].headers["authorization"] == "Bearer s3cret"
    assert seen[0].headers["user-agent"].startswith("semblance/")


def test_the_wire(models: Path) -> None:
    with running(models, api_keys=f"tests:{digest_of('s3cret')}") as (process, url):
        with Client(url, api_key="s3cret") as client:
            assert client.similarity(PAIRS).model == "avg-paraphrase"
        with Client(url) as client:
            assert client.health().status == "ready"
            with pytest.raises(Unauthorized, match="give the API key as"):
                client.similarity(PAIRS)
        process.kill()
        process.wait()
        with Client(url, retries=0) as client, pytest.raises(NoAnswer, match=f"no answer from {url}: "):
            client.similarity(PAIRS)


def test_another_program_on_the_port_is_told_from_the_service() -> None:
    page = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>It works!</html>"))
    with Client("http://service", transport=page) as client, pytest.raises(UnexpectedAnswer):
        client.models()
    moved = httpx.MockTransport(lambda _: httpx.Response(301, headers={"location": "https://elsewhere"}))
    with Client("http://service", transport=moved) as client, pytest.raises(RequestFailed, match="Moved Permanently"):
        client.models()
    for page in (b"<html>Bad Gateway</html>", b"", b"[]", b'{"error": "no"}', b'{"error": {}}', b"\xff", b"[" * 10**5):
        broken = httpx.MockTransport(lambda _, page=page: httpx.Response(502, content=page))
        with (
            Client("http://service", retries=0, transport=broken) as client,
            pytest.raises(ServiceFailed, match=r"Bad Gateway \(http_502"),
        ):
            client.models()


@pytest.mark.parametrize("said", [{"limit": "abc"}, {"limit": 0.5}, {"field": 5}, {"field": f"pairs.{'9' * 5000}"}])
def test_odd_details_of_a_refusal_are_no_other_error(said: dict[str, Any]) -> None:
    refusal = {"error": {"code": "too_slow", "message": "no", **said}}
    transport = httpx.MockTransport(lambda _: httpx.Response(413, json=refusal))
    with Client("http://service", transport=transport) as client, pytest.raises(TooLarge, match="no"):
        client.similarity(PAIRS[:1])


def of_document(document: int) -> dict[str, Any]:
    passage = {"document": document, "start": 0, "end": 1, "text": "a", "headings": [], "differences": []}
    passage |= {"label": "entailed", "probability": 1.0}
    sure = {"entailed": 0.0, "contradicted": 0.0, "not_stated": 1.0}
    return {
        "label": "not_stated",
        "confidence": 1.0,
        "probabilities": sure,
        "runner_up": passage,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("method", "given", "answer"),
    [
        ("similarity", (PAIRS[:1],), {"model": "m", "scale": "similarity", "results": []}),
        ("embed", (["a"],), {"model": "m", "dim": 2, "embeddings": [], "truncated": []}),
        ("embed", (["a"],), {"model": "m", "dim": 2, "embeddings": [[1.0]], "truncated": [False]}),
        ("rank", ("a", ["b"]), {**RANKED, "results": [{"index": 1, "score": 1.0, "raw_score": 1.0}]}),
        ("rank", ("a", ["b"]), {**RANKED, "truncated": {"query": False, "candidates": [-1]}}),
        ("dedupe", (["a"],), {"model": "m", "results": [], "review": [], "apart": []}),
        *(("claims", (["a"], ["b"]), {"model": "m", "encoder": "m", "results": [of_document(i)]}) for i in (1, -1)),
    ],
)
def test_an_answer_about_other_items_is_none(method: str, given: tuple[Any, ...], answer: dict[str, Any]) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    with Client("http://service", transport=transport) as client, pytest.raises(UnexpectedAnswer):
        getattr(client, method)(*given)


def test_an_environment_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy")
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidArgument, match=r"^HTTP_PROXY, .* of the environment cannot be used: .*ftp://proxy"):
            kind("http://host")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "localhost:8000"}, "expected a URL such as"),
        ({"url": "http://host", "api_key": "two\nlines"}, "printable ASCII"),
        ({"url": "http://host", "api_key": "s3cret "}, "printable ASCII without spaces around$"),
        ({"url": "http://host", "api_key": ""}, "printable ASCII"),
        ({"url": "http://host:99999"}, "expected a URL such as"),
        ({"url": "http://bob:hunter2@host:99999"}, "found 'http://host:99999'"),
        ({"url": "http://bob:hunter2@host", "api_key": "s3cret"}, "give one of them"),
        ({"url": "http://host\n"}, "expected a URL such as"),
        ({"url": "http://ex\xe4mple..com"}, "expected a URL such as"),
        ({"url": "http://host/?a=b"}, "expected a URL such as"),
        ({"url": "http://a..b"}, "expected a URL such as"),
        ({"url": f"http://{'a' * 70}.com"}, "expected a URL such as"),
        ({"url": "http://host", "timeout": None}, "timeout must be seconds"),
        ({"url": "http://host", "retries": "3"}, "retries must be a number"),
        ({"url": "http://host", "timeout": float("nan")}, "timeout must be seconds"),
        ({"url": "http://host", "timeout": 1e300}, "timeout must be seconds, more than 0 and at most 86400"),
        ({"url": "http://host", "max_items": 0}, "max_items must be at least 1"),
        ({"url": "http://host", "concurrency": 0}, "concurrency must be at least 1"),
        ({"url": "http://host", "concurrency": "4"}, "concurrency must be at least 1, found '4'"),
        ({"url": "http://host", "concurrency": None}, "concurrency must be at least 1"),
        ({"url": "http://two words"}, "expected a URL such as"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    for kind in (AsyncClient,) if "concurrency" in arguments else (Client, AsyncClient):
        with pytest.raises(InvalidArgument, match=message):
            kind(**arguments)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("rank", ("q", "not a list"), "candidates: expected a list of texts, .*, found the text 'not a list'"),
        ("rank", ("q", ["x", None]), "candidates.1: expected a text, found a value of type NoneType"),
        ("rank", (["q"], ["x"]), "query: expected a text, found a value of type list"),
        ("similarity", ("ab",), "pairs: expected a list of pairs of texts, found the text 'ab'"),
        ("similarity", (["ab"],), "pairs.0: expected a list of texts, .*, found the text 'ab'"),
        ("similarity", ([("a", "b", "c")],), "pairs.0: expected two texts, found 3"),
        ("similarity", ([{"a": "x", "b": "y"}],), "pairs.0: expected a list of texts, .*, found a value of type dict"),
        ("similarity", ([{"a", "b"}],), "pairs.0: expected a list of texts, .*, found a value of type set"),
        ("entailment", ([("a", "b"), ("a", 1)],), "pairs.1.1: expected a text, found a value of type int"),
        ("claims", ("a", "not a list"), "claims: expected a list of texts"),
        ("classify", ("not a list",), "texts: expected a list of texts"),
        ("classify", (["x"], "not a list"), "labels: expected a list of texts"),
        ("embed", (7,), "sentences: expected a list of texts, .*, found a value of type int"),
        ("embed", (["a", "\ud800"],), "sentences.1: a lone surrogate is not a character"),
        ("explain", ("a", 7), "b: expected a text, found a value of type int"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_what_can(method: str, given: tuple[Any, ...], message: str) -> None:
    with Client("http://host") as client, pytest.raises(InvalidArgument, match=message):
        getattr(client, method)(*given)
