"""Cohere's `embed` and `tokenize` beyond what all dialects have (test_conformance.py)."""

import base64

import numpy as np
import pytest

from tests.harness.service import Client

pytestmark = pytest.mark.anyio
TEXTS = ["a man", "a dog sleeps"]


async def test_the_embeddings_in_each_type_and_what_is_said_beside(lasting: Client) -> None:
    first = (await lasting.post("/cohere/v1/embed", json={"texts": TEXTS})).json()
    typed = (
        await lasting.post("/cohere/v1/embed", json={"texts": TEXTS, "embedding_types": ["base64", "float"]})
    ).json()
    second = (await lasting.post("/cohere/v2/embed", json={"texts": TEXTS, "input_type": "search_query"})).json()
    inputs = [{"content": [{"type": "text", "text": text}]} for text in TEXTS]
    parts = (await lasting.post("/cohere/v2/embed", json={"inputs": inputs})).json()
    assert (first["response_type"], second["response_type"]) == ("embeddings_floats", "embeddings_by_type")
    decoded = [np.frombuffer(base64.b64decode(one), "<f4") for one in typed["embeddings"]["base64"]]
    for found in (typed["embeddings"]["float"], decoded, second["embeddings"]["float"]):
        np.testing.assert_allclose(found, first["embeddings"], atol=1e-6)
    assert set(second["embeddings"]) == {"float"}
    assert first["texts"] == second["texts"] == parts["texts"] == TEXTS
    assert second["meta"]["api_version"] == {"version": "2"}


async def test_int8_points_where_the_embedding_points_and_fewer_dimensions_are_the_first(lasting: Client) -> None:
    whole = (await lasting.post("/cohere/v2/embed", json={"texts": TEXTS})).json()["embeddings"]["float"]
    asked = {"texts": TEXTS, "embedding_types": ["int8", "float"], "output_dimension": 3}
    found = (await lasting.post("/cohere/v2/embed", json=asked)).json()["embeddings"]
    first = np.array(whole)[:, :3]
    expected = first / np.linalg.norm(first, axis=1, keepdims=True)
    np.testing.assert_allclose(found["float"], expected, atol=1e-6)
    small = np.array(found["int8"])
    assert np.issubdtype(small.dtype, np.integer)
    assert (np.abs(small).max(axis=1) == 127).all()
    np.testing.assert_allclose(small / np.linalg.norm(small, axis=1, keepdims=True), expected, atol=0.01)


async def test_tokens_are_those_that_the_model_reads(lasting: Client) -> None:
    long = {"text": "a dog sleeps " * 600, "model": "avg-sick"}
    assert (await lasting.post("/cohere/v1/tokenize", json=long)).json()["meta"]["warnings"][0].startswith("text: only")
    found = (await lasting.post("/cohere/v1/tokenize", json={"text": "a dog sleeps", "model": "avg-sick"})).json()
    (tei,) = (await lasting.post("/tei/tokenize", json={"inputs": "a dog sleeps", "model": "avg-sick"})).json()
    assert found["token_strings"] == ["a", "dog", "sleeps"]
    assert [(token["id"], token["text"]) for token in tei] == list(
        zip(found["tokens"], found["token_strings"], strict=True)
    )


@pytest.mark.parametrize("path", ["/cohere/v1/classify", "/cohere/v1/detokenize"])
async def test_requests_that_are_not_offered_are_unknown_routes(lasting: Client, path: str) -> None:
    response = await lasting.post(path, json={"inputs": ["x"]})
    unknown = await lasting.post("/cohere/v1/of-nobody", json={"inputs": ["x"]})
    assert (response.status_code, unknown.status_code) == (404, 404)
    assert response.json().keys() == unknown.json().keys()


async def test_texts_are_cut_as_is_asked(lasting: Client) -> None:
    cut = await lasting.post("/cohere/v2/embed", json={"texts": ["a man", "dog " * 13], "truncate": None})
    few = await lasting.post("/cohere/v2/embed", json={"texts": ["a dog sleeps"], "max_tokens": 2})
    assert cut.json()["meta"]["warnings"] == ["texts.1: only its first 12 tokens were read"]
    assert few.json()["meta"]["billed_units"] == {"input_tokens": 2}


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], "inputs"),
        ([{"content": [{"type": "text", "text": "x"}] * 2}], "inputs.0.content: expected one part, a text"),
        ([{"content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "inputs.0.content.0.type"),
    ],
)
async def test_inputs_are_texts(lasting: Client, inputs: list[object], words: str) -> None:
    response = await lasting.post("/cohere/v2/embed", json={"inputs": inputs})
    both = await lasting.post("/cohere/v2/embed", json={"inputs": inputs, "texts": ["x"]})
    assert response.status_code == both.status_code == 400
    assert words in response.json()["message"]
