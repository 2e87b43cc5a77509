"""Questions answered by hand: what is sent, in how many pieces, and what comes together again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semblance.client.calls import Call, Steps, read_answer
from semblance.client.requests import ServiceRequests
from semblance.errors import InvalidArgument, RequestFailed, TooLarge
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
    """Orders by length, the shortest first for the model `short`; cuts what is longer than 8."""
    texts, sign = body["candidates"], -1 if body.get("model") == "short" else 1
    best = sorted(range(len(texts)), key=lambda i: -sign * len(texts[i]))[: body.get("top_k")]
    results: list[dict[str, float]] = [{"index": i, "score": 0.5 + sign * len(texts[i]) / 100} for i in best]
    results = [{**result, "raw_score": sign * len(texts[int(result["index"])])} for result in results]
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
    staged = {"rerank_model": "short", "rerank_top": 4}
    parted, _ = run(rank(ServiceRequests(), texts, **staged), slow(by_length, "candidates", most), max_candidates=100)
    assert [result.index for result in parted.results] == [1, 4, 3, 5, 2, 0, 6]


def test_what_is_too_slow_alone_is_an_error() -> None:
    error = {"code": "too_slow", "message": "m", "field": "pairs", "limit": 4, "request_id": "r"}
    body = json.dumps({"error": error}).encode()
    assert isinstance(read_answer(Call("/similarity", {}, range(5), "pairs"), 413, {}, body), RequestFailed)
    with pytest.raises(TooLarge):
        read_answer(Call("/similarity", {}, range(4), "pairs"), 413, {}, body)


def test_numbers_of_numpy_are_sent_and_what_json_has_not_is_named() -> None:
    call = Call("/rank", {"top_k": np.int64(3), "min_score": np.float32(0.5), "guard": np.bool_(True)})
    assert json.loads(call.body or b"") == {"top_k": 3, "min_score": 0.5, "guard": True}
    with pytest.raises(InvalidArgument, match="model: PosixPath is nothing that JSON has"):
        _ = Call("/rank", {"model": Path("a")}).body
