"""Progress of long work: a line in the log every half minute, on a terminal as in a container."""

import logging
import time
from collections.abc import Iterable, Iterator, Sized
from datetime import timedelta
from typing import TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")

EVERY = 30.0  # seconds between two lines


class StepProgress:
    """Logs the units done and the time left, as long as the work goes on at its mean speed."""

    def __init__(self, what: str, total: int | None, *, done: int = 0) -> None:
        """Say that the work begins.

        Args:
            what: shown first.
            total: units of work; None: unknown.
            done: units of an earlier process; not counted in the speed.
        """
        self.what, self.total, self.begun, self.done = what, total, done, done
        self.started = time.monotonic()
        self.note("goes on" if done else "begins")

    def update(self, done: int) -> None:
        """Set the number of units done, those of an earlier process included."""
        self.done = done
        if time.monotonic() - self.shown >= EVERY:
            self.note("")

    def note(self, text: str) -> None:
        """Log a text beside the progress, at once."""
        self.shown = time.monotonic()
        parts = [f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"]
        worked = self.done - self.begun
        if self.total and worked > 0 and self.done < self.total:
            left = (self.shown - self.started) / worked * (self.total - self.done)
            parts.append(f"about {timedelta(seconds=round(left))} left")
        logger.info("%s: %s", self.what, ", ".join([*parts, *filter(None, [text])]))


def tracked(items: Iterable[T], what: str) -> Iterator[T]:
    """Iterate over the items and log the progress."""
    progress = StepProgress(what, len(items) if isinstance(items, Sized) else None)
    for done, item in enumerate(items, 1):
        yield item
        progress.update(done)
