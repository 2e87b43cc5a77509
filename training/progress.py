"""Progress of long work: a bar on a terminal, log lines elsewhere (a file, a pipe, a container's log)."""

import logging
import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import Self, TypeVar

from rich import get_console
from rich.progress import Progress as Bar
from rich.progress import TextColumn, TimeRemainingColumn

logger = logging.getLogger(__name__)
T = TypeVar("T")

EVERY = 30.0  # seconds between two lines


class Progress:
    """Context manager that shows the units done and the estimated time left."""

    def __init__(self, what: str, total: int | None, *, done: int = 0) -> None:
        """Set up; entering the context shows it.

        Args:
            what: shown first.
            total: units of work; None: unknown.
            done: units of an earlier process; not counted in the speed.
        """
        self.what, self.total, self.begun, self.done = what, total, done, done
        self.started = self.shown = time.monotonic()
        self.drawn = get_console().is_terminal
        columns = (*Bar.get_default_columns()[:-1], TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
        self.bar = Bar(*columns, disable=not self.drawn, transient=True)
        self.task = self.bar.add_task(what, total=total, completed=done, note="")

    def __enter__(self) -> Self:
        if self.drawn:
            self.bar.start()
        else:
            self._line("begins" if not self.begun else "goes on")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.drawn:
            self.bar.stop()

    def update(self, done: int) -> None:
        """Set the number of units done, those of an earlier process included."""
        self.done = done
        self.bar.update(self.task, completed=done)
        if not self.drawn and time.monotonic() - self.shown >= EVERY:
            self._line()

    def note(self, text: str) -> None:
        """Show a text beside the bar, or log it."""
        self.bar.update(self.task, note=text)
        if not self.drawn:
            self._line(text)

    def _line(self, text: str = "") -> None:
        self.shown = time.monotonic()
        parts = [f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"]
        worked = self.done - self.begun
        if self.total and worked > 0 and self.done < self.total:
            parts.append(f"about {as_text((self.shown - self.started) / worked * (self.total - self.done))} left")
        logger.info("%s: %s", self.what, ", ".join([*parts, *filter(None, [text])]))


def tracked(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over the items and show the progress."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Progress(what, total) as progress:
        for done, item in enumerate(items, 1):
            yield item
            progress.update(done)


def as_text(seconds: float) -> str:
    """Seconds as text: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
