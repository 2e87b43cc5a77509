"""Rows that never occurred in training, mapped to the trained space by ridge regression.

Training changes only the rows of words that occur; a linear map from start to trained rows, fitted on those, is applied
to the others.
"""

import numpy as np
import numpy.typing as npt

from training.data.words.tables import Matrix


def map_unseen(
    start: Matrix, trained: Matrix, seen: npt.NDArray[np.int64], *, minimum: int = 5, ridge: float = 10.0
) -> Matrix:
    """Replace the rows never seen in training.

    Args:
        start: float32 [V, d], rows before training.
        trained: float32 [V, d], rows after.
        seen: int64 [V], how often each id occurred in an epoch.
        minimum: the map is fitted on rows seen at least so often.
        ridge: weight of the squared norm of (map - identity): with few rows, the map stays near the identity.

    Returns:
        float32 [V, d]: `trained`, with the unseen rows (row 0, padding, aside) mapped.
    """
    fit = seen >= minimum
    x, moved = start[fit].astype(np.float64), (trained - start)[fit].astype(np.float64)
    shift = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ moved)
    result = trained.copy()
    unseen = seen == 0
    unseen[0] = False
    result[unseen] = start[unseen] + (start[unseen].astype(np.float64) @ shift).astype(np.float32)
    return result
