"""Regular checks, in a thread, that open models still answer as published; readiness reads their results."""

import logging
from collections.abc import Callable, Iterable
from threading import Event, Thread
from time import monotonic

from service.models.model import Model

log = logging.getLogger(__name__)

CHECK_SECONDS = 3.0  # between the end of one round and the beginning of the next
THREAD = "checks"  # its name
STALE_SECONDS = 15.0  # without the end of a round: a graph hangs, or the process gets no CPU time


class Checks:
    """Checks every open model every few seconds."""

    def __init__(self, models: Callable[[], Iterable[Model]]) -> None:
        """Prepare; `models` gives the served models, and is called in the thread."""
        self._models = models
        self._ended = Event()
        self._round_ended: float | None = None

    def start(self) -> None:
        """Start; the models have just been proven, so the first round waits."""
        self._round_ended = monotonic()
        # A daemon thread: a graph that hangs must not keep the process from ending.
        Thread(target=self._run, name=THREAD, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._ended.set()
        self._round_ended = None

    @property
    def problem(self) -> str | None:
        """What is wrong if rounds do not end."""
        if self._round_ended is None or (age := monotonic() - self._round_ended) <= STALE_SECONDS:
            return None
        return f"the models were last found to answer {age:.0f} seconds ago"

    def _run(self) -> None:
        while not self._ended.wait(CHECK_SECONDS):
            self._round()  # in its own frame, so that no model is referenced during the wait

    def _round(self) -> None:
        try:
            for model in list(self._models()):
                if self._ended.is_set():
                    return
                if model.opened is not None:
                    model.opened.check()
        except Exception:  # this round failed, as readiness shows where all do; the next one is tried
            log.exception("a round of checks failed")
        else:
            self._round_ended = monotonic()
