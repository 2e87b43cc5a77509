"""Cohere's `embed`, version 1 and 2."""

import base64

import numpy as np
import pytest

from tests.harness import fakes
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
TEXTS = ["a man", "a dog sleeps"]


async def test_the_embeddings_are_ours_divided_by_their_lengths(lasting: Client) -> None:
    rows = np.array((await lasting.post("/embed", json={"sentences": TEXTS})).json()["embeddings"])
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    first = (await lasting.post("/v1/embed", json={"texts": TEXTS})).json()
    typed = (await lasting.post("/v1/embed", json={"texts": TEXTS, "embedding_types": ["base64", "float"]})).json()
    second = (await lasting.post("/v2/embed", json={"texts": TEXTS, "input_type": "search_query"})).json()
    inputs = [{"content": [{"type": "text", "text": text}]} for text in TEXTS]
    parts = (await lasting.post("/v2/embed", json={"inputs": inputs})).json()
    assert (first["response_type"], second["response_type"]) == ("embeddings_floats", "embeddings_by_type")
    decoded = [np.frombuffer(base64.b64decode(one), "<f4") for one in typed["embeddings"]["base64"]]
    for found in (first["embeddings"], typed["embeddings"]["float"], decoded, second["embeddings"]["float"]):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert parts["embeddings"] == second["embeddings"]
    assert set(second["embeddings"]) == {"float"}
    assert first["texts"] == second["texts"] == parts["texts"] == TEXTS
    assert second["meta"]["api_version"] == {"version": "2"}
    assert second["meta"]["billed_units"] == {"input_tokens": 5}


async def test_int8_points_where_the_embedding_points_and_fewer_dimensions_are_the_first(lasting: Client) -> None:
    whole = (await lasting.post("/v2/embed", json={"texts": TEXTS})).json()["embeddings"]["float"]
    asked = {"texts": TEXTS, "embedding_types": ["int8", "float"], "output_dimension": 3}
    found = (await lasting.post("/v2/embed", json=asked)).json()["embeddings"]
    first = np.array(whole)[:, :3]
    expected = first / np.linalg.norm(first, axis=1, keepdims=True)
    np.testing.assert_allclose(found["float"], expected, atol=1e-6)
    small = np.array(found["int8"])
    assert np.issubdtype(small.dtype, np.integer)
    assert (np.abs(small).max(axis=1) == 127).all()
    np.testing.assert_allclose(small / np.linalg.norm(small, axis=1, keepdims=True), expected, atol=0.01)


async def test_embeddings_that_are_not_compared_by_their_cosine_are_not_cut(lasting: Client) -> None:
    response = await lasting.post("/v2/embed", json={"texts": TEXTS, "output_dimension": 3, "model": "avg-sick"})
    assert response.status_code == 400
    assert "avg-sick are not" in response.json()["message"]


async def test_tokens_are_those_that_the_model_reads(lasting: Client) -> None:
    found = (await lasting.post("/v1/tokenize", json={"text": "a dog sleeps", "model": "avg-sick"})).json()
    (tei,) = (await lasting.post("/tokenize", json={"inputs": "a dog sleeps", "model": "avg-sick"})).json()
    refused = await lasting.post("/v1/tokenize", json={"text": " "})
    assert found["token_strings"] == ["a", "dog", "sleeps"]
    assert [(token["id"], token["text"]) for token in tei] == list(
        zip(found["tokens"], found["token_strings"], strict=True)
    )
    assert refused.status_code == 400


@pytest.mark.parametrize("path", ["/v1/classify", "/v1/detokenize"])
async def test_requests_that_are_not_offered_are_unknown_routes(lasting: Client, path: str) -> None:
    response = await lasting.post(path, json={"inputs": ["x"]})
    unknown = await lasting.post("/v1/of-nobody", json={"inputs": ["x"]})
    assert (response.status_code, unknown.status_code) == (404, 404)
    assert response.json().keys() == unknown.json().keys()


async def test_long_texts_are_cut_or_refused_as_truncate_says(lasting: Client) -> None:
    body = {"texts": ["a man", "dog " * (fakes.MAX_TOKENS + 1)]}
    cut = await lasting.post("/v2/embed", json=body | {"truncate": None})
    few = await lasting.post("/v2/embed", json={"texts": ["a dog sleeps"], "max_tokens": 2})
    refused = [await lasting.post("/v1/embed", json=body | {"truncate": how}) for how in ("NONE", "START")]
    (warning,) = cut.json()["meta"]["warnings"]
    assert warning == f"texts.1: only its first {fakes.MAX_TOKENS} tokens were read"
    assert few.json()["meta"]["billed_units"] == {"input_tokens": 2}
    assert [response.status_code for response in refused] == [400, 422]
    assert all(response.json()["message"].startswith("texts.1: ") for response in refused)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "texts: expected at least one text"),
        ({"texts": []}, "texts"),
        ({"texts": ["x", " "]}, "texts.1: the text has no visible character"),
        ({"texts": ["x"] * 2049}, "2049 texts, the limit is 2048 (SEMBLANCE_MAX_SENTENCES)"),
        ({"texts": ["x"], "output_dimension": 9}, "has 8 dimensions"),
        ({"texts": ["x"], "model": "pair-sick"}, "pair-sick has no embedding"),
    ],
)
async def test_what_does_not_fit_is_refused(lasting: Client, body: dict[str, object], words: str) -> None:
    for path in ("/v1/embed", "/v2/embed"):
        response = await lasting.post(path, json=body)
        assert response.status_code == 400
        assert words in response.json()["message"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], "inputs"),
        ([{"content": [{"type": "text", "text": "x"}] * 2}], "inputs.0.content: expected one part, a text"),
        ([{"content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "inputs.0.content.0.type"),
        ([{"content": [{"type": "text", "text": " "}]}], "inputs.0.content.0.text: the text has no visible character"),
    ],
)
async def test_inputs_are_texts(lasting: Client, inputs: list[object], words: str) -> None:
    response = await lasting.post("/v2/embed", json={"inputs": inputs})
    both = await lasting.post("/v2/embed", json={"inputs": inputs, "texts": ["x"]})
    assert response.status_code == both.status_code == 400
    assert words in response.json()["message"]
