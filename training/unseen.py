"""Rows that training never met: moved from the start space to the trained space by a ridge map.

Training moves the rows of words it sees and leaves the others where distillation put them; a linear map fitted on
the rows that moved carries the others along.
"""

import numpy as np
import numpy.typing as npt

from training.tables import Matrix


def map_unseen(
    start: Matrix, trained: Matrix, seen: npt.NDArray[np.int64], *, minimum: int = 5, ridge: float = 10.0
) -> Matrix:
    """Replace the rows never seen in training.

    Args:
        start: float32 [V, d], rows before training.
        trained: float32 [V, d], rows after.
        seen: int64 [V], how often each id occurred in an epoch.
        minimum: the map is fitted on rows seen at least so often.
        ridge: weight of the squared norm of (map - identity): with few rows, rows stay where they are.

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
