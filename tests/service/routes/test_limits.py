"""Each limit of each request: what is just within it is answered, one more is refused by name and number, and so is
an empty list.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from service.errors import TooLarge, amount
from service.routes.routing import BodyLimits, check, counts, max_counts
from service.settings import Settings
from tests.harness.requests import PAIR, refused
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
SETTINGS = {"max_pairs": 4, "max_candidates": 4, "max_sentences": 4}
MAX_CHARS = 30
Sized = Callable[[int], Any]
CLAIM = {"premise": "a", "hypothesis": "a"}
ENTRY = {"question": "a man", "answer": "a dog"}
CUT = {"text": "a", "labels": ["a", "b"]}


@pytest.fixture(scope="module")
async def limited(serve: Serve) -> AsyncIterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.scoring.tokenising.MAX_TEXT_CHARS", MAX_CHARS)
        async with serve(**SETTINGS) as client:
            yield client


def of(size: int) -> list[str]:
    """So many different short texts."""
    return [f"a {letter}" for letter in "abcdefghi"[:size]]


@pytest.mark.parametrize(
    ("path", "body", "fits", "field", "setting"),
    [
        # how many
        ("/similarity", lambda n: {"pairs": [PAIR] * n}, 4, "pairs", "max_pairs"),
        ("/rank", lambda n: {"query": "a", "candidates": ["a"] * n}, 4, "candidates", "max_candidates"),
        ("/rank", lambda n: {"query": "a", "entries": [ENTRY] * n, "match": "both"}, 4, "entries", "max_candidates"),
        ("/rank", lambda n: {"query": "a", "entries": [ENTRY] * n, "match": "either"}, 2, "entries", "max_candidates"),
        ("/entailment", lambda n: {"pairs": [CLAIM] * n}, 4, "pairs", "max_pairs"),
        ("/classify", lambda n: {"text": "a", "labels": of(n)}, 4, "labels", "max_pairs"),
        ("/classify", lambda n: {"text": ["a", "a"], "labels": of(n)}, 2, "labels", "max_pairs"),
        ("/embed", lambda n: {"sentences": ["a"] * n}, 4, "sentences", "max_sentences"),
        # how long; texts of the other fields: test_properties.py
        ("/classify", lambda n: {"text": "x" * n, "labels": ["a"]}, 30, "text", None),
        ("/classify", lambda n: {**CUT, "labels": ["x" * n], "template": "{}"}, 30, "labels.0", None),
    ],
)  # fmt: skip
async def test_one_more_is_too_much(
    limited: Client, path: str, body: Sized, fits: int, field: str, setting: str | None
) -> None:
    given = body(0).get(field)
    if given == [] and field != "premise":
        none, error = await refused(limited, path, json=body(0))
        assert (none, error["code"], error["field"], error["limit"]) == (422, "invalid_request", field, 1)
    answer = await limited.post(path, json=body(fits))
    assert answer.status_code == 200, answer.text
    status, error = await refused(limited, path, json=body(fits + 1))
    limit = MAX_CHARS if setting is None else fits  # less than what was sent
    assert (status, error["code"], error["field"], error["limit"]) == (413, "too_large", field, limit)
    assert str(error["message"]).endswith(
        f"the limit is {limit}" + ("" if setting is None else f" (SEMBLANCE_{setting.upper()})")
    )


@pytest.mark.parametrize(
    ("path", "body", "fits", "field", "place"),
    [
        ("/claims", lambda n: {"documents": "a", "claims": ["a"] * n}, 4, "claims", "claims.MAX_CLAIMS"),
        ("/claims", lambda n: {"documents": ["a", "x" * n], "claims": ["a"]}, 59, "documents",
         "claims.MAX_DOCUMENT_CHARS"),
        ("/claims", lambda n: {"documents": ["a cat"] * n, "claims": ["a"]}, 3, "documents", "claims.MAX_DOCUMENTS"),
        ("/explain", lambda n: {"a": "man", "b": "a " * n}, 4, "b", "native.MAX_EXPLAINED_TOKENS"),
    ],
)  # fmt: skip
async def test_one_more_than_a_fixed_limit_is_too_much(
    lasting: Client, monkeypatch: pytest.MonkeyPatch, path: str, body: Sized, fits: int, field: str, place: str
) -> None:
    limit = fits + place.endswith("DOCUMENT_CHARS")  # those of two documents
    monkeypatch.setattr(f"service.routes.{place}", limit)
    answer = await lasting.post(path, json=body(fits))
    assert answer.status_code == 200, answer.text
    status, error = await refused(lasting, path, json=body(fits + 1))
    assert (status, error["code"], error["field"], error["limit"]) == (413, "too_large", field, limit)
    assert str(error["message"]).endswith(f"the limit is {limit}")


@pytest.mark.parametrize(
    ("most", "found"),
    [((9, 5), (9, 5)), ((8, 5), (5, 3)), ((9, 4), (5, 3)), ((5, 3), None), ((4, 3), "4 values"), ((5, 2), "2 fields")],
)
def test_characters_inside_of_texts_are_counted_while_they_are_few(
    most: tuple[int, int], found: tuple[int, int] | str | None
) -> None:
    body, limits = rb'{"a": "x,,::", "b": [1, {"c": "\\\"[,"}]}', BodyLimits(*most)
    if isinstance(found, tuple):
        assert counts(body, limits) == found
    elif found is None:
        check(body, limits)
    else:
        with pytest.raises(TooLarge, match=f"^the body has more than {found}$") as caught:
            check(body, limits)
        assert caught.value.limit == int(found[0])


@pytest.mark.parametrize("text", [rb"x\\", rb"x\\\"", rb"\\\\", rb"\"", rb"\\\\\","])
def test_a_text_that_ends_in_backslashes_ends_where_its_quote_is(text: bytes) -> None:
    """What follows it is counted, and what is in the next text is not."""
    body = b'{"a": "%s", "b": [1, "c,,,:["]}' % text
    assert json.loads(body)["b"] == [1, "c,,,:["]
    assert counts(body, BodyLimits(4, 2)) == (4, 2)


@pytest.mark.parametrize(
    ("pairs", "candidates", "sentences", "values", "keys"),
    [(10, 2000, 50, 33_000, 3064), (100, 5, 50, 4200, 264), (10, 5, 40, 1640, 84), (10, 40, 5, 1640, 184)],
)
def test_a_body_may_have_what_the_longest_list_needs(
    pairs: int, candidates: int, sentences: int, values: int, keys: int
) -> None:
    settings = Settings(max_pairs=pairs, max_candidates=candidates, max_sentences=sentences)
    assert max_counts(settings, strict=True) == (values, keys)
    assert max_counts(settings, strict=False) == (values, values)


def test_amounts_agree_with_their_nouns() -> None:
    said = [amount(0, "pairs"), amount(1, "pairs"), amount(2, "pairs"), amount(1, "a.texts")]
    assert said == ["0 pairs", "1 pair", "2 pairs", "1 a.texts"]


async def test_labels_that_each_text_would_repeat_are_no_longer_than_a_body(serve: Serve) -> None:
    async with serve(max_body_bytes=2000) as client:
        for size, status in ((20, 200), (21, 413)):
            body = {"text": ["a man"] * 100, "labels": ["a dog".rjust(size, "x")]}
            answer = await client.post("/classify", json=body)
            assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["field"], error["limit"]) == ("text", 95)
    assert "95 texts fit" in error["message"]
