"""vLLM's `/score` and `/pooling`; its reranking is in test_reranking.py."""

import httpx
import pytest

from tests.harness import fakes
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
A = ["a man plays the guitar", "a dog runs in the park"]
B = ["the man is playing a guitar .", "a cat sleeps on the sofa"]


async def own(client, pairs, what="score") -> list[float]:
    body = {"pairs": [{"a": a, "b": b} for a, b in pairs]}
    return [result[what] for result in (await client.post("/similarity", json=body)).json()["results"]]


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
async def test_one_and_one_one_and_many_as_many_as_many(lasting: Client, path: str) -> None:
    for a, b, pairs in (
        (A[0], B[0], [(A[0], B[0])]),
        (A[0], B, [(A[0], B[0]), (A[0], B[1])]),
        (A[:1], B, [(A[0], B[0]), (A[0], B[1])]),
        (A, B, [(A[0], B[0]), (A[1], B[1])]),
        (A[:1], B[0], [(A[0], B[0])]),
    ):
        body = {"text_1": a, "text_2": b}
        answer = (await lasting.post(path, json=body, headers={"x-request-id": "abc"})).json()
        expected = await own(lasting, pairs)
        texts = [text for side in (a, b) for text in ([side] if isinstance(side, str) else side)]
        count = sum(len(fakes.tokenizer().encode(text, 12).ids) for text in texts)
        assert answer.pop("created") > 1_700_000_000
        assert answer == {
            "id": "score-abc",
            "object": "list",
            "model": "avg-paraphrase",
            "data": [{"index": i, "object": "score", "score": score} for i, score in enumerate(expected)],
            "usage": {"prompt_tokens": count, "total_tokens": count},
        }


@pytest.mark.parametrize("names", [("data_1", "data_2"), ("queries", "documents"), ("queries", "items")])
async def test_other_names_of_the_two_sides(lasting: Client, names: tuple[str, str]) -> None:
    answer = (await lasting.post("/score", json=dict(zip(names, (A, B), strict=True)))).json()
    assert [item["score"] for item in answer["data"]] == await own(lasting, zip(A, B, strict=True))


async def test_raw_scores_and_texts_cut(lasting: Client) -> None:
    body = {"text_1": A[0], "text_2": B, "use_activation": False, "model": "avg-paraphrase"}
    raw = (await lasting.post("/score", json=body)).json()
    cut = (await lasting.post("/score", json={**body, "truncate_prompt_tokens": 3})).json()
    assert [item["score"] for item in raw["data"]] == await own(lasting, [(A[0], b) for b in B], "raw_score")
    assert "warnings" not in raw
    assert cut["usage"]["total_tokens"] == 9
    assert cut["warnings"][0] == "text_1: only its first 3 tokens were read"
    assert cut["warnings"][2] == "text_2.1: only its first 3 tokens were read"


@pytest.mark.parametrize(
    ("body", "status", "param", "words"),
    [
        ({"text_1": A, "text_2": [*B, "a"]}, 400, "text_1", "2 texts beside 3 in text_2"),
        ({"text_1": A, "text_2": B[0]}, 400, "text_1", "2 texts beside 1 in text_2"),
        ({"text_1": A}, 400, "text_2", "Field required"),
        ({"text_1": [], "text_2": B}, 400, "text_1", "at least one text"),
        ({"text_1": [[1, 2]], "text_2": B}, 400, "text_1", "token ids"),
        ({"text_1": "a", "text_2": ["b", " "]}, 400, "text_2.1", "no visible character"),
        ({"text_1": "a", "text_2": ["b"] * 4}, 400, "text_2", "(SEMBLANCE_MAX_PAIRS)"),
        ({"text_1": "a", "text_2": "b", "truncate_prompt_tokens": -2}, 400, "truncate_prompt_tokens", "-1"),
        ({"text_1": "man " * 13, "text_2": "b", "truncation_side": "left"}, 422, "text_1", "12 tokens"),
        ({"text_1": "a", "text_2": "b", "model": "bge"}, 404, "model", "no model 'bge'"),
    ],
)
def test_what_does_not_fit_is_told(limited: httpx.Client, body, status, param, words) -> None:
    response = limited.post("/v1/score", json=body)
    found = response.json()
    assert response.status_code == status
    assert set(found) == {"error", "message", "detail"}
    assert found["error"]["param"] == param
    assert words in found["message"] == found["detail"] == found["error"]["message"]


async def test_pooling_and_infinitys_embeddings_are_openais(lasting: Client) -> None:
    for body in ({"input": A}, {"input": A[0], "encoding_format": "base64", "dimensions": 3}):
        expected = [each["embedding"] for each in (await lasting.post("/v1/embeddings", json=body)).json()["data"]]
        pooled = (await lasting.post("/pooling", json=body)).json()
        infinity = (await lasting.post("/embeddings", json=body)).json()
        assert [each["data"] for each in pooled["data"]] == expected
        assert {each["object"] for each in pooled["data"]} == {"pooling"}
        assert [each["embedding"] for each in infinity["data"]] == expected
