"""The similarity focus: greedy one-to-one matching of the words of two sentences, many pairs at once.

H. He, J. Lin, "Pairwise Word Interaction Modeling with Deep Neural Networks for Semantic Similarity Measurement", NAACL
2016, Algorithm 2: walk the cells by descending similarity and take those whose row and column are both still free.

Cell by cell that is a walk of hundreds of steps. Here every cell that is the best of its row and of its column is
taken at once, then its row and column are closed, until nothing is free: the same cells, in about two rounds. (The best
free cell of all is always among them; and of a cell that is best in its row and column no better neighbour can come
first.)
Equal cells go to the lower row, then to the lower column, as `argmax` takes the first of equals.

Shapes: B pairs, S tokens of the first sentence, T of the second.
"""

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

CLOSED = float("-inf")


def greedy_matching(similarity_BST: Tensor, real_BST: Tensor) -> Tensor:
    """Float [B, S, T]: 1 on the cells that the full walk takes, min(lengths) of each pair, else 0.

    Args:
        similarity_BST: what the walk sorts by; finite on the real cells.
        real_BST: bool, true on the cells the walk may take; anything else is never looked at.
    """
    free = similarity_BST.detach().masked_fill(~real_BST, CLOSED)
    taken = torch.zeros_like(free)
    if torch.onnx.is_in_onnx_export():
        return while_loop(_any_free, _take, (free, taken))[1]
    while _any_free(free, taken):
        free, taken = _take(free, taken)
    return taken


def first_of_walk(similarity_BST: Tensor, real_BST: Tensor, count_B: Tensor) -> Tensor:
    """Bool [B, S, T]: the cells among the first `count` of the walk, which is where Algorithm 2 of the paper stops."""
    walk = similarity_BST.detach().masked_fill(~real_BST, CLOSED).flatten(1)
    # The exporter knows no stable sort; its TopK takes the first of equals, as a stable one does.
    order = torch.sort(walk, dim=1, descending=True).indices if torch.onnx.is_in_onnx_export() else _stable(walk)
    steps = torch.arange(walk.shape[1], device=walk.device).expand_as(order)
    rank = torch.zeros_like(order).scatter(1, order, steps)
    return (rank < count_B[:, None]).view_as(real_BST) & real_BST


def _stable(walk: Tensor) -> Tensor:
    return torch.sort(walk, dim=1, descending=True, stable=True).indices


def _any_free(free: Tensor, taken: Tensor) -> Tensor:
    return (free > CLOSED).any()


def _take(free: Tensor, taken: Tensor) -> tuple[Tensor, Tensor]:
    """One round: the cells best of row and column, taken; their rows and columns, closed."""
    _, rows, columns = free.shape
    best_of_row = free.argmax(2, keepdim=True) == torch.arange(columns, device=free.device)
    best_of_column = free.argmax(1, keepdim=True) == torch.arange(rows, device=free.device)[:, None]
    chosen = best_of_row & best_of_column & (free > CLOSED)
    shut = chosen.any(2, keepdim=True) | chosen.any(1, keepdim=True)
    return free.masked_fill(shut, CLOSED), taken + chosen.to(taken.dtype)
