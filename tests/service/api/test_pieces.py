"""Large JSON in pieces is the same JSON: read as by the parser that takes it whole, refused where that refuses it."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from service.api.pieces import Broken, Most, TooMuch, read_in_pieces

ANY = Most(10**9, 10**9)
TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", '\\"', '",', "a,b", "[{,:]}", "猫", "😀", "\n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=40,
)


def read(body: bytes, size: int, most: Most = ANY) -> tuple[object, int]:
    """The value, and in how many pieces it was read."""
    reader = read_in_pieces(body, most, size)
    pieces = 1
    while True:
        try:
            next(reader)
        except StopIteration as end:
            return end.value, pieces
        pieces += 1


@settings(max_examples=200, deadline=None)
@given(VALUES, st.integers(1, 40), st.booleans(), st.sampled_from([None, 0, 2]))
def test_pieces_make_the_whole(value: object, size: int, ascii_only: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert read(body, size)[0] == value


@settings(max_examples=500, deadline=None)
@given(VALUES, st.integers(1, 12), st.integers(0, 200), st.integers(0, 2), st.sampled_from([*',[]{}:"\\ 1a', ""]))
def test_what_is_no_json_whole_is_none_in_pieces(value: object, size: int, place: int, out: int, put: str) -> None:
    """One character put in, taken out or changed."""
    body = json.dumps(value)
    place %= len(body) + 1
    body = body[:place] + put + body[place + out :]
    try:
        whole = from_json(body.encode())
    except ValueError:
        with pytest.raises(Broken):
            read(body.encode(), size)
        return
    assert refusal_of(body.encode(), size) in (None, "the same key twice")  # which is refused only here
    if refusal_of(body.encode(), size) is None:
        assert read(body.encode(), size)[0] == whole


def refusal_of(body: bytes, size: int) -> str | None:
    try:
        read(body, size)
    except Broken as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1,2,]",
        b"[,1]",
        b"1,2",
        b"[1],[2]",
        b'{"a":1,}',
        b'{"a":1,2}',
        b'["a" "b"]',
        b"[1}",
        b"]",
        b'["a',
        b'["\\',
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_commas_and_brackets_that_do_not_fit(body: bytes, size: int) -> None:
    with pytest.raises(Broken):
        read(body, size)


def test_a_key_that_comes_twice_is_refused_rather_than_mixed_up() -> None:
    body = b'{"a":[1,2,3],"b":[4],"a":[5,6,7,8,9,10,11,12]}'
    for size in range(1, len(body) + 1):
        refusal = refusal_of(body, size)
        assert refusal in (None, "the same key twice")
        if refusal is None:
            assert read(body, size)[0] == {"a": [5, 6, 7, 8, 9, 10, 11, 12], "b": [4]}


def test_a_large_body_is_read_in_many_pieces_of_about_a_millisecond() -> None:
    value = {"query": "a man", "candidates": ['猫, "dog" ' * 20] * 8000}
    reader = read_in_pieces(json.dumps(value).encode(), ANY)
    longest, pieces = 0.0, 1
    while True:
        began = time.thread_time()
        try:
            next(reader)
        except StopIteration as end:
            found = end.value
            break
        finally:
            longest = max(longest, time.thread_time() - began)
        pieces += 1
    assert found == value
    assert pieces > 50
    assert longest < 0.05  # on an idle machine some 1.5 ms


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"[" + b"1," * 2_000_000 + b"1]", "values"),
        (b"[" * 4_000_000, "values"),
        (b'{"a":[' + b"{}," * 1_000_000 + b"1]}", "values"),
        (b"{" + b'"k":1,' * 600_000 + b'"k":1}', "fields"),
    ],
)
def test_what_is_counted_ends_the_reading_early(body: bytes, what: str) -> None:
    with pytest.raises(TooMuch) as refused:
        read(body, 32_768, Most(10_000, 1000))
    assert refused.value.what == what
    assert refused.value.limit == (10_000 if what == "values" else 1000)
