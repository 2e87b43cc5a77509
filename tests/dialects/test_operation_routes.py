"""Paths that several families share: who answers, and what /docs says of it."""

from pathlib import Path
from typing import Any

import pytest

from core import answers
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
OWN = {"RankResponse": "Ranking"}  # whose name in the documentation is another
RERANKED = {"id", "object", "created", "model", "results", "usage", "meta"}


@pytest.mark.parametrize(
    ("path", "body", "keys"),
    [
        ("/similarity", {"pairs": [{"a": 'the "inputs" of', "b": "a"}]}, {"model", "scale", "results"}),
        ("/similarity", {"pairs": [{"a": "inputs", "b": "inputs"}]}, {"model", "scale", "results"}),
        ("/classify", {"text": "inputs", "labels": ["a", "the"]}, {"model", "results"}),
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


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "prefixItems" in schema:
        return f"({', '.join(map(_type, schema['prefixItems']))})"
    if "items" in schema:
        return f"[{_type(schema['items'])}]"
    return str(schema.get("const", schema.get("type", "any")))


def _body(described: dict[str, Any]) -> str:
    types = {media: _type(body.get("schema", {})) for media, body in described.get("content", {}).items()}
    return ", ".join(kind if media == "application/json" else f"{kind} as {media}" for media, kind in types.items())


def _operation(described: dict[str, Any]) -> str:
    """What is asked of path, query and body, and the bodies of answers by their statuses; ? is of what may be left."""
    asked = [
        f"{each['name']}{'' if each['required'] else '?'} in {each['in']}: {_type(each['schema'])}"
        for each in described.get("parameters", ())
    ]
    if "requestBody" in described:
        asked.append(f"{_body(described['requestBody'])}{'' if described['requestBody']['required'] else '?'}")
    bodies: dict[str, list[str]] = {}
    for status, answer in described["responses"].items():
        bodies.setdefault(_body(answer), []).append(status)
    said = [f"{' '.join(statuses)} {body}" for body, statuses in bodies.items()]
    return f"({', '.join(described['tags'])}) {', '.join(asked) or '-'} -> {'; '.join(said)}"


async def test_the_documentation_says_what_each_path_takes_and_answers(lasting: Client) -> None:
    """Beside `documented.txt`: the operations, and those of our own answers that may lack a field."""
    api = (await lasting.get("/openapi.json")).json()
    said = [
        f"{method.upper()} {path} {_operation(described)}"
        for path, methods in api["paths"].items()
        for method, described in methods.items()
    ]
    for name, schema in api["components"]["schemas"].items():
        absent = {each for each in schema.get("properties", ()) if each not in schema.get("required", ())}
        if absent and hasattr(answers, OWN.get(name, name)):
            fields = [f"{each}{'?' * (each in absent)} {_type(of)}" for each, of in schema["properties"].items()]
            said.append(f"{name}: {', '.join(fields)}")
    assert said == Path(__file__).with_name("documented.txt").read_text(encoding="utf-8").splitlines()
