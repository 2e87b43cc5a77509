"""A good request of every dialect, how its answer is read and its refusals are worded, and a model that is slow."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
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
LIMITS = {"max_pairs": 3, "max_candidates": 4, "max_sentences": 2}
MAX_CHARS = 70  # of a text, of the same service
_BAD_INPUT = dict.fromkeys(("invalid_request", "empty_text", "unsupported_task", "too_large"), 400)


@dataclass(frozen=True)
class Errors:
    """How a group of clients is told of errors: the fields of the body, and statuses that differ from ours."""

    fields: frozenset[str]
    statuses: Mapping[str, int]
    named: bool = False  # whether `error` holds the field and a code

    def response(self, code: str, field: str | None, message: str, request_id: str = "abc") -> tuple[int, Body]:
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

    @property
    def leaves(self) -> frozenset[str]:
        """The fields of the body, those of `error` with it."""
        if not self.named:
            return self.fields
        return self.fields - {"error"} | {f"error.{name}" for name in ("message", "type", "param", "code")}


OURS = Errors(frozenset({"error"}), {})
TEI = Errors(frozenset({"error", "error_type"}), {"empty_text": 400, "too_large": 422})
OPENAI = Errors(frozenset({"error"}), _BAD_INPUT, named=True)
COHERE = Errors(frozenset({"id", "message", "detail"}), _BAD_INPUT)


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
        cut_refused: what is added so that a text that would be cut is refused, by the code of that refusal.
        takes_one: whether the list may be a single text too.
    """

    path: str
    body: Body
    errors: Errors
    texts: tuple[str, ...] = ()
    own: str = ""
    read: Callable[[Any], Any] = list
    many: str = ""
    cut_refused: Mapping[str, Body] | None = None
    takes_one: bool = False

    @property
    def values(self) -> list[str]:
        """The texts that stand at its places."""
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


def _each(name: str) -> Callable[[Any], Any]:
    return lambda answer: [each[name] for each in answer["data"]]


def _by_type(answer: Any) -> Any:
    return answer["embeddings"]["float"]


def _under(name: str, *places: object) -> tuple[str, ...]:
    return tuple(f"{name}.{place}" for place in places)


_LEFT = {"unsupported_field": {"truncation_side": "left"}}
_TEI_CUT = {"too_large": {"truncate": False}, "unsupported_field": {"truncation_direction": "Left"}}
_COHERE_CUT = {"too_large": {"truncate": "NONE"}, "unsupported_field": {"truncate": "START"}}
RERANK = {"query": A, "documents": [C, B, C]}  # of equal ones the earlier comes first
_PARTS = [{"content": [{"type": "text", "text": text}]} for text in (A, C)]
rerank = partial(
    DialectRequest, body=RERANK, errors=COHERE, texts=("query", *_under("documents", 0, 1, 2)), own="/rank",
    read=_ranked, many="documents", cut_refused=_LEFT,
)  # fmt: skip
score = partial(
    DialectRequest, body={"text_1": A, "text_2": [C, B]}, errors=OPENAI, texts=("text_1", *_under("text_2", 0, 1)),
    own="/similarity", read=_each("score"), many="text_2", cut_refused=_LEFT, takes_one=True,
)  # fmt: skip
embeddings = partial(
    DialectRequest, body={"input": [A, C]}, errors=OPENAI, texts=_under("input", 0, 1), own="/embed", many="input",
    read=_each("embedding"), cut_refused=_COHERE_CUT, takes_one=True,
)  # fmt: skip
cohere_embed = partial(
    DialectRequest, body={"texts": [A, C]}, errors=COHERE, texts=_under("texts", 0, 1), own="/embed", many="texts",
    cut_refused=_COHERE_CUT,
)  # fmt: skip
tei_similarity = partial(
    DialectRequest, body={"inputs": {"source_sentence": A, "sentences": [C, B]}}, errors=TEI, own="/similarity",
    texts=_under("inputs", "source_sentence", "sentences.0", "sentences.1"), many="inputs.sentences",
    cut_refused={code: {"parameters": change} for code, change in _TEI_CUT.items()},
)  # fmt: skip
tei_embed = partial(
    DialectRequest, body={"inputs": [A, C]}, errors=TEI, texts=_under("inputs", 0, 1), own="/embed", many="inputs",
    read=np.asarray, cut_refused=_TEI_CUT, takes_one=True,
)  # fmt: skip
tei_rerank = partial(
    DialectRequest, body={"query": A, "texts": [C, B, C]}, errors=TEI, texts=("query", *_under("texts", 0, 1, 2)),
    own="/rank", read=lambda answer: [(each["index"], each["score"]) for each in answer], many="texts",
    cut_refused=_TEI_CUT,
)  # fmt: skip
tei_pair = partial(DialectRequest, errors=TEI, texts=_under("inputs", 0, 1), own="/entailment", takes_one=True)
# All that each dialect can be asked, and where on the root too.
REQUESTS = {
    "own similarity": DialectRequest("/similarity", {"pairs": [{"a": A, "b": C}]}, OURS),
    "own embed": DialectRequest("/embed", {"sentences": [A]}, OURS),
    "own classify": DialectRequest("/classify", {"text": A, "labels": ["dog", "cat"], "model": "avg-sick"}, OURS),
    "OpenAI": embeddings("/openai/v1/embeddings"),
    "OpenAI, root": embeddings("/v1/embeddings"),
    "OpenAI score": score("/openai/v1/score"),
    "Cohere v1": rerank("/cohere/v1/rerank"),
    "Cohere v1, root": rerank("/v1/rerank"),
    "Cohere v2": rerank("/cohere/v2/rerank"),
    "Cohere v2, root": rerank("/v2/rerank"),
    "Cohere v1 embed": cohere_embed("/cohere/v1/embed", read=itemgetter("embeddings")),
    "Cohere v2 embed": cohere_embed("/cohere/v2/embed", read=_by_type),
    "Cohere v2 embed, root": cohere_embed("/v2/embed", read=_by_type),
    "Cohere v2 embed, in parts": cohere_embed(
        "/cohere/v2/embed", body={"inputs": _PARTS}, texts=_under("inputs", "0.content.0.text", "1.content.0.text"),
        read=_by_type, many="",
    ),
    "Cohere tokenize": DialectRequest("/cohere/v1/tokenize", {"text": A}, COHERE, ("text",)),
    "TEI similarity": tei_similarity("/tei/similarity"),
    "TEI embed": tei_embed("/tei/embed"),
    "TEI embed, bare URL": tei_embed("/tei"),
    "TEI rerank": tei_rerank("/tei/rerank"),
    "TEI predict": tei_pair("/tei/predict", {"inputs": [A, C], "model": "avg-sick"}, read=_predicted),
    "TEI tokenize": tei_embed("/tei/tokenize", own="", cut_refused=None),
}  # fmt: skip
BY_PATH = {each.path: each.errors for each in REQUESTS.values()}


def misfits(
    ask: DialectRequest, limits: Mapping[str, int], chars: int, tokens: int
) -> Iterator[tuple[Body, str, str, str]]:
    """Bodies that do not fit: each with the code of its refusal, the field, and the end of what is said.

    Args:
        ask: what they are made of.
        limits: of the service.
        chars: that a text may have.
        tokens: that the model reads of a text.
    """
    for place in ask.texts:
        for blank in ("", " \u200b"):
            yield put(ask.body, place, blank), "empty_text", place, "the text has no visible character"
        said = f"a text of {chars + 1} characters, the limit is {chars}"
        yield put(ask.body, place, "x" * (chars + 1)), "too_large", place, said
        for code, change in (ask.cut_refused or {}).items():
            said = f"a text of more than {tokens} tokens"
            said += ", and only its end can be cut off" if code == "unsupported_field" else ""
            yield put(ask.body, place, "man " * (tokens + 1)) | change, code, place, said
        if not ask.takes_one:
            yield put(ask.body, place, 3), "invalid_request", place, "expected a text"
    for place in {*ask.texts[:1], ask.many} & {"query", "text", "text_1", "text_2", "documents", "input", "inputs"}:
        yield put(ask.body, place), "invalid_request", place, "Field required"
    if ask.many:
        yield put(ask.body, ask.many, []), "invalid_request", ask.many, "expected at least"
        yield put(ask.body, ask.many, 3), "invalid_request", ask.many, "expected a"
    if ask.many and ask.own != "/classify":  # of labels, pairs are counted
        setting = OWN[ask.own or "/embed"][2]
        count = limits[setting] + 1
        said = f"{count} {ask.many}, the limit is {count - 1} (SEMBLANCE_{setting.upper()})"
        yield put(ask.body, ask.many, ["a"] * count), "too_large", ask.many, said
    if ask.many and ask.takes_one:
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
