"""Lists of ids to rectangular arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.padding import PADDING_ID, pad


def test_shorter_sentences_are_filled_on_the_right() -> None:
    ids, lengths = pad([(5, 6, 7), (8,), (9, 1)])
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0], [9, 1, 0]]
    assert lengths.tolist() == [3, 1, 2]
    assert ids.dtype == lengths.dtype == np.int64


def test_one_sentence_needs_no_padding() -> None:
    ids, lengths = pad([[4, 2]])
    assert (ids.tolist(), lengths.tolist()) == ([[4, 2]], [2])
    assert ids.dtype == lengths.dtype == np.int64


@given(st.lists(st.lists(st.integers(1, 2**40), min_size=1, max_size=9), min_size=1, max_size=20))
def test_every_sentence_can_be_read_back(sentences: list[list[int]]) -> None:
    ids, lengths = pad(sentences)
    assert [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)] == sentences
    assert ids.shape == (len(sentences), max(map(len, sentences)))
    assert all((row[n:] == PADDING_ID).all() for row, n in zip(ids, lengths, strict=True))


def test_nothing_to_pad_is_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="pad needs at least one sentence"):
        pad([])
    with pytest.raises(ValueError, match="sentence 1 has no tokens"):
        pad([[1], [], [2]])
    with pytest.raises(ValueError, match="sentence 0 has no tokens"):
        pad([[]])
