"""Lists of ids to rectangular arrays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sequences import pad
from core.tokenizer import PADDING_ID


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


@pytest.mark.parametrize("count", [2, 20])
def test_padding_may_go_further_than_the_longest(count: int) -> None:
    sentences = [[1, 2]] * (count - 1) + [[3]]
    for least, length in ((1, 2), (2, 2), (5, 5)):
        ids, lengths = pad(sentences, least)
        assert ids.shape == (count, length)
        assert [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)] == sentences
        assert all(not row[n:].any() for row, n in zip(ids, lengths, strict=True))
