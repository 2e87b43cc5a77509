"""LSTM encoders: what they make of the states; the cell itself is in test_recurrent.py."""

import pytest
import torch
from torch import Tensor

from tests.harness import toys
from training.architectures import LSTMConfig, LSTMEncoder
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows
IDS, LENGTHS = torch.tensor([[3, 5, 9, 2], [4, 0, 0, 0], [7, 7, 2, 0]]), torch.tensor([4, 1, 3])


def encoder(config: LSTMConfig) -> LSTMEncoder:
    torch.manual_seed(0)
    return LSTMEncoder(config, WordEmbedding(ROWS))


def states(of: LSTMEncoder, row: int) -> tuple[Tensor, Tensor]:
    """States [n, K, H] and last states [K, H] of one sentence."""
    n = int(LENGTHS[row])
    every, last = of.lstm(of.embedding(IDS[row : row + 1, :n]), LENGTHS[row : row + 1])
    return every[0], last[0]


@pytest.mark.parametrize("row", range(3))
def test_last_mean_and_their_bidirectional_forms(row: int) -> None:
    with torch.no_grad():
        last = encoder(LSTMConfig())
        assert torch.allclose(last(IDS, LENGTHS)[row], states(last, row)[0][-1, 0], atol=1e-6)
        mean = encoder(LSTMConfig(pooling="mean", output_gate=False))
        assert torch.allclose(mean(IDS, LENGTHS)[row], states(mean, row)[0].mean(0)[0], atol=1e-6)
        both = encoder(LSTMConfig(pooling="mean", bidirectional=True))
        assert torch.allclose(both(IDS, LENGTHS)[row], states(both, row)[0].mean(0).sum(0), atol=1e-6)
        layer = encoder(LSTMConfig(pooling="mean", bidirectional=True, combine="tanh"))
        layer.combination.bias += 0.2  # which the padding must not add
        expected = torch.tanh(layer.combination(states(layer, row)[0].flatten(1))).mean(0)
        assert torch.allclose(layer(IDS, LENGTHS)[row], expected, atol=1e-6)
        ends = encoder(LSTMConfig(bidirectional=True))
        assert torch.allclose(ends(IDS, LENGTHS)[row], states(ends, row)[1].sum(0), atol=1e-6)


def test_a_tag_is_read_as_a_word() -> None:
    tagged = encoder(LSTMConfig(pooling="mean", tags="eos"))
    sentence = torch.cat([tagged.embedding(IDS[2, :3]), tagged.tags.eos[None]])
    expected = tagged.lstm(sentence[None], torch.tensor([4]))[0][0].mean(0)[0]
    assert torch.allclose(tagged(IDS, LENGTHS)[2], expected, atol=1e-6)


@pytest.mark.parametrize("both", [False, True])
def test_a_second_layer_reads_the_states_of_the_first(both: bool) -> None:
    two = encoder(LSTMConfig(hidden=6, layers=2, bidirectional=both))
    (above,) = two.above
    with torch.no_grad():
        below = states(two, 0)[0].sum(1)  # the directions added
        expected = above(below[None], LENGTHS[:1])[1][0].sum(0)
        assert torch.allclose(two(IDS, LENGTHS)[0], expected, atol=1e-6)
        assert not torch.allclose(expected, states(two, 0)[1].sum(0), atol=1e-2)
    two(IDS, LENGTHS).sum().backward()
    assert all(p.grad is not None for p in two.above.parameters())


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_the_embedding_is_scaled_and_nothing_else(pooling: str) -> None:
    plain, scaled = (encoder(LSTMConfig(pooling=pooling, scale=scale)) for scale in (1.0, 4.0))
    assert torch.equal(scaled(IDS, LENGTHS), 4.0 * plain(IDS, LENGTHS))
