"""MGIM against its equations, written out for one pair and one word at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.harness import toys
from tests.harness.by_hand import lstm_by_hand
from training.models.layers import WordEmbedding
from training.models.mgim import FORGET_BIAS, MGIM, MGIMConfig, overlaps_of, shared_counts
from training.models.recurrent import LSTM

PRINTED = MGIMConfig(hidden=5)
DEPARTURES = replace(PRINTED, comparison=True, first_word=True, copied_start=True)
WITHOUT_ATTENTION = replace(PRINTED, attention=False)
VARIANTS = (
    PRINTED,
    DEPARTURES,
    WITHOUT_ATTENTION,
    replace(WITHOUT_ATTENTION, conditional=False),
    replace(WITHOUT_ATTENTION, comparison=True, first_word=True),
    replace(PRINTED, conditional=False),
    replace(PRINTED, comparison=True),
    replace(PRINTED, first_word=True),
    replace(PRINTED, projected=True),
)


def label(config: MGIMConfig) -> str:
    return toys.changed(config, PRINTED)


Vector = np.ndarray
PAIRS = toys.id_pairs()


def network(config: MGIMConfig) -> MGIM:
    net = toys.network(config)
    assert isinstance(net, MGIM)
    return net


# The equations of sections 3.2 to 4.2, in NumPy.


def read_by_hand(layer: LSTM, k: int, words: Vector, first_cell: Vector) -> tuple[Vector, Vector]:
    """Outputs [T, H] in the order of the sentence and the last cell [H] of direction k (eqs. 1 to 6)."""
    turn = 1 if k == 0 else -1
    outputs, cell = lstm_by_hand(layer, k, words[::turn], first_cell)
    return outputs[::turn], cell


def by_hand(net: MGIM, a: toys.Ids, b: toys.Ids) -> tuple[Vector, Vector]:
    """Log-probabilities [K] and the attention's weights [S, T] of one pair."""
    config = net.config

    def matrix(layer: nn.Module | None) -> Vector:
        assert isinstance(layer, nn.Linear)
        assert layer.bias is None
        return layer.weight.detach().double().numpy()

    table = net.embedding.weight.detach().double().numpy()
    words_a, words_b = table[list(a)], table[list(b)]
    if config.projected:
        words_a, words_b = (words @ matrix(net.project).T for words in (words_a, words_b))
    nothing = np.zeros(config.hidden)
    of_a = [read_by_hand(net.first, k, words_a, nothing) for k in (0, 1)]
    cells = [cell if config.conditional else nothing for _, cell in of_a]
    of_b = [read_by_hand(net.second, k, words_b, cells[k])[0] for k in (0, 1)]
    y, h = of_a[0][0] + of_a[1][0], of_b[0] + of_b[1]
    y_last, h_last = y[-1], h[-1]
    if config.first_word:
        y_last, h_last = of_a[0][0][-1] + of_a[1][0][0], of_b[0][-1] + of_b[1][0]
    alphas = np.zeros((len(y), len(h)))
    r = y_last
    if net.attention is not None:
        w_y, w_h, w_r = (matrix(layer) for layer in (net.attention.on_a, net.attention.on_b, net.attention.carry))
        (w,) = matrix(net.attention.score)
        r = nothing
        for t, h_t in enumerate(h):
            scores = np.array([w @ np.tanh(w_y @ y_i + w_h @ h_t) for y_i in y])
            alphas[:, t] = np.exp(scores) / np.exp(scores).sum()
            r = y.T @ alphas[:, t] + np.tanh(w_r @ r)
    inside = matrix(net.of_b) @ h_last + matrix(net.of_a) @ r
    if config.comparison:
        inside += matrix(net.difference) @ abs(h_last - r) + matrix(net.product) @ (h_last * r)
    logits = matrix(net.output) @ np.tanh(inside)
    return logits - np.log(np.exp(logits).sum()), alphas


@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_it_is_its_equations_and_its_matrix_the_attention(config: MGIMConfig) -> None:
    net = network(config)
    expected = [by_hand(net, a, b) for a, b in PAIRS]
    rows = np.array([row for row, _ in expected])
    assert rows.std(axis=0).min() > 0.01  # the pairs tell it apart from a constant
    with torch.no_grad():
        assert net(*toys.pair_tensors(PAIRS)).numpy() == pytest.approx(rows, abs=2e-6)
        if not config.attention:
            return
        found = net.matrices(*toys.pair_tensors(PAIRS, padding_a=2, padding_b=3))
    assert found.dtype == torch.float32
    assert found.shape[:2] == (len(PAIRS), len(MGIM.MATRICES))
    for (_, alphas), matrix in zip(expected, found[:, 0].numpy(), strict=True):
        shown = np.zeros_like(matrix)
        shown[: alphas.shape[0], : alphas.shape[1]] = alphas
        assert matrix == pytest.approx(shown, abs=2e-6)
        assert not matrix[shown == 0].any()
        assert matrix[:, : alphas.shape[1]].sum(axis=0) == pytest.approx(1.0, abs=1e-6)


def test_the_second_bilstm_starts_as_a_copy_and_is_not_tied() -> None:
    torch.manual_seed(0)
    embedding = WordEmbedding(toys.table().rows)
    own, copied = (MGIM(replace(PRINTED, copied_start=copy), embedding, 2) for copy in (False, True))
    for one, other in zip(copied.first.parameters(), copied.second.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one is not other
    assert not torch.equal(own.first.input_weight, own.second.input_weight)
    assert own.second.bias.max() == FORGET_BIAS


def test_shared_words_and_numbers_are_counted_on_real_tokens_only() -> None:
    a, b = torch.tensor([[3, 4, 9, 0]]), torch.tensor([[4, 8, 0, 0, 0]])
    numbers = torch.zeros(10)
    numbers[9] = 1.0
    found = shared_counts(a, torch.tensor([3]), b, torch.tensor([2]), numbers[a], numbers[b])
    # 1 of 3 tokens of a stands in b, 1 of 2 of b in a; a's number is missing in b; only a has one; lengths 3 and 2
    assert found[0].tolist() == pytest.approx([1 / 3, 1.0, 1 / 2, 0.0, 0.0, 1 / 3])
    both = torch.tensor([[3, 9]])
    same = shared_counts(both, torch.tensor([2]), both, torch.tensor([2]), numbers[both], numbers[both])
    assert same[0].tolist() == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]


def test_overlaps_are_shares_of_n_grams_lengths_and_a_cosine() -> None:
    a, b = torch.tensor([[3, 4, 5, 3, 4, 0]]), torch.tensor([[7, 3, 4, 5, 0, 0, 0]])
    words = torch.eye(8)
    found = overlaps_of(a, torch.tensor([5]), b, torch.tensor([4]), words[a], words[b])[0].tolist()
    # Pairs of words: 3 4, 4 5 and 3 4 again of a's four stand in b, two of b's three in a; triples: 3 4 5 of three, of
    # two; nothing of four words. The sums of the words are (2, 2, 1) of 3, 4, 5 and (1, 1, 1, 1) of 3, 4, 5, 7.
    expected = [3 / 4, 2 / 3, 1 / 3, 1 / 2, 0.0, 0.0, 5 / 32, 4 / 32, 5 / (3 * 2)]
    assert found == pytest.approx(expected)
    one = torch.tensor([[3, 0, 0]])  # no n-gram at all
    alone = overlaps_of(one, torch.tensor([1]), one, torch.tensor([1]), words[one], words[one])[0].tolist()
    assert alone == pytest.approx([0.0] * 6 + [1 / 32, 1 / 32, 1.0])


def test_counts_move_the_answer_and_are_no_weights() -> None:
    net = network(replace(PRINTED, shared_words=True))
    arguments = toys.pair_tensors(PAIRS)
    with torch.no_grad():
        answers = []
        for marked in (False, True):
            net.mark_numbers([marked] * len(toys.table().rows))
            answers.append(net(*arguments))
        assert not torch.allclose(*answers, atol=1e-3)
    assert "numbers_V" not in net.state_dict()
    assert "numbers_V" not in dict(network(PRINTED).named_buffers())
