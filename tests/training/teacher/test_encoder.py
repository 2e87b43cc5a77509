"""Cached encodings: resumable, never encoded twice, never mixed up. The teacher is a toy."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from training.teacher import encoder
from training.teacher.encoder import Teacher, encode_cached

TEXTS = [f"text {i}" for i in range(10)]


class Toy:
    """Encodes a text as its length and its last character; counts, and can break off."""

    def __init__(self, name: str = "toy", *, breaks_after: int | None = None) -> None:
        self.name = name
        self.seen: list[str] = []
        self.breaks_after = breaks_after

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.breaks_after is not None and len(self.seen) >= self.breaks_after:
            raise KeyboardInterrupt
        self.seen += texts
        return np.array([[len(text), ord(text[-1]) + 0.123] for text in texts], dtype=np.float32)


@pytest.fixture(autouse=True)
def _chunks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "CHUNK", 4)


def expected(texts: Sequence[str]) -> np.ndarray:
    return Toy().encode(texts).astype(np.float16)


def test_nothing_is_encoded_twice(tmp_path: Path) -> None:
    found = encode_cached(Toy(), TEXTS, tmp_path, what="texts")
    assert found.dtype == np.float16
    assert np.array_equal(found, expected(TEXTS))
    again = Toy()
    assert np.array_equal(encode_cached(again, TEXTS, tmp_path, what="texts"), expected(TEXTS))
    assert again.seen == []


def test_half_a_chunk_on_disk_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_cached(Toy(breaks_after=4), TEXTS, tmp_path, what="texts")
    (folder,) = tmp_path.iterdir()
    (folder / ".000000004.npy.partial").write_bytes(b"killed while writ")
    rest = Toy()
    assert np.array_equal(encode_cached(rest, TEXTS, tmp_path, what="texts"), expected(TEXTS))
    assert rest.seen == TEXTS[4:]
    assert sorted(path.name for path in folder.iterdir()) == ["000000000.npy", "000000004.npy", "000000008.npy"]


def test_other_texts_another_order_and_another_teacher_are_encoded_anew(tmp_path: Path) -> None:
    encode_cached(Toy(), TEXTS, tmp_path, what="texts")
    for name, texts in (("toy", TEXTS[::-1]), ("toy", TEXTS[:9]), ("other", TEXTS)):
        fresh = Toy(name)
        assert np.array_equal(encode_cached(fresh, texts, tmp_path, what="texts"), expected(texts))
        assert fresh.seen == list(texts)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not a sentence-transformers model \(no modules\.json\)"):
        Teacher(tmp_path)
