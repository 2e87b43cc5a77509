"""Whatever goes wrong, each dialect is told in its own words: status, body, and when to come again."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from fastapi.routing import iter_route_contexts

from service.errors import Overloaded
from tests.harness import fakes
from tests.harness.dialects import BY_PATH, COHERE, OPENAI, OURS, REQUESTS, TEI, Errors, slow
from tests.harness.estimates import unmeasured
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve, expect, let_in

pytestmark = pytest.mark.anyio
NO_GRAPH = {"/tei/tokenize", "/cohere/v1/tokenize"}  # texts are read alone


def said(response: httpx.Response) -> str:
    """The message, wherever the dialect keeps it."""
    body = response.json()
    error = body.get("error", body)
    message: str = error["message"] if isinstance(error, dict) else error
    return message


def told(response: httpx.Response, errors: Errors, status: int, kind: str) -> None:
    """An error has the dialect's fields, and TEI's its type."""
    path = response.request.url.path
    assert response.status_code == status, (path, response.text)
    assert set(response.json()) == errors.fields, path
    assert errors is not TEI or response.json()["error_type"] == kind, path


def waits(response: httpx.Response, least: int = 1, most: int = 1) -> None:
    """When to come again, in seconds and in milliseconds."""
    assert least <= int(response.headers["retry-after"]) <= most
    assert least * 1000 <= int(response.headers["retry-after-ms"]) <= most * 1000


async def test_a_good_body_is_answered_and_counted(client: Client) -> None:
    asked = Counter((ask.path, ask.body.get("model", "avg-paraphrase")) for ask in REQUESTS.values())
    for ask in REQUESTS.values():
        assert (await client.post(ask.path, json=ask.body)).status_code == 200, ask.path
    for path, model in asked:
        assert await client.metric("semblance_request_seconds_count", route=path, model=model) == asked[path, model]
    for path in BY_PATH:
        count = sum(count for (other, _), count in asked.items() if other == path)
        assert await client.metric("semblance_requests_total", route=path, status="200") == count


def overloaded(client: Client) -> None:
    refusal = Overloaded("the wait would be more than 2 seconds")
    client.app.service.queue.admissions._refusal = lambda _: refusal
    for model in client.app.service.registry.values():
        expect(model.scorer, 1.0)


def broken(client: Client) -> None:
    for model in client.app.service.registry.values():
        if model.manifest.encoder:
            model.scorer.graphs["encoder.onnx"].run = lambda _: np.full((1, fakes.DIM), np.nan, np.float32)


def mistaken(client: Client) -> None:
    for model in client.app.service.registry.values():
        model.scorer.tokenise = None


def late(client: Client) -> None:
    unmeasured(client)
    slow(client, 0.1, "avg-sick")


@pytest.mark.parametrize(
    ("fault", "settings", "status", "kind", "words", "logged"),
    [
        (overloaded, {}, 429, "Overloaded", "the wait would be more than", ""),
        (late, {"request_timeout": 0.05, "cache_bytes": 0}, 503, "Unhealthy", "no answer within 0.05 seconds", ""),
        (broken, {"cache_bytes": 0}, 500, "Backend", "not finite", "not finite"),
        (mistaken, {}, 500, "Backend", "", "TypeError"),
    ],
    ids=["overload", "no answer in time", "a graph that fails", "a mistake of ours"],
)
async def test_faults(serve: Serve, caplog, fault: Callable, settings, status: int, kind, words, logged) -> None:
    async with serve(**settings) as client:
        fault(client)
        for ask in REQUESTS.values():
            if ask.path in NO_GRAPH and fault is not mistaken:
                continue
            if fault is late:  # and not known to be: it would be refused at once
                expect(client.app.service.registry["avg-sick"].scorer, 0.002)
            response = await client.post(ask.path, json=ask.body | ({"model": "avg-sick"} if fault is late else {}))
            expected = 424 if fault is broken and ask.errors is TEI else status
            told(response, ask.errors, expected, kind)
            assert words in said(response)
            assert "NoneType" not in response.text
            if status in (429, 503):
                waits(response)
            assert await client.metric("semblance_requests_total", route=ask.path, status=str(expected)) >= 1
    assert logged in caplog.text


async def test_too_often(serve: Serve) -> None:
    async with serve(rate_limit="1/hour") as client:
        assert (await client.get("/models")).status_code == 200
        for path, errors in BY_PATH.items():
            response = await client.post(path, json={})
            told(response, errors, 429, "Overloaded")
            waits(response, 3001, 3600)
            assert said(response) == "more than 1/hour requests of one caller (SEMBLANCE_RATE_LIMIT)"
        openai = (await client.post("/v1/embeddings", json={})).json()["error"]
        assert (openai["type"], openai["code"]) == ("rate_limit_error", "rate_limit_exceeded")


async def test_every_post_path_of_a_dialect_is_asked_here(client: Client) -> None:
    routes = iter_route_contexts(client.app.routes)
    asking = {each.path for each in routes if getattr(each, "body_field", None) is not None}
    assert asking - set(GOOD) < set(BY_PATH)


async def test_key_size_and_type(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct horse"), max_body_bytes=50) as client:
        key = {"authorization": "Bearer correct horse"}
        described = (await client.get("/openapi.json", headers=key)).json()
        assert described["security"] == [{"HTTPBearer": []}, {"APIKeyHeader": []}]
        assert described["paths"]["/health/live"]["get"]["security"] == []
        for path, errors in BY_PATH.items():
            locked = await client.post(path, json={})
            large = await client.post(path, content=b" " * 51, headers=key)
            plain = await client.post(path, content=b"{}", headers=key | {"content-type": "text/plain"})
            broken = await client.post(path, content=b"{", headers=key)
            wrong = await client.put(path, headers=key)
            for response, status in ((locked, 401), (large, 413), (plain, 415), (broken, 400), (wrong, 405)):
                told(response, errors, status, "Unauthorized" if status == 401 else "Validation")
                assert response.headers["content-type"] == "application/json"
                assert "correct horse" not in response.text
            assert locked.headers["www-authenticate"] == "Bearer"
            assert wrong.headers["allow"] == "POST"


async def test_a_body_that_stays_away(serve: Serve) -> None:
    async with serve(request_timeout=0.02) as client:
        for path, errors in BY_PATH.items():
            sent: list[dict] = []

            async def receive() -> dict:
                await asyncio.sleep(60)
                raise AssertionError("given up long before")

            async def send(message, sent=sent) -> None:
                sent.append(message)

            await client.app({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
            assert sent[0]["status"] == 408
            assert set(json.loads(sent[1]["body"])) == errors.fields, path


async def test_keys_as_these_clients_send_them(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct-horse")) as client:
        for headers, status in (
            ({"authorization": "Bearer correct-horse"}, 200),
            ({"authorization": "BEARER correct-horse"}, 200),
            ({"authorization": "correct-horse"}, 200),  # LlamaIndex' TEI classes
            ({"x-api-key": "correct-horse"}, 200),
            ({"authorization": "Basic x", "x-api-key": "correct-horse"}, 200),
            ({"authorization": "Basic correct-horse"}, 401),
            ({"authorization": "correct-horse-battery"}, 401),
            ({"authorization": "Bearer"}, 401),
            ({"authorization": ""}, 401),
            ({}, 401),
        ):
            for ask in REQUESTS.values():
                assert (await client.post(ask.path, json=ask.body, headers=headers)).status_code == status, ask.path


async def test_paths_that_are_nowhere(client: Client) -> None:
    found = {}
    for path, errors in (
        ("/v1/nothing", OPENAI), ("/openai/x", OPENAI), ("/v2/nothing", COHERE), ("/cohere/v3", COHERE),
        ("/tei/x", TEI), ("/v1x", OURS), ("/teix", OURS), ("/x", OURS),
    ):  # fmt: skip
        response = await client.get(path)
        told(response, errors, 404, "Validation")
        found[path] = response.json()
    assert await client.metric("semblance_requests_total", route="other", status="404") == len(found)
    said_of_openai = {"type": "invalid_request_error", "param": None, "code": "not_found"}
    assert found["/v1/nothing"] == {"error": {"message": "Not Found", **said_of_openai}}
    assert found["/v1x"]["error"]["request_id"]
