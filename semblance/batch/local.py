"""The models of a batch without a service, in this process."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from semblance.batch.rows import Row
from semblance.batch.tasks import Task
from semblance.columns import Folder
from semblance.types import Models


class LocalModels:
    """What a batch asks instead of a client: `models`, then `ask`. Only the task's own models are opened."""

    def __init__(self, models_dir: str | Path | None = None) -> None:
        """List the models; SEMBLANCE_MODELS_DIR, or the usual folder, by default.

        Raises:
            CannotStart: the models folder cannot be read.
            MissingExtra: the extra `service` is not installed.
        """
        self._folder = Folder(models_dir)

    async def models(self) -> Models:
        """The models of the folder, the defaults and the limits."""
        return self._folder.models

    async def ask(self, task: Task, items: Sequence[Any]) -> list[Row]:
        """The new cells for each item, as `Task.ask` gives them; each request has a thread.

        Raises:
            RequestFailed: an item is refused, or a graph failed.
            CannotStart: a model cannot be opened.
        """
        columns = await asyncio.to_thread(self._folder.scorer(task), *zip(*items, strict=True))
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed: opened models stay for the next batch of this process."""
