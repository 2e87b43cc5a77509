"""Text to words: the conformance list, and what must hold for any text at all."""

import json
import subprocess
import sys
import unicodedata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import text as contract_text
from core.text import normalise, split_words, words_in_parts
from core.tokenizer import Tokenizer

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


@given(ANY_TEXT)
def test_composed_and_decomposed_spellings_are_one(text: str) -> None:
    assert split_words(unicodedata.normalize("NFC", text)) == split_words(unicodedata.normalize("NFD", text))


def plainly_normalised(text: str) -> str:
    """What `normalise` is to give, step by step and in quadratic time: marks stay until they have been sorted."""
    plain = str.maketrans(contract_text.PLAIN)
    decomposed = unicodedata.normalize("NFKD", text.translate(plain))
    kept = (c for c in decomposed if unicodedata.category(c) not in {"Mn", "Me", "Cf", "Cs", "Co"} or c in VOICING)
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in kept)
    folded = unicodedata.normalize("NFC", spaced).casefold().translate(plain)
    return "".join(c for c in folded if unicodedata.category(c) != "Mn")


VOICING = "\u3099\u309a"
# Marks of many classes: dropped ones, kept ones (of music, tone marks, viramas), some that are several in one, voicing
# marks, also those of half width, and what keeps marks apart until it is dropped.
MARKS = (
    "\u0301\u0316\u0344\u0f73\u0f71\u05b0\U0001d165\U0001d16d\u302e\u1b44\U00016ff0\u3099\u309a\uff9e\uff9f\u200d\u034f"
)
ROWS_OF_MARKS = st.lists(
    st.tuples(st.sampled_from(["", "a", "\u304b", "\u1112\u1161", "\uff76", " "]), st.text(MARKS, max_size=100))
).map(lambda parts: "".join(base + marks for base, marks in parts) + "\u03c9")


@given(ANY_TEXT.map(lambda text: text + "\u03c9") | ROWS_OF_MARKS)
@example("a" + "\u0301" * 100 + "\u0316" * 100 + "b")
@example("\u304b" + "\u302e\u200d" * 40 + "\u3099\u200d" * 40)
@example("\u304b" + "\u0301" * 100 + "\uff9e")
def test_marks_dropped_and_sorted_early_change_no_text(text: str) -> None:
    assert normalise(text) == plainly_normalised(text)


def test_every_character_is_read_as_step_by_step() -> None:
    # 61 characters apart, so that those of all planes come up in a second; all of them were compared once.
    for code in range(0x80, 0x110000, 61):
        text = f"\u304b{chr(code)}\u0301\u3099\u1112{chr(code) * 2}\u1161"
        assert normalise(text) == plainly_normalised(text), hex(code)


QUADRATIC = """
import sys
from core.text import split_words, words_in_parts
for argument in sys.argv[1:]:
    base, *marks = argument.encode().decode("unicode_escape").split("|")
    text = base + "".join(mark * (60_000 // len(marks)) for mark in marks)
    print(argument, len(split_words(text)), sum(map(len, words_in_parts(text))))
"""


def test_no_row_of_marks_makes_reading_slow() -> None:
    texts = (
        "a|\\u0301|\\u0316",
        "a|\\u0344|\\u0316",
        "a|\\u0f73",
        "a|\\U0001d165|\\u3099",
        "a|\\U0001d165|\\uff9e",
        "a|\\U0001d165\\u200d|\\u3099\\u200d",  # apart until the joiners are dropped
    )
    # In a process that can be killed: `unicodedata.normalize` sorted them in up to a minute, and let nobody else run.
    # What is asked takes a tenth of a second, beside starting Python.
    child = subprocess.run([sys.executable, "-c", QUADRATIC, *texts], capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stdout + child.stderr
    for line, text in zip(child.stdout.splitlines(), texts, strict=True):
        argument, whole, in_parts = line.split()
        assert (argument, whole) == (text, in_parts)


@given(st.lists(ANY_TEXT | ROWS_OF_MARKS | st.text("n't19.,_srvedlm'! \x1c\x00\u4e00", max_size=30)).map("".join))
@example("1,000 don't \u304b\u3099 it's")
@example("\u1112\u1161\u11ab\u09c7\u09be\ufdfa\ufdfa")
def test_words_read_in_parts_are_those_of_the_whole(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract_text, "_PART", 3)
        assert list(chain.from_iterable(words_in_parts(text))) == split_words(text)


@pytest.mark.timeout(60)  # milliseconds; a quadratic expression would take minutes
@pytest.mark.parametrize("part", ["1,", "1.a", "n't", "'", "9", "9a", "a\u0301", "\u1112\u1161"])
def test_no_text_makes_splitting_slow(part: str) -> None:
    assert split_words(part * 100_000)
