"""Paths that several families share: who answers, and what /docs says of it."""

import pytest

from tests.harness.service import Client

pytestmark = pytest.mark.anyio
RERANKED = {"id", "object", "created", "model", "results", "usage", "meta"}


@pytest.mark.parametrize(
    ("path", "body", "keys"),
    [
        ("/similarity", {"pairs": [{"a": 'the "inputs" of', "b": "a"}]}, {"model", "scale", "results"}),
        ("/similarity", {"pairs": [{"a": "inputs", "b": "inputs"}]}, {"model", "scale", "results"}),
        ("/classify", {"text": "inputs", "labels": ["a", "the"]}, {"model", "results"}),
        ("/classify", {"inputs": "a", "parameters": {"candidate_labels": ["a"]}}, {"sequence", "labels", "scores"}),
        ("/embed", {"sentences": ["inputs"]}, {"model", "dim", "embeddings", "truncated"}),
        ("/embed", {"inputs": ["sentences"]}, None),
        ("/rerank", {"query": "a", "texts": ["documents"]}, None),
        ("/rerank", {"query": "a", "documents": ["texts"]}, RERANKED),
        ("/rerank", {"query": "a", "documents": ["a"], "texts": None}, RERANKED),
    ],
)  # fmt: skip
async def test_the_body_says_who_is_meant(limited: Client, path: str, body: object, keys: set[str] | None) -> None:
    response = await limited.post(path, json=body)
    assert response.status_code == 200, response.text
    if keys is None:
        assert isinstance(response.json(), list)
    else:
        assert set(response.json()) == keys


async def test_what_nobody_meant_is_told_by_the_first(lasting: Client) -> None:
    rerank = await lasting.post("/rerank", json={"query": "a"})
    bare = await lasting.post("/", json={"query": "a"})
    assert rerank.json()["detail"] == "documents: Field required"
    assert bare.json() == {"error": "inputs: Field required", "error_type": "Validation"}


async def test_the_documentation_shows_every_body_of_a_path(lasting: Client) -> None:
    api = (await lasting.get("/openapi.json")).json()
    schemas = api["components"]["schemas"]
    counts = {path: len(bodies(methods.get("post"), schemas)) for path, methods in api["paths"].items()}
    assert {path for path, count in counts.items() if count > 1} == {
        "/similarity",
        "/classify",
        "/embed",
        "/rerank",
        "/",
    }
    assert counts["/"] == 5
    similarity = api["paths"]["/similarity"]["post"]
    assert similarity["tags"] == ["scoring", "TEI / Hugging Face"]
    answers = similarity["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]
    assert [answer.get("type", answer.get("$ref")) for answer in answers] == [
        "#/components/schemas/SimilarityResponse", "array"
    ]  # fmt: skip
    errors = similarity["responses"]["422"]["content"]["application/json"]["schema"]["anyOf"]
    assert [error["$ref"].rpartition("/")[2] for error in errors] == ["ErrorResponse", "TeiError"]
    assert "422" not in api["paths"]["/v1/embeddings"]["post"]["responses"]  # FastAPI's own, which never comes
    assert "HTTPValidationError" not in str(api["paths"])
    assert not {"401", "429"} & set(api["paths"]["/health/live"]["get"]["responses"])  # whom nobody asks for a key


def bodies(operation, schemas) -> list[dict[str, object]]:
    """The schemas of all that a path takes."""
    if operation is None or "requestBody" not in operation:  # to reload takes none
        return []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return [schemas[one["$ref"].rpartition("/")[2]] for one in schema.get("anyOf", [schema])]
