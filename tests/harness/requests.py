"""A request that each route answers, and the shape of a refusal."""

import httpx

from tests.harness.service import Client

PAIR = {"a": "a man", "b": "a dog"}
GOOD = {
    "/similarity": {"pairs": [PAIR]},
    "/rank": {"query": "a man", "candidates": ["a dog", "a man"]},
    "/entailment": {"pairs": [{"premise": "a man", "hypothesis": "a dog"}]},
    "/claims": {"documents": "a man", "claims": ["a dog"]},
    "/dedupe": {"texts": ["a man", "A man!", "a dog"]},
    "/classify": {"text": "a man", "labels": ["dog", "cat"], "template": "{} ."},
    "/embed": {"sentences": ["a man"]},
    "/explain": {"a": "a man", "b": "a dog"},
}


async def refused(client: Client, path: str, **request: object) -> tuple[int, dict[str, object]]:
    response = await client.post(path, **request)  # type: ignore[arg-type]
    return response.status_code, error_of(response)


def error_of(response: httpx.Response) -> dict[str, object]:
    """The error, once its shape is seen to be the one shape."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, object] = body["error"]
    assert set(error) == {"code", "message", "field", "limit", "request_id"}
    assert error["request_id"] == response.headers["x-request-id"]
    return error


OPEN = {
    "/",
    "/docs",
    "/tei/health",
    "/static-offline-docs/favicon.png",
    "/health",
    "/health/live",
    "/health/ready",
}


def refusal(status: int = 429, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=names, json={"error": {"code": "c", "message": "m"}})
