"""Ray: a class for `Dataset.map_batches`, and the workers of `semblance batch --engine ray`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from semblance.batch.tasks import DEFAULT_COLUMNS
from semblance.columns import Column, Scorer
from semblance.errors import RequestFailed, SemblanceError, request_class
from semblance.extras import needs

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no report to its maker
with needs("Ray", extra="ray"):
    import ray

TRIES = 3  # of a request whose worker dies, after the first
_STORE_BYTES = 128 * 1_048_576  # shared memory of a Ray that is started here


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


class _Worker:
    """One process with its models."""

    def answer(self, scorer: Scorer, columns: Sequence[Sequence[Any]]) -> Any:
        """The columns, or the parts of an error: an exception would come back as one of Ray."""
        try:
            return scorer(*columns)
        except RequestFailed as error:
            return error.status, error.code, error.message, error.field
        except SemblanceError as error:
            return type(error)(str(error))

    def process(self) -> int:
        """Its number, for tests that kill it."""
        return os.getpid()


class RayWorkers:
    """Actors that answer a batch's requests. One that dies is started anew, and its requests are asked again."""

    def __init__(self, workers: int) -> None:
        """Start them, in the cluster of RAY_ADDRESS or else on this machine."""
        self._began = not ray.is_initialized()
        if self._began and os.environ.get("RAY_ADDRESS"):
            ray.init(log_to_driver=False)
        elif self._began:
            ray.init(num_cpus=workers, object_store_memory=_STORE_BYTES, include_dashboard=False, log_to_driver=False)
        remote = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=TRIES)(_Worker)
        self.actors = [remote.remote() for _ in range(workers)]
        self._waiting = [0] * workers

    async def run(self, scorer: Scorer, columns: Sequence[Sequence[Any]]) -> dict[str, Column]:
        """Ask the worker with the fewest requests.

        Raises:
            RequestFailed: a text is refused, or a graph failed.
            SemblanceError: the worker cannot open the model, or died more than `TRIES` times at this request.
        """
        place = int(np.argmin(self._waiting))
        self._waiting[place] += 1
        try:
            found = await self.actors[place].answer.remote(scorer, columns)
        except ray.exceptions.RayError as error:
            raise SemblanceError(f"Ray: {str(error).strip().splitlines()[0]}") from error
        finally:
            self._waiting[place] -= 1
        if isinstance(found, SemblanceError):
            raise found
        if isinstance(found, tuple):
            status, code, message, field = found
            raise request_class(status)(status, code, message, field=field)
        answer: dict[str, Column] = found
        return answer

    def close(self) -> None:
        """End the workers, and the Ray that was started for them."""
        for actor in self.actors:
            ray.kill(actor)
        if self._began:
            ray.shutdown()
