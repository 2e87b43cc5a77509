"""Parts of the architectures against their equations, written out with plain numpy."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn

from tests.harness.by_hand import Cell, Matrix, Vector, lstm_by_hand, matched
from training.data.words.storage import Int8Embedding
from training.models.focus import greedy_matching
from training.models.heads import PairHead, SentenceHead
from training.models.layers import WordNoise
from training.models.recurrent import LSTM, RNN
from training.models.svm import SupportVectorHead, fit_svm, machine, pair_features
from training.publish.export import export_head
from training.publish.parity import TOLERANCE, check_head
from training.publish.runtime import open_graph

TABLES = arrays(np.float32, (5, 4), elements=st.floats(-1e4, 1e4, width=16))
FIVE = torch.arange(5).reshape(1, 5)


@given(TABLES)
def test_int8_rows_are_off_by_half_a_step_at_most(rows: np.ndarray) -> None:
    found = Int8Embedding(torch.from_numpy(rows))(FIVE)[0].numpy()
    step = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert found.dtype == np.float32
    assert (np.abs(found - rows) <= step * 0.5001 + 1e-12).all()


def test_word_dropout_takes_whole_words_and_dropout_single_values() -> None:
    torch.manual_seed(0)
    ones = torch.ones(50, 20, 10)
    words = WordNoise(0.0, 0.2)(ones)
    assert set(words.sum(2).flatten().round(decimals=3).tolist()) == {0.0, 12.5}  # all of a word or none, scaled up
    assert (words == 0).float().mean().item() == pytest.approx(0.2, abs=0.04)
    values = WordNoise(0.4, 0.0)(ones)
    assert (values == 0).float().mean().item() == pytest.approx(0.4, abs=0.02)
    assert values.max().item() == pytest.approx(1 / 0.6)
    assert ((values.sum(2) > 0).float().mean()) > 0.99
    assert WordNoise(0.0, 0.0)(ones) is ones
    assert WordNoise(0.4, 0.2).eval()(ones) is ones


def pair_head_by_hand(head: PairHead, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tai et al. (2015), eq. 15, one pair at a time."""
    w = {name: value.detach().numpy().astype(np.float64) for name, value in head.named_parameters()}
    rows = []
    for x, y in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        h_product, h_difference = x * y, np.abs(x - y)
        inside = w["product.weight"] @ h_product + w["difference.weight"] @ h_difference + w["product.bias"]
        if "direction.weight" in w:
            inside = inside + w["direction.weight"] @ (x - y)
        h_s = 1 / (1 + np.exp(-inside))
        logits = w["output.weight"] @ h_s + w["output.bias"]
        rows.append(logits - np.log(np.exp(logits).sum()))
    return np.array(rows)


def embeddings(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(seed))
    return a, b


@pytest.mark.parametrize("directed", [False, True])
def test_the_head_is_equation_15(directed: bool) -> None:
    torch.manual_seed(1)
    head = PairHead(4, 5, hidden=6, directed=directed)
    a, b = embeddings()
    found = head(a, b).detach().numpy()
    assert found == pytest.approx(pair_head_by_hand(head, a.numpy(), b.numpy()), abs=1e-6)
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(7), abs=1e-6)


def test_the_head_of_one_sentence_is_sigmoid_then_softmax() -> None:
    torch.manual_seed(3)
    head = SentenceHead(4, 2, hidden=3)
    sentences, _ = embeddings()
    w = {name: value.detach().numpy().astype(np.float64) for name, value in head.named_parameters()}
    inside = sentences.numpy().astype(np.float64) @ w["hidden.weight"].T + w["hidden.bias"]
    logits = (1 / (1 + np.exp(-inside))) @ w["output.weight"].T + w["output.bias"]
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert head(sentences).detach().numpy() == pytest.approx(expected, abs=1e-6)


LENGTHS = torch.tensor([3, 6, 1, 6, 2])
D, H = 4, 3


def inputs(seed: int = 0) -> Tensor:
    """Random vectors, on the padding too: nothing may read them there."""
    return torch.randn(len(LENGTHS), 8, D, generator=torch.Generator().manual_seed(seed))


def disturbed(layer: nn.Module) -> nn.Module:
    """Biases away from zero, so that each of them is seen."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return layer


@pytest.mark.parametrize("output_gate", [True, False])
@pytest.mark.parametrize("peepholes", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_an_lstm_reads_on_from_given_cells(output_gate: bool, peepholes: bool, bidirectional: bool) -> None:
    layer = LSTM(D, H, peepholes=peepholes, output_gate=output_gate, bidirectional=bidirectional)
    disturbed(layer)
    x, first = inputs(), torch.randn(1 + bidirectional, len(LENGTHS), H)
    with torch.no_grad():
        states, last, cells = layer.conditioned(x, LENGTHS, first)
    assert cells.shape == first.shape
    for row, n in enumerate(LENGTHS.tolist()):
        for k in range(layer.directions):
            sentence = x[row, :n].numpy()[:: 1 if k == 0 else -1]
            expected, cell = lstm_by_hand(layer, k, sentence, first[k, row].numpy())
            assert states[row, :n, k].numpy()[:: 1 if k == 0 else -1] == pytest.approx(expected, abs=1e-6)
            assert last[row, k].numpy() == pytest.approx(expected[-1], abs=1e-6)
            assert cells[k, row].numpy() == pytest.approx(cell, abs=1e-6)
        assert states[row, n:].abs().sum() == 0


@pytest.mark.parametrize(("activation", "function"), [("tanh", np.tanh), ("identity", lambda x: x)])
def test_an_rnn_is_its_equation(activation: str, function: Callable[[Vector], Vector]) -> None:
    layer = disturbed(RNN(D, H, activation))  # type: ignore[arg-type]
    x = inputs()
    with torch.no_grad():
        states, last = layer(x, LENGTHS)
    w, u, b = (p[0].detach().numpy() for p in (layer.input_weight, layer.hidden_weight, layer.bias))
    for row, n in enumerate(LENGTHS.tolist()):
        h = np.zeros(H)
        for t in range(n):
            h = function(w @ x[row, t].numpy() + u @ h + b)
            assert states[row, t, 0].numpy() == pytest.approx(h, abs=1e-5)
        assert last[row, 0].numpy() == pytest.approx(h, abs=1e-5)
        assert states[row, n:].abs().sum() == 0


def test_a_forget_bias_is_the_forget_gates_alone() -> None:
    assert LSTM(2, 1, forget_bias=2.5).bias.tolist() == [[0, 0, 2.5, 0]]
    assert LSTM(2, 1, forget_bias=2.5, output_gate=False, bidirectional=True).bias.tolist() == [[0, 2.5, 0]] * 2


def batch(matrices: list[Matrix], rows: int, columns: int, filling: float) -> tuple[Tensor, Tensor]:
    """Ragged matrices in one tensor [B, rows, columns], and where their cells are real."""
    similarity = torch.full((len(matrices), rows, columns), filling)
    real = torch.zeros_like(similarity, dtype=torch.bool)
    for pair, matrix in enumerate(matrices):
        for i, row in enumerate(matrix):
            similarity[pair, i, : len(row)] = torch.tensor(row)
            real[pair, i, : len(row)] = True
    return similarity, real


def cells(mask: Tensor) -> list[set[Cell]]:
    return [{(int(i), int(j)) for i, j in pair.nonzero()} for pair in mask]


@st.composite
def ragged(draw: st.DrawFn) -> list[Matrix]:
    """Up to five matrices of up to 7 x 7; few different values, so that most of them tie, or many."""
    value = draw(st.sampled_from([st.integers(-1, 1), st.integers(-9, 9), st.integers(-(10**6), 10**6)]))
    sizes = draw(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=5))
    return [[[float(draw(value)) for _ in range(columns)] for _ in range(rows)] for rows, columns in sizes]


@given(ragged(), st.integers(0, 3), st.sampled_from([0.0, 1e9, -1e9, float("inf"), float("nan")]))
def test_the_matching_is_that_of_the_walk_whatever_the_padding_holds(
    matrices: list[Matrix], padding: int, filling: float
) -> None:
    rows, columns = max(map(len, matrices)) + padding, max(len(m[0]) for m in matrices) + padding
    taken = greedy_matching(*batch(matrices, rows, columns, filling))
    assert cells(taken) == [matched(matrix) for matrix in matrices]
    assert set(taken.unique().tolist()) <= {0.0, 1.0}
    assert taken.sum((1, 2)).tolist() == [min(len(matrix), len(matrix[0])) for matrix in matrices]


WIDTH = 4


def by_distance(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose label is how far apart they are, with some noise."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.9, 0.9, (2, n, WIDTH)).astype(np.float32)
    distance = np.abs(a - b).sum(1) + rng.normal(0, 0.1, n)
    return a, b, np.digitize(distance, np.quantile(distance, [1 / 3, 2 / 3]))


def test_the_module_decides_as_scikit_learn_does() -> None:
    a, b, label = by_distance()
    features = pair_features(torch.from_numpy(a), torch.from_numpy(b)).double().numpy()
    fitted = machine(4.0, 0.3).fit(features, label)
    head = SupportVectorHead.fitted(fitted, temperature=0.5)
    rng = np.random.default_rng(2)
    new_a, new_b = (torch.from_numpy(rng.uniform(-1, 1, (200, WIDTH)).astype(np.float32)) for _ in "ab")
    new = pair_features(new_a, new_b).double().numpy()
    np.testing.assert_allclose(head.decisions(new_a, new_b), fitted.decision_function(new), atol=2e-6)
    probabilities = head(new_a, new_b).exp().numpy()
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(probabilities.argmax(1), fitted.predict(new))


def test_it_is_exported_saved_and_loaded(tmp_path: Path) -> None:
    a, b, label = by_distance(150)
    head, sides = fit_svm(a, b, label), (torch.from_numpy(a), torch.from_numpy(b))
    expected = head(*sides).numpy()
    assert (expected.argmax(1) == label).mean() > 0.7
    path = tmp_path / "entailment.onnx"
    export_head(head, WIDTH, path, "toy")
    assert check_head(path, head, WIDTH) <= TOLERANCE
    found = open_graph(path, "head")({"embedding_a": a, "embedding_b": b})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    torch.save(head.state_dict(), tmp_path / "entailment.pt")
    again = SupportVectorHead.from_state(torch.load(tmp_path / "entailment.pt", weights_only=True))
    assert torch.equal(again(*sides), head(*sides))
