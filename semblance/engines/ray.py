"""Ray: a class for `Dataset.map_batches`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from semblance.batch.tasks import DEFAULT_COLUMNS
from semblance.columns import Scorer

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no report to its maker


class ScoreBatches:
    """Adds a scorer's columns to each batch: `dataset.map_batches(ScoreBatches, fn_constructor_args=[scorer])`."""

    def __init__(self, scorer: Scorer, columns: Sequence[str] | None = None, prefix: str = "") -> None:
        """Read `columns`, by default those of the task; put `prefix` before the new names."""
        self._scorer, self._prefix = scorer, prefix
        self._columns = columns or DEFAULT_COLUMNS[scorer.task]

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of n rows -> the same, and the answers."""
        answer = self._scorer(*(batch[name] for name in self._columns))
        return {**batch, **{f"{self._prefix}{name}": column for name, column in answer.items()}}
