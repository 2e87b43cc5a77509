"""The similarity focus: greedy one-to-one matching of the words of two sentences, many pairs at once.

H. He, J. Lin, "Pairwise Word Interaction Modeling with Deep Neural Networks for Semantic Similarity Measurement", NAACL
2016, Algorithm 2: walk the cells by descending similarity and take those whose row and column are both still free.

Cell by cell that takes hundreds of steps. Here all cells that are the maximum of their row and of their column are
taken at once and their rows and columns closed, until no cell is free: the same cells, in about two rounds. (The
maximum of all free cells is always among them, and no better cell of its row or column can precede a taken one.)
Of equal cells the one in the lower row, then in the lower column, is taken, as `argmax` returns the first maximum.

Shapes: B pairs, S tokens of the first sentence, T of the second.
"""

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

CLOSED = float("-inf")


def greedy_matching(similarity_BST: Tensor, real_BST: Tensor) -> Tensor:
    """Float [B, S, T]: 1 on the matched cells, min(lengths) of each pair, else 0.

    Args:
        similarity_BST: finite on the real cells.
        real_BST: bool, true on the cells that may be matched; others are ignored.
    """
    free = similarity_BST.detach().masked_fill(~real_BST, CLOSED)
    taken = torch.zeros_like(free)
    if torch.onnx.is_in_onnx_export():
        return while_loop(_any_free, _take, (free, taken))[1]
    while _any_free(free, taken):
        free, taken = _take(free, taken)
    return taken


def _any_free(free: Tensor, taken: Tensor) -> Tensor:
    return (free > CLOSED).any()


def _take(free: Tensor, taken: Tensor) -> tuple[Tensor, Tensor]:
    """One round: take the cells that are the maximum of row and column, and close their rows and columns."""
    _, rows, columns = free.shape
    best_of_row = free.argmax(2, keepdim=True) == torch.arange(columns, device=free.device)
    best_of_column = free.argmax(1, keepdim=True) == torch.arange(rows, device=free.device)[:, None]
    chosen = best_of_row & best_of_column & (free > CLOSED)
    shut = chosen.any(2, keepdim=True) | chosen.any(1, keepdim=True)
    return free.masked_fill(shut, CLOSED), taken + chosen.to(taken.dtype)
