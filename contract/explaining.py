"""Which tokens made a score: exact shares of a cosine between two means of token embeddings; pure numpy."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contract.scores import Floats


class Contributions(NamedTuple):
    """Shares of the cosine of two sentences; those of a, those of b and those of their pairs each sum to it."""

    a: Floats  # [n], of each token of a
    b: Floats  # [m], of each token of b
    pairs: Floats  # [n, m], of each token of a with each token of b


def contributions(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating]) -> Contributions:
    """Take a cosine apart where embeddings are means: a = 1/n sum x_i and b = 1/m sum y_j, so that

    cos(a, b) = sum_i (x_i . b) / (n |a| |b|) = sum_j (a . y_j) / (m |a| |b|) = sum_ij (x_i . y_j) / (n m |a| |b|).

    Args:
        x: embeddings [n, d] of the tokens of the first sentence, each alone.
        y: embeddings [m, d] of those of the second.

    Returns:
        The terms of the three sums, in float64; zeros where a mean is all zeros, as the cosine is then.
    """
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    a, b = x64.mean(axis=0), y64.mean(axis=0)
    norm = float(np.sqrt((a @ a) * (b @ b))) or math.inf
    n, m = len(x64), len(y64)
    return Contributions(x64 @ b / (n * norm), y64 @ a / (m * norm), x64 @ y64.T / (n * m * norm))
