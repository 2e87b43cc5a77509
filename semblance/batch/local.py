"""The models of a batch without a service: a scorer in this process, or an engine that runs it elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Self

from semblance.batch.rows import Row
from semblance.batch.tasks import Task
from semblance.columns import Column, Folder, Scorer
from semblance.types import Models

Run = Callable[[Scorer, Sequence[Sequence[Any]]], Awaitable[dict[str, Column]]]  # columns in, columns out


async def in_a_thread(scorer: Scorer, columns: Sequence[Sequence[Any]]) -> dict[str, Column]:
    """The default `Run`: each request of a batch has a thread."""
    return await asyncio.to_thread(scorer, *columns)


class LocalModels:
    """What a batch asks instead of a client: `models`, then `ask`. Only the task's own models are opened."""

    def __init__(
        self, models_dir: str | Path | None = None, run: Run = in_a_thread, close: Callable[[], None] = lambda: None
    ) -> None:
        """List the models.

        Args:
            models_dir: SEMBLANCE_MODELS_DIR, or the usual folder, by default.
            run: an engine.
            close: called at the end.

        Raises:
            CannotStart: the models folder cannot be read.
            MissingExtra: the extra `service` is not installed.
        """
        self._folder = Folder(models_dir)
        self._run = run
        self._close = close

    async def models(self) -> Models:
        """The models of the folder, the defaults and the limits."""
        return self._folder.models

    async def ask(self, task: Task, items: Sequence[Any]) -> list[Row]:
        """The new cells for each item, as `Task.ask` gives them.

        Raises:
            RequestFailed: an item is refused, or a graph failed.
            CannotStart: a model cannot be opened.
        """
        columns = await self._run(self._folder.scorer(task), list(zip(*items, strict=True)))
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()
