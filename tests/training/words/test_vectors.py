import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from training.words.vectors import (
    VectorsError,
    WordVectors,
    read_vectors,
)

WORDS = ["the", "Cat", "caf\u00e9"]
ROWS = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, 0.0], [-3.0, 4.0, 5.5]], dtype=np.float32)


def as_text(header: bool = False, trailing: str = "") -> bytes:
    lines = [f"{word} {' '.join(str(value) for value in row)}{trailing}" for word, row in zip(WORDS, ROWS, strict=True)]
    if header:
        lines.insert(0, f"{len(WORDS)} 3")
    return "".join(line + "\n" for line in lines).encode()


def as_binary(words: list[bytes] | None = None, newline: bytes = b"\n", count: int | None = None) -> bytes:
    names = [word.encode() for word in WORDS] if words is None else words
    body = b"".join(word + b" " + row.astype("<f4").tobytes() + newline for word, row in zip(names, ROWS, strict=True))
    return f"{len(names) if count is None else count} 3\n".encode() + body


def as_npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **(arrays or {"words": np.array(WORDS), "vectors": ROWS}))
    return out.getvalue()


def put(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    return path


FORMATS = {
    "glove": as_text(),
    "glove gzip": gzip.compress(as_text()),
    "carriage returns": as_text().replace(b"\n", b"\r\n"),
    "word2vec text": as_text(header=True, trailing=" "),
    "word2vec text gzip": gzip.compress(as_text(header=True)),
    "word2vec binary": as_binary(),
    "word2vec binary of gensim": as_binary(newline=b""),
    "word2vec binary gzip": gzip.compress(as_binary()),
    "npz": as_npz(),
    "npz of halves": as_npz(words=np.array(WORDS), vectors=ROWS.astype(np.float16)),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_every_format_reads_alike(tmp_path, content):
    path = put(tmp_path, content)
    got = read_vectors(path)
    assert got.words == WORDS
    assert got.vectors.dtype == np.float32
    assert_array_equal(got.vectors, ROWS)


@pytest.mark.parametrize("header", [b"", b"5 2\n"])
def test_words_with_spaces_and_repeated_words(tmp_path, header):
    path = put(tmp_path, header + b"a 1 2\n. . . 3 4\na 5 6\nat name@domain.com 7 8\n1 9 10\n")
    got = read_vectors(path)
    assert got.words == ["a", ". . .", "at name@domain.com", "1"]
    assert_array_equal(got.vectors, np.array([[1, 2], [3, 4], [7, 8], [9, 10]]))


def test_unusual_spaces_and_line_separators_belong_to_words(tmp_path):
    path = put(tmp_path, "x\u00a0y 1 2\nz\u2028 3 4\nw\x85 5 6\n".encode())
    assert read_vectors(path).words == ["x\u00a0y", "z\u2028", "w\x85"]


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    assert read_vectors(put(tmp_path, as_binary([b"a\xff", b"b", b"c"]))).words == ["a\ufffd", "b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: expected a word and its values, got an empty line or file"),
        (b"\n", "line 1: expected a word and its values, got an empty line or file"),
        (b"lonely\n", "line 1: expected a word and its values, got b'lonely\\n'"),
        (b"a 1 2\nb 3\n", "line 2: expected a word and 2 values, got 2 fields"),
        (b"a 1 2\n\nb 3 4\n", "line 2: expected a word and 2 values, got 0 fields"),
        (b"a 1 2\nb 3 x\n", "line 2: expected 2 numbers (could not convert string to float: b'x')"),
        (b"a 1 2\nb 3 nan\n", "line 2: expected 2 finite numbers, got NaN or infinity"),
        (b"a 1 2\nb 3 1e39\n", "line 2: expected 2 finite numbers, got NaN or infinity"),
        (b"3 2\na 1 2\nb 3 4\n", ": line 1 announces 3 words, the file has 2"),
        (b"1 2\na 1 2\nb 3 4\n", ": line 1 announces 1 words, the file has 2"),
        (b"4 0\n", "line 1: expected a dimension of at least 1, got 0"),
        (as_binary()[:-5], ": ends within the vector of word 3 of 3 announced in line 1"),
        (as_binary(count=4), ": expected word 4 and a space, as word2vec binary has it; found neither"),
        (b"2 3\n" + b"\x00" * 9000, ": expected word 1 and a space, as word2vec binary has it; found neither"),
        (
            b"1 2\na " + struct.pack("<ff", 1.0, float("inf")),
            ": word 1 ('a') has NaN or infinity in its vector",
        ),
    ],
)
def test_malformed_files_are_named_with_their_line(tmp_path, content, message):
    path = put(tmp_path, content)
    with pytest.raises(VectorsError) as caught:
        read_vectors(path)
    assert str(caught.value) == f"{path}{'' if message[0] == ':' else ', '}{message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (as_npz(words=np.array(WORDS)), "expected the arrays 'words' .* and 'vectors'"),
        (as_npz(words=np.array(WORDS, dtype=object), vectors=ROWS), "expected the arrays .*allow_pickle=False"),
        (
            as_npz(words=np.array(WORDS), vectors=ROWS[0]),
            r"vectors as floats \[n, d\], got <U4 \(3,\) and float32 \(3,\)",
        ),
        (as_npz(words=np.array(WORDS), vectors=ROWS.astype(int)), r"vectors as floats \[n, d\], got .* and int64"),
        (as_npz(words=np.array(WORDS[:2]), vectors=ROWS), "2 words for 3 vectors"),
        (as_npz(words=np.array(WORDS), vectors=ROWS * np.nan), "vectors contain NaN or infinity"),
        (b"PK\x03\x04 and then nothing", "expected the arrays"),
    ],
)
def test_malformed_npz(tmp_path, content, message):
    path = put(tmp_path, content)
    with pytest.raises(VectorsError, match=f"^{path}: .*{message}"):
        read_vectors(path)


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(VectorsError, match="no such file of word vectors"):
        read_vectors(tmp_path / "absent.txt")
    many = "".join(f"word{number} {number} {number / 7}\n" for number in range(5000)).encode()
    with pytest.raises(VectorsError, match="damaged gzip data"):
        read_vectors(put(tmp_path, gzip.compress(many)[:-200]))


def test_words_and_vectors_must_agree():
    with pytest.raises(ValueError, match="2 words for 3 vectors"):
        WordVectors(["a", "b"], ROWS)
    with pytest.raises(ValueError, match=r"float32 \[n, d\], got float64 \(3, 3\)"):
        WordVectors(WORDS, ROWS.astype(np.float64))
