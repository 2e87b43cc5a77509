"""Our tokenizer as one of the library `tokenizers`: the same ids, word for word, but for what ours hashes."""

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from contract.tokenizer import Tokenizer
from workbench.save_as.vocabulary import vocabulary_of

WORDS = [
    *("the", "a", "man", "dog", "is", "plays", "sleeps", "guitar", "park", "sofa", "not", "big", ".", "n't", "'s"),
    *("'re", "'ve", "'", ",", "-", "#", "?", "3.5", "1,000", "don", "do", "ssa", "cafe", "\u732b"),
]
PIECES = "m ##o ##w ##s run ##ning 1 ##1 ##2 c ##t ##ts ##d g gui ##u ##tar gu s so ##fa".split()  # noqa: SIM905
OURS = Tokenizer(WORDS, PIECES, 3)
BUCKET = len(OURS) - OURS.buckets
TEXTS = (
    "The man's dog don't run, 3.5 # 112!",
    "guitars guitart guita running mow runs sofas 11.2",
    "Isn't it? n'the nn't 's's 'so 'sofa' we've they're o're",
    "</w> [UNK] [PAD] <w> ##o # #",
    "\u732b\u304c\u597d\u304d the\u732bman",
    "\u201cthe\u201d \u2014 n\u0301 THE\u00c9 caf\u00e9 CAFE\u0301 x\u2044y \u00b4s don\u2019t",
    "\u00df\u00dfa \u03c2 \u0301 \U0001f600the the\U0001f600man a\u200bman \x07dog\ttab\nline",
    "1,000 1,000. 1,000.5 .5 3.5.5 3,5, a_b _ __",
    "g" * 70 + " " + "gu" * 31,
    "\ufb01 \uff34\uff28\uff25 \u00bd \u2075 \u304c \u30d1",
    "",
    "  ",
)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> tokenizers.Tokenizer:
    """Written to its file and read again, as another program does."""
    path = tmp_path_factory.mktemp("saved") / "tokenizer.json"
    vocabulary_of(OURS).tokenizer.save(str(path))
    return tokenizers.Tokenizer.from_file(str(path))


def our_ids(text: str) -> list[int]:
    """With one id for every hashed word."""
    return [min(i, BUCKET) for i in OURS.encode(text, 10**6).ids]


@pytest.mark.parametrize("text", TEXTS)
def test_both_give_the_same_ids(text: str, theirs: tokenizers.Tokenizer) -> None:
    ids = vocabulary_of(OURS).ids
    assert [int(ids[i]) for i in theirs.encode(text, add_special_tokens=False).ids] == our_ids(text)


ALPHABET = st.sampled_from("thedogmansu 123.,'n-_#\u00e9\u0301\u732b\u304c\U0001f600<>/w[]\n")


@given(st.text(ALPHABET, max_size=30))
def test_any_text_of_these_characters_has_the_same_ids(text: str) -> None:
    found = vocabulary_of(OURS)
    assert [int(found.ids[i]) for i in found.tokenizer.encode(text).ids] == our_ids(text)


def test_a_word_is_never_the_beginning_of_another(theirs: tokenizers.Tokenizer) -> None:
    """`guitar` is a word, `guitars` is read by its pieces: gui ##tar ##s; what only ours reads, it hashes."""
    assert theirs.encode("zebra").tokens == ["[UNK]"]
    assert theirs.encode("guitar guitars").tokens == ["guitar</w>", "gui", "##tar", "##s</w>"]
