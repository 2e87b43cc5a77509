"""What Cohere, Jina and vLLM ask of `rerank` and `score` beyond what all dialects have (test_conformance.py)."""

from pathlib import Path

import pytest

from core.manifest import Prompts
from tests.harness import fakes
from tests.harness.dialects import RERANK
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
PATHS = ["/cohere/v1/rerank", "/cohere/v2/rerank"]
SCORE = "/openai/v1/score"
QUERY, DOCUMENTS = RERANK["query"], RERANK["documents"]
A = ["a man plays the guitar", "a dog runs in the park"]
B = ["the man is playing a guitar .", "a cat sleeps on the sofa"]


def tokens(*texts: str) -> int:
    """How many tokens the fakes read of these."""
    return sum(len(fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids) for text in texts)


async def posted(client: Client, path: str, body: dict[str, object], **more: object) -> dict:
    response = await client.post(path, json=body | more, headers={"x-request-id": "abc"})
    assert response.status_code == 200, response.text
    return response.json()


async def own(client: Client, candidates: list[str]) -> list[dict[str, float]]:
    results = (await posted(client, "/rank", {"query": QUERY, "candidates": candidates}))["results"]
    return [{"index": result["index"], "relevance_score": result["score"]} for result in results]


async def similar(client: Client, pairs, what: str = "score") -> list[float]:
    body = {"pairs": [{"a": a, "b": b} for a, b in pairs]}
    return [result[what] for result in (await posted(client, "/similarity", body))["results"]]


@pytest.mark.parametrize("path", PATHS)
async def test_the_answer_has_every_dialects_fields(lasting: Client, path: str) -> None:
    answer = await posted(lasting, path, RERANK)
    count = tokens(QUERY, *DOCUMENTS)  # the query once
    assert answer.pop("created") > 1_700_000_000
    assert answer == {
        "id": "abc",
        "object": "rerank",
        "model": "avg-paraphrase",
        "results": await own(lasting, DOCUMENTS),
        "usage": {"prompt_tokens": count, "total_tokens": count},
        "meta": {
            "api_version": {"version": path[len("/cohere/v")]},
            "billed_units": {"search_units": 1},
            "tokens": {"input_tokens": count, "output_tokens": 0},
        },
    }
    for top_n, count in ((None, 3), (0, 3), (1, 1), (2, 2), (99, 3)):
        assert (await posted(lasting, path, RERANK, top_n=top_n))["results"] == (await own(lasting, DOCUMENTS))[:count]
    for both, count in (({"top_k": 2}, 2), ({"top_k": 2, "top_n": 1}, 1), ({"top_k": 1, "top_n": 0}, 1)):
        assert (await posted(lasting, path, RERANK, **both))["results"] == (await own(lasting, DOCUMENTS))[:count]


@pytest.mark.parametrize("path", PATHS)
async def test_documents_come_back_when_asked_with_more_than_their_texts(lasting: Client, path: str) -> None:
    more = {"page": 4, "tags": ["x"], "of": {"a": None}, "of 65 bits": 2**64}
    documents = [{"text": "a dog", **more}, {"text": "a man", "id": "7"}, "a cat"]
    answer = await posted(lasting, path, RERANK, documents=documents, return_documents=True)
    silent = await posted(lasting, path, RERANK, documents=documents, return_documents=False)
    expected = await own(lasting, ["a dog", "a man", "a cat"])
    kept = [*documents[:2], {"text": "a cat"}]
    assert answer["results"] == [result | {"document": kept[int(result["index"])]} for result in expected]
    assert silent["results"] == expected


async def test_rank_fields_make_the_text(lasting: Client) -> None:
    body = {**RERANK, "documents": [{"title": "a man", "body": "plays the guitar"}, {"title": "a dog"}]}
    answer = await posted(lasting, "/cohere/v1/rerank", body, rank_fields=["title", "body"])
    assert answer["results"] == await own(lasting, ["a man plays the guitar", "a dog"])
    refused = await lasting.post("/cohere/v1/rerank", json=body)
    assert refused.status_code == 400
    assert refused.json()["message"] == "documents.0: a document without 'text'"


async def test_a_repeated_rank_field_counts_once(lasting: Client) -> None:
    body = {**RERANK, "documents": [{"text": "a man plays", "title": "music"}]}
    once = await posted(lasting, "/cohere/v1/rerank", body, rank_fields=["text", "title"])
    again = await posted(lasting, "/cohere/v1/rerank", body, rank_fields=["text", "title", "text", "text"])
    assert (again["results"], again["usage"]) == (once["results"], once["usage"])


async def test_a_client_may_cut_earlier_and_is_told(lasting: Client) -> None:
    long = {"query": "man " * 20, "documents": ["man " * 20, "a dog sleeps on the sofa", "a dog"]}
    answer = await posted(lasting, "/cohere/v2/rerank", long, max_tokens_per_doc=4, max_tokens_per_query=5)
    prompt = await posted(lasting, "/cohere/v2/rerank", long, truncate_prompt_tokens=3)
    whole = await posted(lasting, "/cohere/v2/rerank", long, truncate_prompt_tokens=-1, max_tokens_per_doc=0)
    body = {"query": "man " * 5, "candidates": ["man " * 4, "a dog sleeps on", "a dog"]}
    expected = (await posted(lasting, "/rank", body))["results"]
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


async def test_a_models_prompt_is_not_of_the_text_that_a_client_cuts(serve: Serve, tmp_path: Path) -> None:
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    fakes.sign(tmp_path / "avg-paraphrase", prompts=Prompts(passage="the cat : "))
    long = {"query": "man", "documents": ["man plays", "dog plays"]}
    async with serve(models_dir=tmp_path) as client:
        cut = await posted(client, PATHS[1], long, max_tokens_per_doc=1)
        expected = await posted(client, PATHS[1], {"query": "man", "documents": ["man", "dog"]})
    assert (cut["results"], cut["usage"]) == (expected["results"], expected["usage"])
    assert cut["meta"]["warnings"] == [f"documents.{i}: only its first token was read" for i in range(2)]


async def test_the_models_own_scores_when_asked(lasting: Client) -> None:
    answer = await posted(lasting, "/cohere/v2/rerank", RERANK, use_activation=False)
    raw = await similar(lasting, [(QUERY, document) for document in DOCUMENTS], "raw_score")
    for result in answer["results"]:
        assert result["relevance_score"] == pytest.approx(raw[result["index"]], abs=1e-6)


async def test_search_units_are_hundreds_of_documents(lasting: Client) -> None:
    for count, units in ((100, 1), (101, 2), (201, 3)):
        answer = await posted(lasting, "/cohere/v2/rerank", {**RERANK, "documents": ["a dog"] * count})
        assert answer["meta"]["billed_units"]["search_units"] == units


async def test_fields_of_other_services_are_ignored(limited: Client) -> None:
    more = {"max_chunks_per_doc": 10, "priority": 3, "user": "me", "request_id": "x", "relevant_spans": {}}  # all fit
    for path in PATHS:
        await posted(limited, path, RERANK, **more)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([f"f{i}" for i in range(9)], "at most 8"),
        (["t", "u"], "the limit is 70"),
    ],
)
async def test_rank_fields_are_bounded_before_they_are_joined(limited: Client, fields: list[str], words: str) -> None:
    body = {"query": "a", "documents": [{"t": "x" * 40, "u": "y" * 40}], "rank_fields": fields}
    response = await limited.post("/cohere/v1/rerank", json=body)
    assert response.status_code == 400
    assert words in response.json()["message"]


# vLLM's `score`


async def test_one_and_one_one_and_many_as_many_as_many(lasting: Client) -> None:
    for a, b, pairs in (
        (A[0], B[0], [(A[0], B[0])]),
        (A[0], B, [(A[0], B[0]), (A[0], B[1])]),
        (A[:1], B, [(A[0], B[0]), (A[0], B[1])]),
        (A, B, [(A[0], B[0]), (A[1], B[1])]),
        (A[:1], B[0], [(A[0], B[0])]),
    ):
        answer = await posted(lasting, SCORE, {"text_1": a, "text_2": b})
        scores = await similar(lasting, pairs)
        count = tokens(*([a] if isinstance(a, str) else a), *([b] if isinstance(b, str) else b))
        assert answer.pop("created") > 1_700_000_000
        assert answer == {
            "id": "score-abc",
            "object": "list",
            "model": "avg-paraphrase",
            "data": [{"index": i, "object": "score", "score": score} for i, score in enumerate(scores)],
            "usage": {"prompt_tokens": count, "total_tokens": count},
        }
        if a == A:
            for names in (("data_1", "data_2"), ("queries", "documents"), ("queries", "items")):
                named = await posted(lasting, SCORE, dict(zip(names, (a, b), strict=True)))
                assert named["data"] == answer["data"]


async def test_raw_scores_and_texts_cut(lasting: Client) -> None:
    body = {"text_1": A[0], "text_2": B, "use_activation": False, "model": "avg-paraphrase"}
    raw = await posted(lasting, SCORE, body)
    cut = await posted(lasting, SCORE, body, truncate_prompt_tokens=3)
    assert [item["score"] for item in raw["data"]] == await similar(lasting, [(A[0], b) for b in B], "raw_score")
    assert "warnings" not in raw
    assert cut["usage"]["total_tokens"] == 9
    assert cut["warnings"][0] == "text_1: only its first 3 tokens were read"
    assert cut["warnings"][2] == "text_2.1: only its first 3 tokens were read"
