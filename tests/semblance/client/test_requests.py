"""Questions answered by hand: what is sent, in how many pieces, and what comes together again."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semblance import Client
from semblance.client.calls import Call, Steps, read_answer
from semblance.client.requests import ServiceRequests
from semblance.errors import InvalidArgument, InvalidRequest, RequestFailed, TooLarge, UnexpectedAnswer
from semblance.types import Ranking

LIMITS = {
    "max_body_bytes": 10_000,
    "max_pairs": 4,
    "max_candidates": 4,
    "max_sentences": 4,
    "max_text_chars": 1000,
    "max_explained_tokens": 10,
    "request_timeout_seconds": 1.0,
}
Answer = Callable[[str, dict[str, Any]], Any]  # a RequestFailed, or what is sent as JSON


def run(steps: Steps[Any], answer: Answer, **served: Any) -> tuple[Any, list[Call]]:
    """Drive a question; GET /models is answered here."""
    models = {
        "models": [],
        "defaults": {},
        "rerank": {"default_model": served.pop("second", None), "default_top": 2},
        "limits": LIMITS | served,
    }
    sent: list[Call] = []
    try:
        calls = next(steps)
        while True:
            sent += calls
            found = [models if call.body is None else answer(call.path, json.loads(call.body)) for call in calls]
            calls = steps.send(
                [each if isinstance(each, RequestFailed) else json.dumps(each).encode() for each in found]
            )
    except StopIteration as done:
        return done.value, sent


def lengths(_: str, body: dict[str, Any]) -> dict[str, Any]:
    """A model whose score is the length of a."""
    return {
        "model": "m",
        "results": [
            {
                "score": 0.5,
                "raw_score": len(pair["a"]),
                "tokens": [1, 1],
                "truncated": [False, False],
                "unknown": [0, 0],
            }
            for pair in body["pairs"]
        ],
    }


def by_length(_: str, body: dict[str, Any]) -> dict[str, Any]:
    """Orders by length, those of two letters first for the model `two`; cuts what is longer than 8."""
    texts = body["candidates"]
    raw = [float(len(text) == 2) if body.get("model") == "two" else len(text) for text in texts]
    best = sorted(range(len(texts)), key=lambda i: -raw[i])[: body.get("top_k")]
    results: list[dict[str, float]] = [{"index": i, "score": 0.5 + raw[i] / 100, "raw_score": raw[i]} for i in best]
    return {
        "model": body.get("model", "m"),
        "results": results,
        "truncated": {"query": False, "candidates": [i for i, text in enumerate(texts) if len(text) > 8]},
    }


def rank(requests: ServiceRequests, candidates: list[str], **options: Any) -> Steps[Ranking]:
    return requests.rank("q", candidates, **options)


def test_fields_of_a_newer_service_are_left_out() -> None:
    steps = ServiceRequests().health()
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send([b'{"status":"ready","reasons":[],"models":["m"],"redis":"off","mood":"fine"}'])
    assert done.value.value.models == ["m"]


def slow(answer: Answer, field: str, most: int) -> Answer:
    """A service that answers so many items in time."""

    def asked(path: str, body: dict[str, Any]) -> Any:
        if len(body[field]) > most:
            return RequestFailed(413, "too_slow", "some 20 seconds of work", field=field, limit=most)
        return answer(path, body)

    return asked


@pytest.mark.parametrize("most", [1, 2, 3])
def test_what_would_take_too_long_is_asked_in_parts(most: int) -> None:
    texts = ["a", "bbb", "cc", "ddddd", "eeee", "ffffffffff", "g"]
    pairs = [(text, "x") for text in texts]
    answer, sent = run(ServiceRequests().similarity(pairs), slow(lengths, "pairs", most))
    assert [result.raw_score for result in answer.results] == list(map(len, texts))
    assert max(len(json.loads(call.body)["pairs"]) for call in sent if call.body) == LIMITS["max_pairs"]
    whole, _ = run(rank(ServiceRequests(), texts), by_length, max_candidates=100)
    assert run(rank(ServiceRequests(), texts), slow(by_length, "candidates", most), max_candidates=100)[0] == whole
    with pytest.raises(InvalidRequest, match="candidates: they need several requests, and rerank_model is for"):
        run(rank(ServiceRequests(), texts, rerank_model="two"), slow(by_length, "candidates", most), max_candidates=100)


def test_what_is_too_slow_alone_is_an_error() -> None:
    error = {"code": "too_slow", "message": "m", "field": "pairs", "limit": 4, "request_id": "r"}
    body = json.dumps({"error": error}).encode()
    assert isinstance(read_answer(Call("/similarity", {}, range(5), "pairs"), 413, {}, body), RequestFailed)
    with pytest.raises(TooLarge):
        read_answer(Call("/similarity", {}, range(4), "pairs"), 413, {}, body)


def test_a_query_that_leaves_no_room_for_a_candidate_is_refused_at_once() -> None:
    with pytest.raises(TooLarge, match="a body of 10031 bytes with one of the candidates, the limit is 10000"):
        run(ServiceRequests().rank("q" * 10_000, ["a"] * 200), by_length)


def test_the_bodies_of_all_parts_are_never_held_at_once() -> None:
    tracemalloc.start()
    query, candidates = "q" * 900_000, [f"{i}" * 60_000 for i in range(9)] * 4
    answer, sent = run(ServiceRequests().rank(query, candidates), by_length, max_body_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(answer.results) == 36
    assert peak < len(sent) * 500_000


def test_limits_are_read_anew_after_a_refusal_for_size() -> None:
    most, sizes = 4, list[int]()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            limits = {**LIMITS, "max_pairs": most}
            served = {"models": [], "defaults": {}, "rerank": {"default_model": None, "default_top": 2}}
            return httpx.Response(200, json={**served, "limits": limits})
        pairs = json.loads(request.content)["pairs"]
        sizes.append(len(pairs))
        if len(pairs) > most:
            return httpx.Response(413, json={"error": {"code": "too_large", "message": "m", "limit": most}})
        return httpx.Response(200, json=lengths("", {"pairs": pairs}) | {"scale": "similarity"})

    with Client("http://service", transport=httpx.MockTransport(answer)) as client:
        client.similarity([("a", "b")] * 4)
        most = 2  # the service began anew
        with pytest.raises(TooLarge):
            client.similarity([("a", "b")] * 4)
        client.similarity([("a", "b")] * 4)
    assert sizes == [4, 4, 2, 2]


def test_numbers_of_numpy_are_sent_and_what_json_has_not_is_named() -> None:
    call = Call("/rank", {"top_k": np.int64(3), "min_score": np.float32(0.5), "guard": np.bool_(True)})
    assert json.loads(call.body or b"") == {"top_k": 3, "min_score": 0.5, "guard": True}
    with pytest.raises(InvalidArgument, match="model: PosixPath is nothing that JSON has"):
        _ = Call("/rank", {"model": Path("a")}).body
    with pytest.raises(InvalidArgument, match="min_score: Out of range float"):
        _ = Call("/rank", {"min_score": float("nan")}).body


def of_each_request_another(field: str, values: list[Any], answer: Answer) -> Answer:
    """A service that is replaced between the parts of a request."""
    left = iter(values)
    return lambda path, body: answer(path, body) | {field: next(left)}


def vectors(_: str, body: dict[str, Any]) -> dict[str, Any]:
    number = len(body["sentences"])
    return {"model": "m", "dim": 2, "embeddings": [[0.0, 1.0]] * number, "truncated": [False] * number}


@pytest.mark.parametrize("method", ["embed", "similarity", "rank"])
def test_parts_that_other_models_answer_are_never_joined(method: str) -> None:
    texts = ["a", "b", "c", "d", "e"]
    asked = {
        "embed": lambda: run(ServiceRequests(2).embed(texts), of_each_request_another("model", list("mnm"), vectors)),
        "similarity": lambda: run(
            ServiceRequests(2).similarity([(t, t) for t in texts]),
            of_each_request_another("model", list("mnm"), lengths),
        ),
        "rank": lambda: run(rank(ServiceRequests(2), texts), of_each_request_another("model", list("mnm"), by_length)),
    }
    with pytest.raises(UnexpectedAnswer, match="parts of one request have the model 'm' and 'n': name a model"):
        asked[method]()


def changed(answer: Answer, path: str, value: Any) -> Answer:
    """A service with another value at this place of its answers."""

    def asked(route: str, body: dict[str, Any]) -> Any:
        whole: Any = answer(route, body)
        *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place = whole
        for part in outer:
            place = place[part]
        place[last] = value
        return whole

    return asked


def two_alike(_: str, body: dict[str, Any]) -> dict[str, Any]:
    results = [{"cluster": 0, "cluster_size": 2, "truncated": False} for _ in body["texts"]]
    near = {"index_1": 0, "index_2": 1, "cosine": 0.9, "joined": True, "why": ""}
    return {"model": "m", "results": results, "review": [near], "apart": []}


NO_ANSWERS = {
    "a number that JSON has not": ("embed", "embeddings.0.1", float("nan"), "expected value at line 1"),
    "a number beyond float32": ("embed", "embeddings.0.1", 1e300, "a number is too large"),
    "a number as text": ("embed", "embeddings.0.1", "1", "valid number"),
    "another number of marks": ("embed", "truncated", [], "0 results for 3 items"),
    "a candidate twice": ("rank", "results.1.index", 2, "twice"),
    "a candidate too few": ("rank", "results", [], "0 results, 3 were asked for"),
    "a cluster beyond the texts": ("dedupe", "results.0.cluster", 3, "text 3 of 3"),
    "a pair before the texts": ("dedupe", "review.0.index_1", -1, "text -1 of 3"),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_no_service_of_ours_answers_is_refused(name: str) -> None:
    method, path, value, said = NO_ANSWERS[name]
    texts, requests = ["a", "bb", "ccc"], ServiceRequests()
    asked: dict[str, tuple[Steps[Any], Answer]] = {
        "embed": (requests.embed(texts), vectors),
        "rank": (rank(requests, texts), by_length),
        "dedupe": (requests.dedupe(texts), two_alike),
    }
    steps, answer = asked[method]
    with pytest.raises(UnexpectedAnswer, match=said):
        run(steps, changed(answer, path, value))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"min_score": 2}, "min_score"),
        ({"min_score": "0.1"}, "min_score"),
        ({"rerank_model": "nope"}, "candidates"),
        ({"min_confidence": 0.5}, "candidates"),
    ],
)
def test_options_of_a_ranking_in_parts_are_checked_as_those_of_one_request(options: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        run(rank(ServiceRequests(2), ["a", "bb", "ccc"], **options), by_length)
    assert caught.value.field == field


def test_a_ranking_in_parts_that_answers_nothing_has_the_best_three_as_suggestions() -> None:
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    found, _ = run(rank(ServiceRequests(2), texts, min_score=1.0, top_k=1), by_length)
    assert (found.results, found.answered) == ([], False)
    assert [each.index for each in found.suggestions] == [4, 3, 2]
    found, _ = run(rank(ServiceRequests(2), texts, min_score=0.0, top_k=1), by_length)
    assert [each.index for each in found.results] == [4]


@pytest.mark.parametrize("top_k", [0, -2, True, "3", 2.5])
def test_a_top_k_of_a_ranking_in_parts_that_is_none_is_asked_as_it_is(top_k: Any) -> None:
    asked = []

    def refuse(_: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body["top_k"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(rank(ServiceRequests(2), ["a", "bb", "ccc"], min_score=0.5, top_k=top_k), refuse)
    assert asked == [top_k]


@pytest.mark.parametrize("limit", [0, -1])
def test_limits_of_which_no_item_is_within_are_no_answer_of_the_service(limit: int) -> None:
    with pytest.raises(UnexpectedAnswer, match=f"limits: max_pairs is {limit}"):
        run(ServiceRequests().models(), lengths, max_pairs=limit)
