"""A good request of every dialect, how its answer is read and its refusals are worded, and a model that is slow."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from tests.harness.service import Client, expect

Body = dict[str, Any]
A, B, C = "a man plays the guitar", "the man is playing a guitar .", "a dog sleeps"
# The statuses of our own errors, by their codes; those of the families are written beside.
STATUSES = {
    "invalid_request": 422,
    "empty_text": 422,
    "unsupported_field": 422,
    "unsupported_task": 422,
    "too_large": 413,
    "unknown_model": 404,
}
LIMITS = {"max_pairs": 3, "max_candidates": 4, "max_sentences": 2, "max_text_chars": 70}
_PLAINLY = dict.fromkeys(("invalid_request", "empty_text", "unsupported_task", "too_large"), 400)


@dataclass(frozen=True)
class Errors:
    """How a group of clients is told of errors: the fields of the body, and statuses that differ from ours."""

    fields: frozenset[str]
    statuses: Mapping[str, int]
    named: bool = False  # whether `error` holds the field and a code

    def told(self, code: str, field: str | None, message: str, request_id: str = "abc") -> tuple[int, Body]:
        """The status and the whole body for an error of the client."""
        status = self.statuses.get(code, STATUSES[code])
        code = {"unknown_model": "model_not_found"}.get(code, code)
        named = {"message": message, "type": "invalid_request_error", "param": field, "code": code}
        values = {
            "id": request_id,
            "message": message,
            "detail": message,
            "error": named if self.named else message,
            "error_type": "Empty" if code == "empty_text" else "Validation",
        }
        return status, {name: values[name] for name in self.fields}


OURS = Errors(frozenset({"error"}), {})
OPEN_INFERENCE = Errors(frozenset({"error"}), _PLAINLY)
TEI = Errors(frozenset({"error", "error_type"}), {"empty_text": 400, "too_large": 422})
OPENAI = Errors(frozenset({"error"}), _PLAINLY, named=True)
JINA = Errors(OPENAI.fields | {"message", "detail"}, _PLAINLY, named=True)
COHERE = Errors(frozenset({"id", "message"}), _PLAINLY)
BOTH = Errors(JINA.fields | COHERE.fields, _PLAINLY, named=True)


def unit(rows: Any) -> np.ndarray:
    """Embeddings divided by their lengths."""
    return np.asarray(rows) / np.linalg.norm(rows, axis=1, keepdims=True)


def _labelled(probabilities: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(probabilities.items(), key=lambda one: -one[1])


# Our own route -> its body for these texts, what its answer says, and the setting that limits it.
OWN: dict[str, tuple[Callable[[list[str]], Body], Callable[[Any], Any], str]] = {
    "/rank": (
        lambda texts: {"query": texts[0], "candidates": texts[1:]},
        lambda answer: [(each["index"], each["score"]) for each in answer["results"]],
        "max_candidates",
    ),
    "/similarity": (
        lambda texts: {"pairs": [{"a": texts[0], "b": text} for text in texts[1:]]},
        lambda answer: [each["score"] for each in answer["results"]],
        "max_pairs",
    ),
    "/entailment": (
        lambda texts: {"pairs": [{"premise": texts[0], "hypothesis": texts[1]}]},
        lambda answer: _labelled(answer["results"][0]["probabilities"]),
        "max_pairs",
    ),
    "/classify": (
        lambda texts: {"text": texts[0], "labels": texts[1:], "template": "This example is {}."},
        lambda answer: _labelled(answer["results"][0]["probabilities"]),
        "max_pairs",
    ),
    "/embed": (lambda texts: {"sentences": texts}, lambda answer: unit(answer["embeddings"]), "max_sentences"),
}


@dataclass(frozen=True)
class DialectRequest:
    """A good request of one dialect.

    Attributes:
        path: of the route.
        body: its texts differ, so that their order shows.
        errors: how its family words them.
        texts: where its texts stand, in the order in which our own route takes them.
        own: our route of the same work; none where the answer is told nowhere else.
        read: the same of its answer as `OWN` reads of ours.
        many: the list that has a limit.
        uncut: what is added so that a text that is too long for the model is refused, by the code of that refusal.
        loose: whether the list may be a single text too.
    """

    path: str
    body: Body
    errors: Errors
    texts: tuple[str, ...] = ()
    own: str = ""
    read: Callable[[Any], Any] = list
    many: str = ""
    uncut: Mapping[str, Body] | None = None
    loose: bool = False

    @property
    def values(self) -> list[str]:
        """Its texts."""
        return [get(self.body, place) for place in self.texts]


def get(body: Any, place: str) -> Any:
    """What stands at a place such as `inputs.0.text`."""
    for name in place.split("."):
        body = body[int(name)] if isinstance(body, list) else body[name]
    return body


def put(body: Body, place: str, *value: object) -> Body:
    """A copy with a value there; without one, without that field."""
    copied = copy.deepcopy(body)
    above, _, last = place.rpartition(".")
    at = get(copied, above) if above else copied
    if value:
        at[int(last) if isinstance(at, list) else last] = value[0]
    else:
        del at[last]
    return copied


def _ranked(answer: Any) -> Any:
    return [(each["index"], each["relevance_score"]) for each in answer["results"]]


def _predicted(answer: Any) -> Any:
    return [(each["label"], each["score"]) for each in answer]


def _scored(answer: Any) -> Any:
    return [each["score"] for each in answer["data"]]


def _embedded(answer: Any) -> Any:
    return [each["embedding"] for each in answer["data"]]


_LEFT = {"unsupported_field": {"truncation_side": "left"}}
_TEI_CUT = {"too_large": {"truncate": False}, "unsupported_field": {"truncation_direction": "Left"}}
_TEI_SIMILARITY_CUT = {code: {"parameters": change} for code, change in _TEI_CUT.items()}
_COHERE_CUT = {"too_large": {"truncate": "NONE"}, "unsupported_field": {"truncate": "START"}}
_OPENAI_CUT = {"too_large": {"truncate": False}, **_LEFT}
_DOCUMENTS: Any = {"own": "/rank", "read": _ranked, "many": "documents", "uncut": _LEFT}
_DOCUMENTS |= {"texts": ("query", "documents.0", "documents.1", "documents.2")}
_TEXTS: Any = {"own": "/embed", "many": "texts", "texts": ("texts.0", "texts.1"), "uncut": _COHERE_CUT}
_INPUT: Any = {"own": "/embed", "many": "input", "texts": ("input.0", "input.1"), "uncut": _OPENAI_CUT, "loose": True}
_SCORE: Any = {"own": "/similarity", "read": _scored, "many": "text_2", "uncut": _LEFT, "loose": True}
_SCORE |= {"texts": ("text_1", "text_2.0", "text_2.1")}
_SIMILAR: Any = {"own": "/similarity", "many": "inputs.sentences", "uncut": _TEI_SIMILARITY_CUT}
_SIMILAR |= {"texts": ("inputs.source_sentence", "inputs.sentences.0", "inputs.sentences.1")}
_INPUTS: Any = {"own": "/embed", "read": np.asarray, "many": "inputs", "texts": ("inputs.0", "inputs.1")}
_INPUTS |= {"uncut": _TEI_CUT, "loose": True}
_LABELS: Any = {"own": "/classify", "many": "parameters.candidate_labels"}
_LABELS |= {"texts": ("inputs", "parameters.candidate_labels.0", "parameters.candidate_labels.1")}
_QUERY_TEXTS: Any = {"own": "/rank", "many": "texts", "texts": ("query", "texts.0", "texts.1", "texts.2")}
_QUERY_TEXTS |= {"read": lambda answer: [(each["index"], each["score"]) for each in answer], "uncut": _TEI_CUT}
_FLOATS, _BY_TYPE = itemgetter("embeddings"), lambda answer: answer["embeddings"]["float"]
_PAIR = ("inputs.0", "inputs.1")
RERANK = {"query": A, "documents": [C, B, C]}  # of equal ones the earlier comes first
COMPARE = {"inputs": {"source_sentence": A, "sentences": [C, B]}}
SCORE = {"text_1": A, "text_2": [C, B]}
ZERO_SHOT = {"inputs": A, "parameters": {"candidate_labels": ["dog", "guitar"]}, "model": "avg-sick"}
# On a path of several families the first is told of what is wrong before the body is read.
REQUESTS = {
    "own similarity": DialectRequest("/similarity", {"pairs": [{"a": A, "b": C}]}, OURS),
    "own embed": DialectRequest("/embed", {"sentences": [A]}, OURS),
    "own classify": DialectRequest("/classify", {"text": A, "labels": ["dog", "cat"], "model": "avg-sick"}, OURS),
    "Jina rerank": DialectRequest("/rerank", RERANK, JINA, **_DOCUMENTS),
    "LiteLLM infinity": DialectRequest("/infinity/rerank", RERANK, JINA, **_DOCUMENTS),
    "Cohere v1": DialectRequest("/v1/rerank", RERANK, BOTH, **_DOCUMENTS),
    "Cohere v2": DialectRequest("/v2/rerank", RERANK, COHERE, **_DOCUMENTS),
    "Cohere v1 embed": DialectRequest("/v1/embed", {"texts": [A, C]}, COHERE, **_TEXTS, read=_FLOATS),
    "Cohere v2 embed": DialectRequest(
        "/v2/embed", {"texts": [A, C]}, COHERE, **_TEXTS, read=_BY_TYPE
    ),
    "Cohere v2 embed, in parts": DialectRequest(
        "/v2/embed", {"inputs": [{"content": [{"type": "text", "text": text}]} for text in (A, C)]}, COHERE,
        ("inputs.0.content.0.text", "inputs.1.content.0.text"), "/embed", _BY_TYPE,
        uncut=_COHERE_CUT,
    ),
    "Cohere tokenize": DialectRequest("/v1/tokenize", {"text": A}, COHERE, ("text",)),
    "OpenAI": DialectRequest("/v1/embeddings", {"input": [A, C]}, OPENAI, **_INPUT, read=_embedded),
    "Infinity embedding": DialectRequest("/embeddings", {"input": [A, C]}, OPENAI, **_INPUT, read=_embedded),
    "LiteLLM infinity embedding": DialectRequest(
        "/infinity/embeddings", {"input": [A, C]}, OPENAI, **_INPUT, read=_embedded
    ),
    "vLLM pooling": DialectRequest(
        "/pooling", {"input": [A, C]}, JINA, **_INPUT, read=lambda answer: [each["data"] for each in answer["data"]]
    ),
    "vLLM score": DialectRequest("/score", SCORE, JINA, **_SCORE),
    "vLLM v1 score": DialectRequest("/v1/score", SCORE, JINA, **_SCORE),
    "TEI similarity": DialectRequest("/similarity", COMPARE, TEI, **_SIMILAR),
    "TEI similarity, bare URL": DialectRequest("/", COMPARE, TEI, **_SIMILAR),
    "TEI embed": DialectRequest("/embed", {"inputs": [A, C]}, TEI, **_INPUTS),
    "TEI embed, bare URL": DialectRequest("/", {"inputs": [A, C]}, TEI, **_INPUTS),
    "TEI rerank": DialectRequest("/rerank", {"query": A, "texts": [C, B, C]}, TEI, **_QUERY_TEXTS),
    "TEI rerank, bare URL": DialectRequest("/", {"query": A, "texts": [C, B, C]}, TEI, **_QUERY_TEXTS),
    "TEI predict": DialectRequest(
        "/predict", {"inputs": [A, C], "model": "avg-sick"}, TEI, _PAIR, "/entailment", _predicted,
        loose=True,
    ),
    "TEI tokenize": DialectRequest("/tokenize", {"inputs": [A, C]}, TEI, _PAIR, many="inputs", loose=True),
    "Hugging Face zero-shot": DialectRequest(
        "/classify", ZERO_SHOT, TEI, **_LABELS, read=lambda one: list(zip(one["labels"], one["scores"], strict=True))
    ),
    "Hugging Face zero-shot, bare URL": DialectRequest("/", ZERO_SHOT, TEI, **_LABELS, read=_predicted),
    "Hugging Face labels": DialectRequest(
        "/", {"inputs": [A, C], "parameters": {}, "model": "avg-sick"}, TEI, _PAIR, "/entailment",
        lambda answer: _predicted(answer[0]), loose=True,
    ),
}  # fmt: skip
BY_PATH = {each.path: each.errors for each in reversed(REQUESTS.values())}


def misfits(ask: DialectRequest, limits: Mapping[str, int], tokens: int) -> Iterator[tuple[Body, str, str, str]]:
    """Bodies that do not fit: each with the code of its refusal, the field, and the end of what is said.

    Args:
        ask: what they are made of.
        limits: of the service.
        tokens: that the model reads of a text.
    """
    chars, inside = limits["max_text_chars"], ask.texts if not ask.loose else ()
    for place in ask.texts:
        for blank in ("", " \u200b"):
            yield put(ask.body, place, blank), "empty_text", place, "the text has no visible character"
        said = f"a text of {chars + 1} characters, the limit is {chars} (SEMBLANCE_MAX_TEXT_CHARS)"
        yield put(ask.body, place, "x" * (chars + 1)), "too_large", place, said
        for code, change in (ask.uncut or {}).items():
            said = f"a text of more than {tokens} tokens"
            said += ", and only its end can be cut off" if code == "unsupported_field" else ""
            yield put(ask.body, place, "man " * (tokens + 1)) | change, code, place, said
    # Without its marker a body on a path of several families is another's.
    for place in {*ask.texts[:1], ask.many} & {"query", "text", "text_1", "text_2", "documents", "input"}:
        yield put(ask.body, place), "invalid_request", place, "Field required"
    for place in inside:
        yield put(ask.body, place, 3), "invalid_request", place, "expected a text"
    if ask.many:
        setting = OWN[ask.own or "/embed"][2]
        count = limits[setting] + 1
        yield put(ask.body, ask.many, []), "invalid_request", ask.many, "expected at least"
        yield put(ask.body, ask.many, 3), "invalid_request", ask.many, "expected a"
        for place in () if "." in ask.many and "inputs" not in ask.many else (ask.many,):
            said = f"{count} {place}, the limit is {count - 1} (SEMBLANCE_{setting.upper()})"
            yield put(ask.body, place, ["a"] * count), "too_large", place, said
        if ask.loose:
            yield put(ask.body, ask.many, " "), "empty_text", ask.many, "the text has no visible character"
            yield put(ask.body, ask.many, ["a", None]), "invalid_request", ask.many, "item 1 is no text"
            for ids in ([1, 2], [[1, 2]]):
                yield put(ask.body, ask.many, ids), "invalid_request", ask.many, "check_embedding_ctx_length=False"
    if "model" not in ask.body and ask.errors is not OURS:
        yield ask.body | {"model": "rerank-v9"}, "unknown_model", "model", "no model 'rerank-v9'"


def slow(client: Client, seconds: float, name: str, expected: float = 1.0) -> None:
    """Make a model's encoder slow, and expected to take so long."""
    scorer = client.app.service.registry[name].scorer
    graph, fast = scorer.graphs["encoder.onnx"], scorer.graphs["encoder.onnx"].run
    graph.run = lambda feeds: (time.sleep(seconds), fast(feeds))[1]
    expect(scorer, expected)
