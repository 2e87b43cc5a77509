"""Exact shares of tokens in a cosine between two means of token embeddings; numpy only."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contract.measures import Floats


class Contributions(NamedTuple):
    """Shares of the cosine of two sentences; the shares of a, of b and of the pairs of tokens each sum to it."""

    a: Floats  # [n], of each token of a
    b: Floats  # [m], of each token of b
    pairs: Floats  # [n, m], of each token of a with each token of b


def contributions(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating]) -> Contributions:
    """Decompose a cosine of means, a = 1/n sum x_i and b = 1/m sum y_j:

    cos(a, b) = sum_i (x_i . b) / (n |a| |b|) = sum_j (a . y_j) / (m |a| |b|) = sum_ij (x_i . y_j) / (n m |a| |b|).

    Args:
        x: embeddings [n, d] of the tokens of the first sentence.
        y: embeddings [m, d] of the tokens of the second.

    Returns:
        The terms of the three sums, in float64; zeros if a mean is all zeros.
    """
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    a, b = x64.mean(axis=0), y64.mean(axis=0)
    norm = float(np.sqrt((a @ a) * (b @ b))) or math.inf
    n, m = len(x64), len(y64)
    return Contributions(x64 @ b / (n * norm), y64 @ a / (m * norm), x64 @ y64.T / (n * m * norm))
