"""What does not fit gets one clear answer in one shape, whatever the route."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness import fakes
from tests.harness.requests import GOOD, PAIR, error_of, refused
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
OF_RANK = (
    "query, candidates, entries, match, top_k, model, rerank_model, rerank_top, min_score, min_confidence, "
    "confidence_fit"
)


@pytest.fixture(scope="module")
async def limited(serve: Serve) -> AsyncIterator[Client]:
    """One service for whatever changes nothing in it."""
    async with serve(max_pairs=2) as client:
        yield client


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"pairs=1", b'{"pairs": [}', b"\xff\xfe", b'{"model": "\xc3\x28"}', b"[" * 100_000]
)
async def test_not_json(lasting: Client, path: str, body: bytes) -> None:
    status, error = await refused(lasting, path, content=body, headers={"content-type": "application/json"})
    assert (status, error["code"], error["field"]) == (400, "not_json", None)


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "field", "limit"),
    [
        # wrong types and shapes
        ("/similarity", {"pairs": [PAIR, {"a": "x"}]}, 422, "invalid_request", "pairs.1.b", None),
        ("/entailment", {"pairs": [PAIR]}, 422, "invalid_request", "pairs.0.premise", None),
        ("/entailment", {**GOOD["/entailment"], "premise": "a"}, 422, "invalid_request", "premise", None),
        ("/classify", {}, 422, "invalid_request", "text", None),
        ("/classify", {"text": {"a": 1}}, 422, "invalid_request", "text", None),
        ("/classify", {"text": ["a", None]}, 422, "invalid_request", "text", None),
        ("/classify", {"text": "a", "labels": ["a", 1]}, 422, "invalid_request", "labels.1", None),
        ("/classify", {"text": "a", "labels": ["a", "b", "a"]}, 413, "too_large", "labels", 2),  # before they are read
        ("/classify", {"text": "a", "labels": ["a", "a"]}, 422, "invalid_request", "labels.1", None),
        ("/classify", {"text": "a", "labels": ["a"], "template": "a"}, 422, "invalid_request", "template", None),
        ("/classify", {"text": "a", "template": "{}"}, 422, "invalid_request", "template", None),
        ("/classify", {"text": "a", "multi_label": True}, 422, "invalid_request", "multi_label", None),
        ("/classify", {"text": "a"}, 422, "invalid_request", "labels", None),  # no model has labels of its own
        ("/claims", {"documents": "a"}, 422, "invalid_request", "claims", None),
        ("/claims", {"documents": ["a", 1], "claims": ["a"]}, 422, "invalid_request", "documents", None),
        ("/claims", {"documents": "a", "claims": "a"}, 422, "invalid_request", "claims", None),
        ("/claims", {"documents": ["a", "# a"], "claims": ["a"]}, 422, "invalid_request", "documents.1", None),
        ("/dedupe", {"texts": ["a", 1]}, 422, "invalid_request", "texts.1", None),
        ("/dedupe", {"texts": ["a", "\u200b"]}, 422, "empty_text", "texts.1", None),
        ("/dedupe", {"texts": ["a"], "model": "pair-sick"}, 422, "unsupported_task", "model", None),
        ("/dedupe", {"texts": ["a"], "pair_model": "nope"}, 404, "unknown_model", "pair_model", None),
        ("/dedupe", {"texts": ["a"], "pair_model": "avg-sick"}, 422, "unsupported_task", "pair_model", None),
        ("/explain", {"pairs": [PAIR]}, 422, "invalid_request", "a", None),
        ("/explain", {"a": "man", "b": ["dog"]}, 422, "invalid_request", "b", None),
        # below a limit; empty lists that have one: test_limits.py
        ("/rank", {"query": "a", "candidates": ["a"], "rerank_top": 0}, 422, "invalid_request", "rerank_top", 1),
        ("/rank", {"query": "a", "candidates": ["a"], "min_score": 1.5}, 422, "invalid_request", "min_score", 1),
        ("/claims", {"documents": [], "claims": ["a"]}, 422, "invalid_request", "documents", None),
        ("/classify", {"text": []}, 422, "invalid_request", "text", None),
        # no text; too much of it: test_limits.py; of the other fields: test_properties.py
        ("/similarity", {"pairs": [{"a": " \t\n\u00a0", "b": "x"}]}, 422, "empty_text", "pairs.0.a", None),
        ("/similarity", {"pairs": [{"a": "\x00", "b": "x"}]}, 422, "empty_text", "pairs.0.a", None),
        ("/claims", {"documents": " \n\n ", "claims": ["a"]}, 422, "empty_text", "documents", None),
        ("/claims", {"documents": ["a", ""], "claims": ["a"]}, 422, "empty_text", "documents.1", None),
        ("/claims", {"documents": "a", "claims": ["a", "\u200b"]}, 422, "empty_text", "claims.1", None),
        ("/classify", {"text": "", "labels": ["a"]}, 422, "empty_text", "text", None),
        ("/classify", {"text": ["a", " "], "labels": ["a"]}, 422, "empty_text", "text.1", None),
        ("/classify", {"text": "a", "labels": ["a", "\u200b"]}, 422, "empty_text", "labels.1", None),
        # models
        ("/similarity", {"pairs": [PAIR], "model": "nope"}, 404, "unknown_model", "model", None),
        ("/entailment", {**GOOD["/entailment"], "model": "avg-paraphrase"}, 422, "unsupported_task", "model", None),
        ("/classify", {**GOOD["/classify"], "model": "avg-paraphrase"}, 422, "unsupported_task", "model", None),
        ("/classify", {"text": "a", "model": "avg-sick"}, 422, "unsupported_task", "model", None),
        ("/claims", {**GOOD["/claims"], "model": "avg-paraphrase"}, 422, "unsupported_task", "model", None),
        ("/claims", {**GOOD["/claims"], "encoder": "pair-sick"}, 422, "unsupported_task", "encoder", None),
        ("/claims", {**GOOD["/claims"], "encoder": "nope"}, 404, "unknown_model", "encoder", None),
        ("/embed", {**GOOD["/embed"], "model": "pair-sick"}, 422, "unsupported_task", "model", None),
        ("/rank", {**GOOD["/rank"], "rerank_model": "nope"}, 404, "unknown_model", "rerank_model", None),
        ("/rank", {**GOOD["/rank"], "rerank_top": 1}, 422, "invalid_request", "rerank_model", None),
    ],
)
async def test_what_does_not_fit_is_named(limited: Client, path, body, status, code, field, limit) -> None:
    found, error = await refused(limited, path, json=body)
    assert (found, error["code"], error["field"], error["limit"]) == (status, code, field, limit)
    assert isinstance(error["limit"], int | None)


async def test_every_field_that_is_missing_is_named(limited: Client) -> None:
    two = await refused(limited, "/explain", json={})
    many = await refused(limited, "/explain", json={"c": 1, "d": 2})
    assert two[1]["message"] == "a: Field required (and b: Field required)"
    assert str(many[1]["message"]).endswith("(and b: Field required, c: unknown field; there are a, b, model, 1 more)")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/rank", {**GOOD["/rank"], "task": "relevance"}, f"task: unknown field; there are {OF_RANK}"),
        ("/rank", {**GOOD["/rank"], "topk": 1}, f"topk: unknown field; did you mean top_k? there are {OF_RANK}"),
        ("/similarity", {"pairs": [{**PAIR, "c": "x"}]}, "pairs.0.c: unknown field; there are a, b"),
        ("/similarity", {"pairs": "a"}, "pairs: expected a list"),
        ("/similarity", {"pairs": ["a"]}, "pairs.0: expected an object"),
        ("/similarity", {"pairs": []}, "pairs: expected at least 1"),
        ("/similarity", [], "the body: expected an object"),
        ("/similarity", {"pairs": [PAIR], "task": "x"}, "task: expected 'similarity', 'paraphrase' or 'relevance'"),
        ("/rank", {**GOOD["/rank"], "query": 1}, "query: expected a text"),
        ("/rank", {**GOOD["/rank"], "top_k": "1"}, "top_k: expected a whole number"),
        ("/rank", {**GOOD["/rank"], "top_k": 1.5}, "top_k: expected a whole number"),
        ("/rank", {**GOOD["/rank"], "top_k": 0}, "top_k: expected 1 or more"),
        ("/rank", {**GOOD["/rank"], "min_score": 1.5}, "min_score: expected 1.0 or less"),
        ("/classify", {**GOOD["/classify"], "multi_label": 1}, "multi_label: expected true or false"),
        ("/classify", {"text": "a", "labels": ["a", "b", "c"]},
         "3 labels, the limit is 2 (SEMBLANCE_MAX_PAIRS)"),  # counts of one
    ],
)  # fmt: skip
async def test_what_is_said_is_about_the_request(limited: Client, path: str, body: object, message: str) -> None:
    _, error = await refused(limited, path, json=body)
    assert error["message"] == message


async def test_a_model_that_is_not_near_is_not_suggested(serve: Serve, tmp_path: Path) -> None:
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    fakes.cosine_model(tmp_path / "gran-5", "gran-5")
    fakes.tasks_model(tmp_path / "cross-encoder", "cross-encoder")
    async with serve(models_dir=tmp_path, preload=()) as client:
        ranking = await refused(client, "/rank", json={**GOOD["/rank"], "model": "rerank-v3.5"})
        second = await refused(client, "/rank", json={**GOOD["/rank"], "rerank_model": "rerank-v3.5"})
        pairs = await refused(client, "/similarity", json={**GOOD["/similarity"], "model": "rerank-v3.5"})
        slip = await refused(client, "/similarity", json={**GOOD["/similarity"], "model": "gran5"})
        vectors = await client.post("/v1/embeddings", json={"input": "a", "model": "text-embedding-3-small"})
        cohere = await client.post("/v2/rerank", json={"query": "a", "documents": ["a"], "model": "rerank-v4.0-fast"})
    assert str(ranking[1]["message"]).endswith(
        "without a model the default answers; SEMBLANCE_MODEL_ALIASES=NAME=MODEL "
        "serves other names to other services' clients alone (docs/dialects.md)"
    )
    for _, error in (ranking, second):
        assert str(error["message"]).startswith(
            "no model 'rerank-v3.5'; models for ranking: cross-encoder, avg-paraphrase"
        )
    assert str(pairs[1]["message"]).startswith(
        "no model 'rerank-v3.5'; models for similarity: avg-paraphrase, cross-encoder, gran-5"
    )
    assert str(slip[1]["message"]).startswith("no model 'gran5'; the closest for similarity: gran-5")
    assert vectors.json()["error"]["message"].startswith("no model 'text-embedding-3-small'; models for embedding: avg")
    assert cohere.json()["message"].startswith(
        "no model 'rerank-v4.0-fast'; models for ranking: cross-encoder, avg-paraphrase, gran-5; without"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text_1": "a", "queries": "a", "text_2": "a"}, "queries"),
        ({"text_1": "a", "documents": ["a"], "data_2": ["a"]}, "documents"),
    ],
)
async def test_one_text_by_two_names_is_refused(client: Client, body: dict[str, object], field: str) -> None:
    response = await client.post("/openai/v1/score", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, field)


async def test_a_text_that_is_not_in_a_list_has_no_number(serve: Serve, tmp_path: Path) -> None:
    fakes.labelling_model(tmp_path / "sentiment")
    async with serve(models_dir=tmp_path, preload=()) as client:
        for inputs, field in ((" ", "inputs"), ([["a"], [" "]], "inputs.1.0")):
            response = await client.post("/tei/predict", json={"inputs": inputs, "model": "sentiment"})
            assert response.json()["error"].startswith(f"{field}: ")


async def test_what_is_no_text_is_no_token_id(client: Client) -> None:
    ids, flag = [(await client.post("/v1/embeddings", json={"input": [each]})).text for each in (1, True)]
    assert ("token ids" in ids, "token ids" in flag) == (True, False)


@pytest.mark.parametrize(
    "body",
    [
        rb'{"pairs":[{"a":"man","b":"\ud800"}]}',
        rb'{"pairs":[{"a":"man \udfff dog","b":"x"}]}',
        rb'{"pairs":[{"a":"man","b":"x"}],"\ud800":1}',
        rb'"\ud800"',
    ],
)
async def test_a_lone_surrogate_is_refused(limited: Client, body: bytes) -> None:
    status, error = await refused(limited, "/similarity", content=body, headers={"content-type": "application/json"})
    assert (status, error["code"]) == (422, "invalid_request")
    assert "lone surrogate" in str(error["message"])


async def test_a_pair_of_surrogates_is_a_character(limited: Client) -> None:
    body = rb'{"pairs":[{"a":"man \ud83d\ude00","b":"x"}]}'
    response = await limited.post("/similarity", content=body, headers={"content-type": "application/json"})
    assert response.json()["results"][0]["tokens"] == [2, 1]


async def test_a_field_name_of_the_client_is_quoted_only_so_far(limited: Client) -> None:
    _, error = await refused(limited, "/similarity", json={"pairs": [PAIR], "x" * 5000: 1})
    assert len(str(error["field"])) < 200
    assert len(str(error["message"])) < 300


async def test_a_body_of_exactly_the_limit_is_read_in_pieces(serve: Serve) -> None:
    whole = json.dumps(GOOD["/similarity"]).encode()

    async def chunks():
        for i in range(0, len(whole), 7):
            yield whole[i : i + 7]

    async with serve(max_body_bytes=len(whole)) as client:
        assert (await client.post("/similarity", content=chunks())).status_code == 200
        assert (await client.post("/similarity", content=whole)).status_code == 200
        assert (await client.post("/similarity", content=whole + b" ")).status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 200),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200),
        ({"content-type": "application/vnd.api+json"}, 200),
        ({}, 200),
        ({"content-type": "application/json", "content-encoding": "identity"}, 200),
        ({"origin": "https://evil.example", "content-type": "application/json"}, 200),  # its browser has asked
        ({"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/jsonp"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
    ],
)
async def test_only_plain_json_is_read(limited: Client, headers: dict[str, str], status: int) -> None:
    response = await limited.post("/similarity", content=json.dumps(GOOD["/similarity"]), headers=headers)
    assert response.status_code == status
    if status == 415:
        assert error_of(response)["code"] == "unsupported_media_type"
