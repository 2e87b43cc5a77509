"""Scrambling: who is shuffled, what stays, and that a resumed run shuffles alike."""

import pytest
import torch

from training.objectives.parts.scrambling import Scrambler

PAIRS, TOKENS = 400, 9


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct rising ids, so that any other order shows; padding 0."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, TOKENS + 1, (PAIRS,), generator=generator)
    ids = torch.arange(1, TOKENS + 1).repeat(PAIRS, 1)
    return torch.where(torch.arange(TOKENS) < lengths[:, None], ids, 0), lengths


def test_words_stay_in_their_sentence_and_padding_where_it_was() -> None:
    left, right = batch(0), batch(1)
    for before, (ids, lengths) in zip((left, right), Scrambler(1.0, 0)(left, right), strict=True):
        assert torch.equal(lengths, before[1])
        assert torch.equal(ids == 0, before[0] == 0)
        assert torch.equal(ids.sort(1).values, before[0].sort(1).values)


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


def test_swaps_move_few_words_and_lose_none() -> None:
    left, right = batch(0), batch(1)
    untouched = left[0].clone()
    for before, (ids, lengths) in zip((left, right), Scrambler(1.0, 0, "swaps")(left, right), strict=True):
        assert torch.equal(lengths, before[1])
        assert torch.equal(ids == 0, before[0] == 0)
        assert torch.equal(ids.sort(1).values, before[0].sort(1).values)
        # One swap moves two words at most; about a third of the sentences have none.
        assert 0.5 < float((before[0] != ids).sum(1).float().mean()) < 2
    assert torch.equal(left[0], untouched)
