"""The Open Inference Protocol's health, readiness and metadata."""

import pytest

from tests.service.conftest import Serve, let_in

pytestmark = pytest.mark.anyio


async def test_the_server(serve: Serve) -> None:
    async with serve() as client:
        server = (await client.get("/v2")).json()
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        ready = await client.get("/v2/health/ready")
    assert server.pop("version")
    assert server == {"name": "semblance", "extensions": []}
    assert (ready.status_code, ready.json()) == (200, {"ready": True})


async def test_a_model_that_answers_otherwise_is_not_ready(serve: Serve) -> None:
    async with serve() as client:
        scorer = client.app.service.registry["avg-paraphrase"].scorer
        right = scorer._encoder
        scorer._encoder = lambda feeds: right(feeds) ** 2
        client.app.service.registry["avg-paraphrase"].check()
        server = await client.get("/v2/health/ready")
        model = await client.get("/v2/models/avg-paraphrase/ready")
        other = await client.get("/v2/models/avg-sick/ready")
    assert (server.status_code, server.json()) == (503, {"ready": False})
    assert (model.status_code, model.json()) == (503, {"name": "avg-paraphrase", "ready": False})
    assert (other.status_code, other.json()) == (200, {"name": "avg-sick", "ready": True})


async def test_no_tensors_are_promised_that_infer_does_not_take(serve: Serve) -> None:
    async with serve(model_aliases={"stable": "avg-sick"}) as client:
        found = (await client.get("/v2/models/stable")).json()
        infer = await client.post("/v2/models/stable/infer", json={"inputs": []})
    assert infer.status_code == 404
    # So the metadata names no tensors: a client that believed it would send them.
    assert found == {"name": "avg-sick", "platform": "onnx_onnxv1", "inputs": [], "outputs": []}


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v2/models/nope", 404, "no model 'nope'; known models: avg-paraphrase"),
        ("GET", "/v2/models/nope/ready", 404, "no model 'nope'"),
        ("POST", "/v2/models/avg-sick/infer", 404, "Not Found"),
        ("POST", "/v2/health/live", 405, "Method Not Allowed"),
    ],
)
async def test_errors(serve: Serve, method: str, path: str, status: int, words: str) -> None:
    async with serve() as client:
        response = await client.request(method, path)
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert words in response.json()["error"]
    assert response.headers["x-request-id"]


async def test_health_needs_no_key_and_models_do(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct horse")) as client:
        assert (await client.get("/v2/health/live")).status_code == 200
        assert (await client.get("/v2/health/ready")).status_code == 200
        for path in ("/v2", "/v2/models/avg-sick", "/v2/models/avg-sick/ready"):
            refused = await client.get(path)
            assert refused.status_code == 401
            assert set(refused.json()) == {"error"}
            assert (await client.get(path, headers={"x-api-key": "correct horse"})).status_code == 200
