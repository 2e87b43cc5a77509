"""The service's answers as frozen dataclasses, with its field names; see /docs of a service.

Unknown fields of a newer service are ignored. None stands for a field that was absent or null.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.answers import *  # noqa: F403  # users import all of them from here
from core.status import *  # noqa: F403


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """One embedding for each sentence, in input order."""

    model: str
    dim: int
    embeddings: npt.NDArray[np.float32]  # [sentences, dim]
    truncated: list[bool]
