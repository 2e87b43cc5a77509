"""Parts of the papers' models, written once more without batches."""

import numpy as np
from torch import Tensor

from training.models.recurrent import LSTM

Vector = np.ndarray


def sigmoid(x: Vector) -> Vector:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(layer: LSTM, k: int, sentence: Vector, first_cell: Vector | None = None) -> tuple[Vector, Vector]:
    """The states [T, H] and the last cell [H] of one sentence, from Wieting et al. (2016), section 3."""
    names = "iofc" if layer.output_gate else "ifc"
    size = layer.hidden

    def rows(parameter: Tensor, of: str = names) -> dict[str, Vector]:
        value = parameter[k].detach().numpy()
        return {gate: value[n * size : (n + 1) * size] for n, gate in enumerate(of)}

    w, u, b = rows(layer.input_weight), rows(layer.hidden_weight), rows(layer.bias)
    p = dict.fromkeys("iof", np.zeros(size))
    if layer.peephole is not None:
        p = rows(layer.peephole, names[:-1])
    h = np.zeros(size)
    c = h if first_cell is None else first_cell
    states = []
    for x in sentence:
        i = sigmoid(w["i"] @ x + u["i"] @ h + p["i"] * c + b["i"])
        f = sigmoid(w["f"] @ x + u["f"] @ h + p["f"] * c + b["f"])
        c_before, c = c, f * c + i * np.tanh(w["c"] @ x + u["c"] @ h + b["c"])
        assert layer.peephole is None or not np.allclose(c_before, c)  # the output gate's peephole sees the new one
        o = sigmoid(w["o"] @ x + u["o"] @ h + p["o"] * c + b["o"]) if layer.output_gate else 1.0
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), c


Matrix = list[list[float]]
Cell = tuple[int, int]


def walk(similarity: Matrix) -> list[Cell]:
    """All cells, the most similar first; of equals the lower row, then the lower column."""
    cells = [(i, j) for i, row in enumerate(similarity) for j in range(len(row))]
    return sorted(cells, key=lambda cell: (-similarity[cell[0]][cell[1]], cell))


def matched(similarity: Matrix) -> set[Cell]:
    """Algorithm 2: walk the cells, take those whose row and column are free."""
    taken: set[Cell] = set()
    for i, j in walk(similarity):
        if all(i != row and j != column for row, column in taken):
            taken.add((i, j))
    return taken
