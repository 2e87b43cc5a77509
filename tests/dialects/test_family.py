"""Whatever goes wrong, each family is told in its own words: status, body, and when to come again."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import numpy as np
import pytest

from service.api.route import Route
from tests.harness import fakes
from tests.harness.dialects import COHERE, JINA, OPEN_INFERENCE, OPENAI, OURS, REQUESTS, TEI, slow
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve, expect, let_in

pytestmark = pytest.mark.anyio
NO_GRAPH = {"/tokenize", "/v1/tokenize"}  # texts are read alone
POST_PATHS = {path for path, _, _ in REQUESTS.values()}


def said(response: httpx.Response) -> str:
    """The message, wherever the family keeps it."""
    body = response.json()
    error = body.get("error", body)
    message: str = error["message"] if isinstance(error, dict) else error
    return message


async def ask_all(client: Client, **more: object) -> AsyncIterator[tuple[str, set[str], httpx.Response]]:
    """Every request of every family: its path, the fields of its family's errors, and what is answered."""
    for path, body, fields in REQUESTS.values():
        yield path, fields, await client.post(path, json={**body, **more})


async def test_a_good_body_is_answered_and_counted(client: Client) -> None:
    async for path, _, response in ask_all(client):
        assert response.status_code == 200, path
    for path in POST_PATHS:
        asked = [body.get("model", "avg-paraphrase") for other, body, _ in REQUESTS.values() if other == path]
        assert await client.metric("semblance_requests_total", route=path, status="200") == len(asked)
        assert await client.metric("semblance_request_seconds_count", route=path, model=asked[0]) == len(asked)


async def test_overload(client: Client) -> None:
    service = client.app.service
    service.pool._limit = 0
    for model in service.registry.values():
        expect(model.scorer, 1.0)
    async for path, fields, response in ask_all(client):
        if path in NO_GRAPH:
            continue
        assert response.status_code == 429, path
        assert set(response.json()) == fields, path
        assert response.headers["retry-after"] == "1"
        assert response.headers["retry-after-ms"] == "1000"
        assert "waiting already" in said(response)
        if fields == TEI:
            assert response.json()["error_type"] == "Overloaded"
        assert await client.metric("semblance_requests_total", route=path, status="429") >= 1


async def test_no_answer_in_time(serve: Serve) -> None:
    async with serve(request_timeout=0.02, cache_bytes=0) as client:
        slow(client, 0.04, "avg-sick", expected=0.002)
        async for path, fields, response in ask_all(client, model="avg-sick"):
            if path in NO_GRAPH:
                continue
            assert response.status_code == 503, path
            assert set(response.json()) == fields, path
            assert response.headers["retry-after"] == "1"
            assert response.headers["retry-after-ms"] == "1000"
            assert "no answer within 0.02 seconds" in said(response)


async def test_too_often(serve: Serve) -> None:
    async with serve(rate_limit="1/hour") as client:
        assert (await client.get("/models")).status_code == 200
        for path, fields in BY_PATH.items():
            response = await client.post(path, json={})
            assert response.status_code == 429, path
            assert set(response.json()) == fields, path
            assert 3000 < int(response.headers["retry-after"]) <= 3600
            assert 3000_000 < int(response.headers["retry-after-ms"]) <= 3600_000
            assert said(response) == "more than 1/hour requests of one caller (SEMBLANCE_RATE_LIMIT)"
            if fields == TEI:
                assert response.json()["error_type"] == "Overloaded"
        openai = (await client.post("/v1/embeddings", json={})).json()["error"]
        assert (openai["type"], openai["code"]) == ("rate_limit_error", "rate_limit_exceeded")


async def test_a_graph_that_fails(serve: Serve, caplog) -> None:
    async with serve(cache_bytes=0) as client:
        for model in client.app.service.registry.values():
            if model.manifest.encoder:
                model.scorer.graphs["encoder.onnx"].run = lambda _: np.full((1, fakes.DIM), np.nan, np.float32)
        async for path, fields, response in ask_all(client):
            if path in NO_GRAPH:
                continue
            assert response.status_code == (424 if fields == TEI else 500), path
            assert set(response.json()) == fields, path
            assert "not finite" in said(response)
            if fields == TEI:
                assert response.json()["error_type"] == "Backend"
        assert await client.metric("semblance_requests_total", route="/predict", status="424") == 1
    assert "not finite" in caplog.text


async def test_a_mistake_of_ours(client: Client, caplog) -> None:
    for model in client.app.service.registry.values():
        model.scorer.read = None
    async for path, fields, response in ask_all(client):
        assert response.status_code == 500, path
        assert set(response.json()) == fields, path
        assert "NoneType" not in response.text
    assert "TypeError" in caplog.text


async def test_every_post_path_of_a_dialect_is_asked_here(client: Client) -> None:
    routes = client.app.app.routes
    scoring = {each.path for each in routes if isinstance(each, Route) and each.operations[0].scores}
    named = {path for path in scoring if "{" in path}  # tests/dialects/test_infer.py
    assert scoring - named - set(GOOD) < POST_PATHS
    assert set(BY_PATH) == POST_PATHS


# Refused before the body is read, so by the path alone.
BY_PATH = {
    "/similarity": OURS,
    "/embed": OURS,
    "/predict": TEI,
    "/": TEI,
    "/rerank": JINA,
    "/score": JINA,
    "/v1/score": JINA,
    "/infinity/rerank": JINA,
    "/v1/rerank": JINA | COHERE,
    "/v2/rerank": COHERE,
    "/v1/embeddings": OPENAI,
    "/infinity/embeddings": OPENAI,
    "/embeddings": OPENAI,
    "/pooling": JINA,
    "/tokenize": TEI,
    "/v1/tokenize": COHERE,
    "/v1/embed": COHERE,
    "/v2/embed": COHERE,
}


async def test_key_size_and_type(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct horse"), max_body_bytes=50) as client:
        key = {"authorization": "Bearer correct horse"}
        for path, fields in BY_PATH.items():
            locked = await client.post(path, json={})
            large = await client.post(path, content=b" " * 51, headers=key)
            plain = await client.post(path, content=b"{}", headers=key | {"content-type": "text/plain"})
            broken = await client.post(path, content=b"{", headers=key)
            wrong = await client.put(path, headers=key)
            for response, status in ((locked, 401), (large, 413), (plain, 415), (broken, 400), (wrong, 405)):
                assert response.status_code == status
                assert set(response.json()) == fields, path
                assert response.headers["content-type"] == "application/json"
                assert "correct horse" not in response.text
            assert locked.headers["www-authenticate"] == "Bearer"
            # GET / is the playground.
            assert set(wrong.headers["allow"].split(", ")) == ({"GET", "HEAD", "POST"} if path == "/" else {"POST"})


async def test_a_body_that_stays_away(serve: Serve) -> None:
    async with serve(request_timeout=0.02) as client:
        for path, fields in BY_PATH.items():
            sent: list[dict] = []

            async def receive() -> dict:
                await asyncio.sleep(60)
                raise AssertionError("given up long before")

            async def send(message, sent=sent) -> None:
                sent.append(message)

            await client.app({"type": "http", "method": "POST", "path": path, "headers": []}, receive, send)
            assert sent[0]["status"] == 408
            assert set(json.loads(sent[1]["body"])) == fields, path


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
            for path, body, _ in REQUESTS.values():
                assert (await client.post(path, json=body, headers=headers)).status_code == status, (path, headers)


async def test_paths_that_are_nowhere(client: Client) -> None:
    for path, fields in (
        ("/v1/chat/completions", OPENAI),
        ("/v2/nothing", OPEN_INFERENCE),
        ("/info/x", TEI),
        ("/v1x", OURS),
        ("/x", OURS),
    ):
        response = await client.get(path)
        assert response.status_code == 404
        assert set(response.json()) == fields, path
    assert await client.metric("semblance_requests_total", route="other", status="404") == 5
    openai = (await client.get("/v1/nothing")).json()["error"]
    ours = (await client.get("/v1x")).json()["error"]
    open_inference = (await client.get("/v2/nothing")).json()["error"]
    assert openai == {"message": "Not Found", "type": "invalid_request_error", "param": None, "code": "not_found"}
    assert ours["request_id"]
    assert open_inference == "Not Found"
