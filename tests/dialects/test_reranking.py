"""What Cohere, Jina and vLLM ask of reranking, on all three paths."""

import httpx
import pytest

from tests.harness import fakes
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
PATHS = ["/rerank", "/v1/rerank", "/v2/rerank"]
QUERY = "a man plays the guitar"
DOCUMENTS = ["a dog sleeps", "the man is playing a guitar .", "a dog sleeps", "a woman in the park"]
ASK = {"query": QUERY, "documents": DOCUMENTS}


async def own(client, candidates, model=None) -> list[dict[str, float]]:
    body = {"query": QUERY, "candidates": candidates, "model": model}
    return [
        {"index": result["index"], "relevance_score": result["score"]}
        for result in (await client.post("/rank", json=body)).json()["results"]
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_the_answer_is_our_rank_with_every_familys_fields(lasting: Client, path: str) -> None:
    response = await lasting.post(path, json=ASK, headers={"x-request-id": "abc"})
    expected = await own(lasting, DOCUMENTS)
    answer = response.json()
    count = sum(len(fakes.tokenizer().encode(text, 12).ids) for text in (QUERY, *DOCUMENTS))  # the query once
    assert answer.pop("created") > 1_700_000_000
    assert answer == {
        "id": "abc",
        "object": "rerank",
        "model": "avg-paraphrase",
        "results": expected,
        "usage": {"prompt_tokens": count, "total_tokens": count},
        "meta": {
            "api_version": {"version": "2" if path == "/v2/rerank" else "1"},
            "billed_units": {"search_units": 1},
            "tokens": {"input_tokens": count, "output_tokens": 0},
        },
    }


@pytest.mark.parametrize("path", PATHS)
async def test_top_n(lasting: Client, path: str) -> None:
    for top_n, count in ((None, 4), (0, 4), (1, 1), (3, 3), (99, 4)):
        answer = (await lasting.post(path, json={**ASK, "top_n": top_n})).json()
        assert answer["results"] == (await own(lasting, DOCUMENTS))[:count]


async def test_documents_come_back_as_objects_when_asked(lasting: Client) -> None:
    body = {**ASK, "documents": ["a dog", {"text": "a cat", "id": "7"}], "return_documents": True}
    results = (await lasting.post("/v1/rerank", json=body)).json()["results"]
    silent = (await lasting.post("/v1/rerank", json={**body, "return_documents": False})).json()["results"]
    assert {result["index"]: result["document"] for result in results} == {
        0: {"text": "a dog"},
        1: {"text": "a cat", "id": "7"},
    }
    assert all("document" not in result for result in silent)


async def test_rank_fields_make_the_text(lasting: Client) -> None:
    documents = [{"title": "a man", "body": "plays the guitar"}, {"title": "a dog"}]
    fields = {"rank_fields": ["title", "body"]}
    answer = (await lasting.post("/v1/rerank", json={**ASK, "documents": documents, **fields})).json()
    assert answer["results"] == await own(lasting, ["a man plays the guitar", "a dog"])
    refused = await lasting.post("/v1/rerank", json={**ASK, "documents": documents})
    assert refused.status_code == 400
    assert refused.json()["message"] == "documents.0: a document without text"


async def test_a_client_may_cut_earlier_and_is_told(lasting: Client) -> None:
    long = {"query": "man " * 20, "documents": ["man " * 20, "a dog sleeps on the sofa", "a dog"]}
    cuts = {"max_tokens_per_doc": 4, "max_tokens_per_query": 5}
    answer = (await lasting.post("/rerank", json={**long, **cuts})).json()
    prompt = (await lasting.post("/rerank", json={**long, "truncate_prompt_tokens": 3})).json()
    whole = (await lasting.post("/rerank", json={**long, "truncate_prompt_tokens": -1})).json()
    body = {"query": "man " * 5, "candidates": ["man " * 4, "a dog sleeps on", "a dog"]}
    expected = (await lasting.post("/rank", json=body)).json()["results"]
    assert [result["relevance_score"] for result in answer["results"]] == [result["score"] for result in expected]
    assert answer["usage"]["total_tokens"] == 5 + 4 + 4 + 2
    assert answer["meta"]["warnings"] == [
        "query: only its first 5 tokens were read",
        "documents.0: only its first 4 tokens were read",
        "documents.1: only its first 4 tokens were read",
    ]
    assert prompt["usage"]["total_tokens"] == 3 + 3 + 3 + 2
    assert whole["usage"]["total_tokens"] == 12 + 12 + 6 + 2
    assert len(whole["meta"]["warnings"]) == 2


async def test_the_models_own_scores_when_asked(lasting: Client) -> None:
    answer = (await lasting.post("/rerank", json={**ASK, "use_activation": False})).json()
    pairs = [{"a": QUERY, "b": document} for document in DOCUMENTS]
    raw = [
        result["raw_score"] for result in (await lasting.post("/similarity", json={"pairs": pairs})).json()["results"]
    ]
    for result in answer["results"]:
        assert result["relevance_score"] == pytest.approx(raw[result["index"]], abs=1e-6)


async def test_search_units_are_hundreds_of_documents(lasting: Client) -> None:
    for count, units in ((100, 1), (101, 2), (201, 3)):
        answer = (await lasting.post("/v2/rerank", json={**ASK, "documents": ["a dog"] * count})).json()
        assert answer["meta"]["billed_units"]["search_units"] == units


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("change", "status", "code", "param", "words"),
    [
        ({"documents": []}, 400, "invalid_request", "documents", "at least 1"),
        ({"documents": "a"}, 400, "invalid_request", "documents", "expected a list"),
        ({"documents": ["a", 3]}, 400, "invalid_request", "documents.1", "expected a text, or an object"),
        ({"documents": ["a", {}]}, 400, "invalid_request", "documents.1", "a document without text"),
        ({"documents": ["a", {"page": 4}]}, 400, "invalid_request", "documents.1", "a document without text"),
        ({"documents": [{"text": ["a"]}]}, 400, "invalid_request", "documents.0.text", "expected a text"),
        ({"documents": ["a", ""]}, 400, "empty_text", "documents.1", "no visible character"),
        ({"query": " "}, 400, "empty_text", "query", "no visible character"),
        ({"query": None}, 400, "invalid_request", "query", "expected a text"),
        ({"top_n": -1}, 400, "invalid_request", "top_n", "0"),
        ({"top_n": "2"}, 400, "invalid_request", "top_n", "whole number"),
        ({"documents": ["a"] * 5}, 400, "too_large", "documents", "the limit is 4 (SEMBLANCE_MAX_CANDIDATES)"),
        ({"query": "x" * 71}, 400, "too_large", "query", "(SEMBLANCE_MAX_TEXT_CHARS)"),
        ({"documents": ["man " * 13], "truncation_side": "left"}, 422, "unsupported_field", "documents.0", "12 tokens"),
        ({"model": "rerank-v9"}, 404, "model_not_found", "model", "no model 'rerank-v9'"),
    ],
)
def test_what_does_not_fit_is_told(limited: httpx.Client, path, change, status, code, param, words) -> None:
    response = limited.post(path, json={**ASK, **change}, headers={"x-request-id": "abc"})
    body = response.json()
    assert response.status_code == status
    message = body["message"]
    assert words in message
    assert param in message
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    assert (
        body
        == {
            "/rerank": {"error": error, "message": message, "detail": message},
            "/v1/rerank": {"id": "abc", "error": error, "message": message, "detail": message},
            "/v2/rerank": {"id": "abc", "message": message},
        }[path]
    )


@pytest.mark.parametrize("path", PATHS)
def test_fields_of_other_services_are_ignored(limited: httpx.Client, path: str) -> None:
    more = {"max_chunks_per_doc": 10, "priority": 3, "user": "me", "request_id": "x", "relevant_spans": {}}  # all fit
    assert limited.post(path, json={**ASK, **more}).status_code == 200


async def test_infinity_returns_documents_as_texts(lasting: Client) -> None:
    """LiteLLM's `infinity/` makes the object of Cohere's answer itself."""
    body = {**ASK, "documents": ["a dog", {"text": "a cat"}], "return_documents": True}
    answer = (await lasting.post("/infinity/rerank", json=body)).json()
    expected = await own(lasting, ["a dog", "a cat"])
    assert [{k: r[k] for k in ("index", "relevance_score")} for r in answer["results"]] == expected
    assert {result["index"]: result["document"] for result in answer["results"]} == {0: "a dog", 1: "a cat"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (["t", "u", "t"], "each field once"),
        ([f"f{i}" for i in range(17)], "at most 16"),
        (["t", "u"], "the limit is 70"),
    ],
)
def test_rank_fields_are_bounded_before_they_are_joined(limited: httpx.Client, fields: list[str], words: str) -> None:
    body = {"query": "a", "documents": [{"t": "x" * 40, "u": "y" * 40}], "rank_fields": fields}
    response = limited.post("/v1/rerank", json=body)
    assert response.status_code == 400
    assert words in response.json()["message"]
