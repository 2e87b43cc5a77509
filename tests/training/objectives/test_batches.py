"""What an epoch reads: padded batches, orders that a resumed run can find again, near neighbours, scrambling."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.sequences import pad
from tests.harness import toys
from training.objectives import nearest
from training.objectives.batches import Sentences, alike, by_size, shuffled
from training.objectives.nearest import near_neighbours
from training.objectives.scrambling import Scrambler, Scrambling

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
    # And resumed inside it goes on with the same batches.
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


def on_a_circle(count: int) -> np.ndarray:
    angle = np.random.default_rng(0).permutation(count) * 2 * np.pi / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.arange(1, count + 1)[:, None]  # length must not count


def true_rank(vectors: np.ndarray, found: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    chosen = np.take_along_axis(cosines, found, axis=1)
    return (cosines[:, None, :] > chosen[:, :, None] + 1e-6).sum(axis=2)


def test_in_one_leaf_they_are_the_nearest_of_all() -> None:
    vectors = on_a_circle(101)
    found = near_neighbours(vectors, each=4, trees=1, seed=0)
    assert found.shape == (101, 4)
    assert true_rank(vectors, found).max() <= 3


def test_many_leaves_find_nearly_the_nearest_and_no_vector_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "LEAF", 40)
    vectors = np.random.default_rng(1).standard_normal((1200, 4)).astype(np.float16)
    found = near_neighbours(vectors, each=3, trees=2, seed=5)
    assert found.shape == (1200, 6)
    assert (found != np.arange(1200)[:, None]).all()
    assert all(len(set(row[:3])) == len(set(row[3:])) == 3 for row in found.tolist())
    rank = true_rank(vectors.astype(np.float64), found)
    assert np.median(rank) < 12  # of 1,199; chance: 600
    assert (found[:, :3] != found[:, 3:]).any()  # the trees differ
    again = near_neighbours(vectors, each=3, trees=2, seed=5)
    np.testing.assert_array_equal(found, again)
    assert (near_neighbours(vectors, each=3, trees=2, seed=6) != found).any()


PAIRS, LONGEST = 400, 9


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct rising ids, so that any other order shows; padding 0."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LONGEST + 1, (PAIRS,), generator=generator)
    ids = torch.arange(1, LONGEST + 1).repeat(PAIRS, 1)
    return torch.where(torch.arange(LONGEST) < lengths[:, None], ids, 0), lengths


@pytest.mark.parametrize("how", ["pairs", "sentences", "swaps"])
def test_words_stay_in_their_sentence_and_padding_where_it_was(how: Scrambling) -> None:
    left, right = batch(0), batch(1)
    untouched = left[0].clone()
    for before, (ids, lengths) in zip((left, right), Scrambler(1.0, 0, how)(left, right), strict=True):
        assert torch.equal(lengths, before[1])
        assert torch.equal(ids == 0, before[0] == 0)
        assert torch.equal(ids.sort(1).values, before[0].sort(1).values)
        if how == "swaps":  # one moves two words at most; about a third of the sentences have none
            assert 0.5 < float((before[0] != ids).sum(1).float().mean()) < 2
    assert torch.equal(left[0], untouched)


def moved(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return (before != after).any(1)


@pytest.mark.parametrize("probability", [0.25, 0.75])
def test_both_sentences_of_a_share_of_the_pairs_are_shuffled(probability: float) -> None:
    left, right = batch(0), batch(1)
    (a, _), (b, _) = Scrambler(probability, 3)(left, right)
    long = (left[1] > 5) & (right[1] > 5)  # shorter ones may well come out as they went in
    on_left, on_right = moved(left[0], a)[long], moved(right[0], b)[long]
    assert float(on_left.float().mean()) == pytest.approx(probability, abs=0.1)
    assert float((on_left == on_right).float().mean()) > 0.98
    assert not torch.equal(a[long], b[long])  # each in an order of its own


def test_sentences_are_shuffled_each_for_itself() -> None:
    left, right = batch(0), batch(1)
    (a, _), (b, _) = Scrambler(0.5, 3, "sentences")(left, right)
    long = (left[1] > 5) & (right[1] > 5)
    on_left, on_right = moved(left[0], a)[long], moved(right[0], b)[long]
    assert float(on_left.float().mean()) == pytest.approx(0.5, abs=0.1)
    assert float(on_right.float().mean()) == pytest.approx(0.5, abs=0.1)
    assert float((on_left == on_right).float().mean()) == pytest.approx(0.5, abs=0.1)
