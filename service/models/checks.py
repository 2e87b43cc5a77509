"""Regular checks, in a thread, that open models still answer as published; readiness reads their results."""

import atexit
import logging
from collections.abc import Callable, Iterable
from threading import Event, Thread
from time import monotonic

from service.models.model import ServedModel

log = logging.getLogger(__name__)

CHECK_SECONDS = 3.0  # between the end of one round and the beginning of the next
THREAD = "checks"  # its name
JOIN_SECONDS = 1.0  # that closing waits for the check that runs: a graph that hangs must not keep the process
STALE_SECONDS = 15.0  # without the end of a round: a graph hangs, or the process gets no CPU time


class HealthChecker:
    """Checks every open model every few seconds."""

    def __init__(self, models: Callable[[], Iterable[ServedModel]]) -> None:
        """Prepare; `models` gives the served models, and is called in the thread."""
        self._models = models
        self._ended = Event()
        self._round_ended: float | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start; the models have just been proven, so the first round waits."""
        self._round_ended = monotonic()
        # A daemon thread: a graph that hangs must not keep the process from ending. One that is within ONNX Runtime
        # when the interpreter ends would abort the process, so it is joined before, even if nobody closes the service.
        self._thread = Thread(target=self._run, name=THREAD, daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Stop, and wait for the check that runs; safe to call twice, and in a forked process."""
        self._round_ended = None
        atexit.unregister(self.close)
        if self._thread is None or not self._thread.is_alive():
            return  # in a forked process, where no thread would ever release a lock that it held at the fork
        self._ended.set()
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            log.error("a check of a model did not end within %g seconds", JOIN_SECONDS)

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
