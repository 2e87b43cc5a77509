"""Text to words: the conformance list, and what must hold for any text at all."""

import json
import unicodedata
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contract.text import normalise, split_words
from contract.tokenizer import Tokenizer

CONFORMANCE = json.loads((Path(__file__).parent / "conformance.json").read_text(encoding="utf-8"))
CASES = CONFORMANCE["cases"]

# Everything Python takes for a text, lone surrogates and controls included; marks, Hangul parts, joiners, kana and
# quotes often, since they are what interacts.
ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Mn", "Mc", "Me", "Cf", "Cc", "Cs", "Cn"]),
        st.sampled_from("aAnNtT'’´ 1,._-\u0130\u0131\u00df\u03a3\u3099\u304b\u1112\u1161\u11ab\u200d\u00bd\ufb01"),
    )
)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_conformance(case: dict[str, Any]) -> None:
    assert split_words(case["text"]) == case["words"]
    encoded = Tokenizer(**CONFORMANCE["tokenizer"]).encode(case["text"], 1000)
    assert list(encoded.ids) == case["ids"]
    assert (encoded.words, encoded.unknown) == (len(case["words"]), case["unknown"])


@given(ANY_TEXT)
@example("\u732b\u304c")
@example("\u00b4\u2033\u2034")
@example("a\u1112\u0301\u1161\u200d\u11ab")
@example("\u304b\u0301\u3099")
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(ANY_TEXT)
@example("in'the n't can't 'stop")
@example("1,000.50 1.a 2.5kg")
def test_words_joined_by_spaces_are_split_into_the_same_words(text: str) -> None:
    words = split_words(text)
    assert split_words(" ".join(words)) == words


@given(ANY_TEXT)
def test_words_are_folded_visible_and_encodable(text: str) -> None:
    for word in split_words(text):
        word.encode("utf-8")
        assert word == word.strip() != ""
        assert word.casefold() == word
        assert not {unicodedata.category(c) for c in word} & {"Mn", "Me", "Cc", "Cf", "Cs", "Co", "Zs"}


@given(st.text(st.characters(max_codepoint=127)) | st.text("n't19.,_srvedlm \x1c\x1f-"))
def test_the_short_road_for_ascii_gives_what_the_long_one_gives(text: str) -> None:
    # A trailing letter outside ASCII sends the same text down the long road.
    assert [*split_words(text), "\u03c9"] == split_words(text + " \u03c9")


@given(ANY_TEXT)
def test_composed_and_decomposed_spellings_are_one(text: str) -> None:
    assert split_words(unicodedata.normalize("NFC", text)) == split_words(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize("part", ["1,", "1.a", "n't", "'", "9", "9a", "a\u0301", "\u1112\u1161"])
def test_no_text_makes_splitting_slow(part: str) -> None:
    started = perf_counter()
    assert split_words(part * 100_000)
    assert perf_counter() - started < 2  # milliseconds; a quadratic expression would take minutes
