"""Paths that are nowhere: the nearest route is named, where one is near."""

import pytest

from tests.harness.service import Client

pytestmark = pytest.mark.anyio
NEAR = {
    "//embed": "POST /embed",
    "/embed/": "POST /embed",
    "/Embed": "POST /embed",
    "/EMBED/": "POST /embed",
    "/embeding": "POST /embed",
    "/openai/embeddings": "POST /openai/v1/embeddings",
    "/v1/v1/embeddings": "POST /v1/embeddings",
    "/v1//embeddings": "POST /v1/embeddings",
    "/api/v1/embeddings": "POST /v1/embeddings",
    "/v1/Models/": "GET /v1/models",
    "/v1/similarity": "POST /similarity",
    "/v1/rank": "POST /rank",
    "/similarty": "POST /similarity",
    "/models/": "GET /models",
    "/health/alive": "GET /health/live",
}
GONE = {
    "/pooling": "POST /v1/embeddings",
    "/infinity/embeddings": "POST /v1/embeddings",
    "/infinity/rerank": "POST /v1/rerank",
    "/v2/models/avg-sick/infer": "POST /v1/embeddings or /v2/rerank",
    "/v2/health/ready": "GET /health/ready",
    "/embeddings": "POST /v1/embeddings",
    "/rerank": "POST /v1/rerank, or /tei/rerank with texts",
    "/score": "POST /openai/v1/score",
    "/v1/score": "POST /openai/v1/score",
    "/v1/embed": "POST /cohere/v1/embed",
    "/v1/tokenize": "POST /cohere/v1/tokenize",
    "/predict": "POST /tei/predict",
    "/tokenize": "POST /tei/tokenize",
    "/info": "GET /tei/info",
}
FAR = ["/x", "/v1/chat/completions", "/v1/nothing", "/favicon.ico", "/%00", "/admin/login.php", "/" + "embed" * 1000]


@pytest.mark.parametrize("path", NEAR)
async def test_the_nearest_route_is_named(lasting: Client, path: str) -> None:
    response = await lasting.post(f"http://service{path}", json={})
    error = response.json()["error"]
    message = error if isinstance(error, str) else error["message"]
    assert response.status_code == 404
    assert message == f"no route '{path}'; did you mean {NEAR[path]}?"
    if isinstance(error, dict):
        assert error["code"] == "not_found"


@pytest.mark.parametrize("path", GONE)
async def test_a_route_that_went_names_its_successor(lasting: Client, path: str) -> None:
    response = await lasting.post(path, json={})
    assert response.status_code == 404
    body = response.json()
    said = body["message"] if "message" in body else body["error"]["message"]
    assert said == f"no route '{path}'; it is gone: ask {GONE[path]}"


async def test_a_method_that_a_path_does_not_have_is_told_which_it_has(lasting: Client) -> None:
    for path, said in (("/similarity", "did you mean POST /similarity?"), ("/", "clients of TEI ask POST /tei")):
        response = await (lasting.get(path) if path == "/similarity" else lasting.post(path, json={}))
        assert response.status_code == 405
        assert response.json()["error"]["message"] == f"Method Not Allowed; {said}"


@pytest.mark.parametrize("path", FAR)
async def test_no_route_is_named_that_is_far(lasting: Client, path: str) -> None:
    response = await lasting.post(path, json={})
    assert response.status_code == 404
    assert response.json()["error"]["message"] == "Not Found"
