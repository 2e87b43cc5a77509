"""Flat token storage, padded batches, and orders that a resumed run can find again."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contract.tokenizer import pad
from tests.harness import toys
from training.objectives.parts.batches import Sentences, alike, by_size, shuffled

TEXTS = ["the man plays guitar", "dog", "a cat is running", "mow", "the big dog sleeps in the small park"]


def test_batches_are_what_the_service_would_feed() -> None:
    sentences = Sentences(TEXTS, toys.tokenizer(), 6)
    for chosen in ([0], [3, 1], [4, 0, 2, 1], [2, 2]):
        ids, lengths = sentences.batch(np.array(chosen))
        expected_ids, expected_lengths = pad([toys.tokenizer().encode(TEXTS[i], 6).ids for i in chosen])
        assert ids.tolist() == expected_ids.tolist()
        assert lengths.tolist() == expected_lengths.tolist()
        assert ids.dtype == lengths.dtype == torch.int64


def test_a_text_without_tokens_is_named() -> None:
    with pytest.raises(ValueError, match=r"text 1 has no tokens: ' \\u200b'"):
        Sentences(["dog", " \u200b", "cat"], toys.tokenizer(), 5)
    with pytest.raises(ValueError, match="there are no sentences to read"):
        Sentences([], toys.tokenizer(), 5)


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 5), st.booleans())
def test_an_epoch_holds_everything_once(n: int, size: int, epoch: int, drop_last: bool) -> None:
    batches = list(shuffled(n, size, 7, epoch, drop_last=drop_last))
    seen = np.concatenate(batches).tolist() if batches else []
    assert len(set(seen)) == len(seen) == (n - n % size if drop_last else n)
    assert all(len(batch) == size for batch in batches[:-1])


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(list(shuffled(40, 7, seed, epoch))).tolist()

    first = order(1, 3)
    np.random.default_rng().random(9)  # other randomness, as between two starts of a run
    assert order(1, 3) == first
    assert order(1, 4) != first
    assert order(2, 3) != first
    assert order(2, 3) != order(3, 2)  # a second seed is not the first one an epoch later


def test_an_epoch_resumed_inside_goes_on_with_the_same_batches() -> None:
    whole = [batch.tolist() for batch in shuffled(40, 7, 1, 3)]
    assert [batch.tolist() for batch in islice(shuffled(40, 7, 1, 3), 4, None)] == whole[4:]


def test_batches_of_like_length_hold_every_sentence_once_in_an_order_of_seed_and_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, 205)

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in alike(lengths, 10, 5, seed, epoch)]

    first = order(1, 3)
    assert sorted(index for batch in first for index in batch) == list(range(205))
    assert sorted(map(len, first)) == [5] + [10] * 20
    assert order(1, 3) == first
    assert all(order(*other) != first for other in ((1, 4), (2, 3)))
    spread = [np.ptp(lengths[batch]) for batch in first]
    assert np.mean(spread) < 0.5 * np.mean([np.ptp(lengths[batch]) for batch in shuffled(205, 10, 1, 3)])
    shortest = [lengths[batch].min() for batch in first]
    assert shortest != sorted(shortest)  # long and short ones in turn, not the short ones first


def test_pairs_of_like_size_are_neighbours_there_and_back() -> None:
    """First texts of 1 to 8 tokens are a step, those of 9 to 16 the next one; second texts fall, then rise."""
    assert by_size([9, 1, 8, 16, 8], [1, 1, 2, 3, 3]).tolist() == [4, 2, 1, 0, 3]
