"""Text to ids: the layout, the fallbacks, the limit, and the file."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import TokenizerError
from core.tokenizer import MAX_PIECED_CHARS, Encoded, Tokenizer

WORDS = ("the", "cat", "caf\u00e9")  # the third can never be met: words are looked up folded
PIECES = ("un", "##do", "##does", "do", "a", "##a")
TOKENIZER = Tokenizer(WORDS, PIECES, 4)


def bucket(word: str) -> int:
    return 1 + len(WORDS) + len(PIECES) + zlib.crc32(word.encode()) % 4


def test_ids_are_padding_words_pieces_buckets_in_that_order() -> None:
    assert len(TOKENIZER) == 1 + 3 + 6 + 4
    assert [TOKENIZER.token(i) for i in range(len(TOKENIZER))] == [
        "<pad>",
        *WORDS,
        *PIECES,
        "<bucket 0>",
        "<bucket 1>",
        "<bucket 2>",
        "<bucket 3>",
    ]


def test_known_words_have_their_own_ids() -> None:
    assert TOKENIZER.encode("The CAT, the", 10) == Encoded((1, 2, bucket(","), 1), words=4, unknown=1, truncated=False)


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("undo", ["un", "##do"]),
        ("undoes", ["un", "##does"]),  # the longest piece that fits, not the first listed
        ("do", ["do"]),  # a whole word of one piece still counts as unknown
        ("aaa", ["a", "##a", "##a"]),
    ],
)
def test_an_unknown_word_is_cut_into_the_longest_pieces(word: str, pieces: list[str]) -> None:
    encoded = TOKENIZER.encode(word, 10)
    assert [TOKENIZER.token(i) for i in encoded.ids] == pieces
    assert (encoded.words, encoded.unknown) == (1, 1)


@pytest.mark.parametrize("word", ["zebra", "unz", "doun", "\u732b", "\U0001f600"])
def test_what_pieces_do_not_cover_whole_is_one_bucket(word: str) -> None:
    # "doun": a piece that begins words does not continue one.
    assert TOKENIZER.encode(word, 10).ids == (bucket(word),)


@given(st.text("0123ab\u0663", min_size=1, max_size=12))
def test_numbers_are_cut_like_any_word(word: str) -> None:
    # Some digits are pieces alone, some begin longer ones, some do not begin or do not continue a word.
    pieces = ("0", "1", "2", "22", "a", "##0", "##1", "##2", "##23", "##a", "\u0663")
    tokenizer = Tokenizer([], pieces, 8)
    cut: list[str] = []
    rest = word
    while rest:
        fitting = [p for p in pieces if p.startswith("##") == bool(cut) and rest.startswith(p.removeprefix("##"))]
        if not fitting:
            break
        cut.append(max(fitting, key=len))
        rest = rest[len(cut[-1].removeprefix("##")) :]
    ids = tokenizer.fallback(word)
    assert ids == [1 + pieces.index(p) for p in cut] if not rest else ids[0] > len(pieces)


def test_very_long_words_are_one_bucket() -> None:
    longest = "a" * MAX_PIECED_CHARS
    assert len(TOKENIZER.encode(longest, 100).ids) == MAX_PIECED_CHARS
    assert TOKENIZER.encode(longest + "a", 100).ids == (bucket(longest + "a"),)


def test_ids_are_cut_at_the_limit_and_reported() -> None:
    whole = TOKENIZER.encode("the undo cat", 4)
    assert whole == Encoded((1, 4, 5, 2), words=3, unknown=1, truncated=False)
    cut = TOKENIZER.encode("the undo cat", 3)
    assert cut == Encoded((1, 4, 5), words=3, unknown=1, truncated=True)


def test_words_are_counted_not_pieces() -> None:
    assert TOKENIZER.encode("the undo cat undo", 2) == Encoded((1, 4), words=4, unknown=2, truncated=True)
    assert TOKENIZER.encode("", 9) == Encoded((), 0, 0, False)
    assert TOKENIZER.encode(" \x00\u200b", 9) == Encoded((), 0, 0, False)


@pytest.mark.parametrize("part", ["the undo cat, ", "\u732b", "\ufdfa ", "\u732b the undo "])
def test_a_long_text_gives_the_ids_of_the_whole_and_is_read_no_further(part: str) -> None:
    long, short = TOKENIZER.encode(part * 10_000, 100), TOKENIZER.encode(part * 101, 100)
    assert long.ids == short.ids
    assert (long.truncated, len(long.ids)) == (True, 100)
    assert 100 // 4 < long.words < 2000  # of 10,000 and more
    assert long.unknown / long.words == pytest.approx(short.unknown / short.words, abs=0.05)


def test_a_long_text_that_fits_is_read_to_its_end() -> None:
    encoded = TOKENIZER.encode("the" + " " * 5000 + "cat" + "\u200d" * 5000 + "\u732b", 9)
    assert encoded == Encoded((1, 2, bucket("\u732b")), words=3, unknown=1, truncated=False)
    word = "\u00e9" * 50_000
    assert TOKENIZER.encode(word, 9) == Encoded((bucket("e" * 50_000),), words=1, unknown=1, truncated=False)


@given(st.text(), st.integers(1, 6))
def test_any_text_gives_ids_within_the_table_and_the_limit(text: str, limit: int) -> None:
    encoded = TOKENIZER.encode(text, limit)
    assert all(0 < i < len(TOKENIZER) for i in encoded.ids)
    assert len(encoded.ids) <= limit
    assert encoded.truncated == (len(TOKENIZER.encode(text, 10**6).ids) > limit)
    assert bool(encoded.ids) == bool(encoded.words)
    assert 0 <= encoded.unknown <= encoded.words


# Few characters, so that words, clitics, numbers and what separates them meet often.
PLAIN_TEXT = st.text("abdotnsv'\"_.,-!?10  NT")
OTHER_TEXT = st.text("a\u00e9 .\t\n\x00\x1c\u732b")


@given(st.lists(PLAIN_TEXT, min_size=1, max_size=4) | st.lists(PLAIN_TEXT | OTHER_TEXT, max_size=4), st.integers(1, 6))
def test_many_texts_at_once_are_read_as_one_by_one(texts: list[str], limit: int) -> None:
    vocabulary = Tokenizer(("do", "n't", "'s", "a", "1.0", "-", "s", "."), ("un", "##do", "b", "##1"), 4)
    assert vocabulary.encode_all(texts, limit) == [vocabulary.encode(text, limit) for text in texts]


def test_a_vocabulary_of_words_that_no_text_has_is_read_one_by_one() -> None:
    odd = Tokenizer(("don't", "a-b", "a", "b", "-", "do", "n't", "\0"))
    texts = ["A-b don't", "do a-b"]
    assert odd.encode_all(texts, 9) == [odd.encode(text, 9) for text in texts]
    assert odd.encode_all(texts, 9)[0].ids == (3, 5, 4, 6, 7)


@pytest.mark.parametrize(
    ("words", "pieces", "buckets", "message"),
    [
        (["a", "b", "a"], [], 1, "^word 'a' is in the vocabulary twice$"),
        (["a"], ["x", "##x", "##x"], 1, "^piece '##x' is in the vocabulary twice$"),
        (["a", ""], [], 1, "^an empty word in the vocabulary$"),
        (["a"], ["##"], 1, "^an empty piece in the vocabulary$"),
        (["a"], [], 0, "^a tokenizer needs at least 1 bucket, got 0$"),
    ],
)
def test_a_vocabulary_that_cannot_be_laid_out_is_refused(
    words: list[str], pieces: list[str], buckets: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TokenizerError, match=message):
        Tokenizer(words, pieces, buckets)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"format": 1, "words": words, "pieces": pieces, "buckets": buckets}))
    with pytest.raises(TokenizerError, match=f"^{path}: {message[1:]}"):
        Tokenizer.load(path)


def test_a_file_read_and_written_again_has_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    original = Tokenizer(["the", "\u732b", '"', "\\", "\u2028"], ["a", "##\u00e9"], 7)
    original.save(first)
    again = Tokenizer.load(first)
    again.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert (again.words, again.pieces, again.buckets) == (original.words, original.pieces, 7)
    assert again.encode("the \u732b zebra", 9) == original.encode("the \u732b zebra", 9)


GOOD = {"format": 1, "words": ["a"], "pieces": [], "buckets": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "cannot be read as a tokenizer file"),
        (b"[" * 200_000, "cannot be read as a tokenizer file"),
        (b"{}", "tokenizer format None, this version reads 1"),
        (json.dumps({**GOOD, "format": 2}).encode(), "tokenizer format 2, this version reads 1"),
        (
            json.dumps({**GOOD, "extra": 1}).encode(),
            r"fields are format, words, pieces, buckets; found \['buckets', 'extra'",
        ),
        (json.dumps({**GOOD, "pieces": ["a", 1]}).encode(), "pieces must be a list of strings"),
        (json.dumps({**GOOD, "buckets": 400_000_000}).encode(), "400,000,000 buckets, expected 200,000 at most"),
        (b'{"words": [' + b"[]," * 1_600_000, "1,600,000 commas, expected 1,500,000 at most"),
        (b" " * (25 << 20), "cannot be read as a tokenizer file: .*26,214,400 bytes, expected 25,165,824 at most"),
        (json.dumps({**GOOD, "buckets": True}).encode(), "buckets must be a whole number, found True"),
    ],
    ids=lambda value: str(value[:30]),
)
def test_a_malformed_file_is_refused_by_name(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match=f"^{path}: {message}"):
        Tokenizer.load(path)
