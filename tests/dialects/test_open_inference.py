"""The Open Inference Protocol's health, readiness and metadata."""

import pytest

from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio


async def test_the_server(lasting: Client) -> None:
    server = (await lasting.get("/v2")).json()
    assert (await lasting.get("/v2/health/live")).json() == {"live": True}
    ready = await lasting.get("/v2/health/ready")
    assert server.pop("version")
    assert server == {"name": "semblance", "extensions": ["binary_tensor_data"]}
    assert (ready.status_code, ready.json()) == (200, {"ready": True})


async def test_a_model_that_answers_otherwise_is_not_ready(client: Client) -> None:
    encoder = client.app.service.registry["avg-paraphrase"].scorer.graphs["encoder.onnx"]
    right = encoder.run
    encoder.run = lambda feeds: right(feeds) ** 2
    client.app.service.registry["avg-paraphrase"].opened.check()
    server = await client.get("/v2/health/ready")
    model = await client.get("/v2/models/avg-paraphrase/ready")
    other = await client.get("/v2/models/avg-sick/ready")
    assert (server.status_code, server.json()) == (503, {"ready": False})
    assert (model.status_code, model.json()) == (503, {"name": "avg-paraphrase", "ready": False})
    assert (other.status_code, other.json()) == (200, {"name": "avg-sick", "ready": True})


async def test_the_metadata_names_the_tensors_of_an_alias(serve: Serve) -> None:
    async with serve(model_aliases={"stable": "avg-sick"}) as client:
        found = (await client.get("/v2/models/stable")).json()
        embeds_only = (await client.get("/v2/models/avg-paraphrase")).json()
    assert (found["name"], found["platform"]) == ("avg-sick", "onnx_onnxv1")
    shapes = {tensor["name"]: tensor["shape"] for tensor in found["inputs"]}
    assert shapes == {
        "a": [-1], "b": [-1], "query": [1], "candidates": [-1], "premise": [-1], "hypothesis": [-1], "text": [-1],
    }  # fmt: skip
    assert {tensor["datatype"] for tensor in found["inputs"]} == {"BYTES"}
    outputs = {tensor["name"]: (tensor["datatype"], tensor["shape"]) for tensor in found["outputs"]}
    assert outputs == {
        "score": ("FP64", [-1]),
        "raw_score": ("FP64", [-1]),
        "rating": ("FP64", [-1]),
        "order": ("INT64", [-1]),
        "probabilities": ("FP64", [-1, 3]),
        "embedding": ("FP32", [-1, fakes.DIM]),
    }
    assert "premise" not in {tensor["name"] for tensor in embeds_only["inputs"]}
    assert "probabilities" not in {tensor["name"] for tensor in embeds_only["outputs"]}


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v2/models/nope", 404, "no model 'nope'; models for similarity: "),
        ("GET", "/v2/models/nope/ready", 404, "no model 'nope'"),
        ("GET", "/v2/models/avg-sick/infer", 405, "Method Not Allowed"),
        ("POST", "/v2/models/avg-sick/infer/", 404, "did you mean POST /v2/models/avg-sick/infer?"),
        ("POST", "/v2/health/live", 405, "Method Not Allowed"),
    ],
)
async def test_errors(lasting: Client, method: str, path: str, status: int, words: str) -> None:
    response = await lasting.request(method, path)
    assert response.status_code == status
    assert set(response.json()) == {"error"}
    assert words in response.json()["error"]
    assert response.headers["x-request-id"]
