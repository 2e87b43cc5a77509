"""The supervisor: starts worker processes behind one listening socket, and replaces them.

The supervisor opens no models and answers nothing. It binds the socket, starts one worker and, when that one serves,
the others, so an error at start-up is reported once, and the exit code is the worker's. All workers accept from one
socket, so that a connection is not lost with a worker, as it would be with SO_REUSEPORT. Each worker has a pair of
sockets with the supervisor (`service/process/messages.py`), and leaves when the supervisor is gone.

- A worker that gets SIGTERM is replaced at once, while it finishes its requests.
- A worker that dies is replaced at once; if workers die early in a row, after increasing pauses.
- A worker that is silent for `HUNG_SECONDS`, or does not serve within `START_SECONDS`, is killed and
  replaced.
- A worker that the system cannot start (memory, processes, file descriptors) is started again after a pause.
- SIGHUP makes all workers reload the models folder (`service/models/reload.py`).
- SIGUSR2 replaces all workers, one after another, each when its successor serves.
- SIGTERM and SIGINT end the service, as described in `service/http/server.py`.

Why not uvicorn's supervisor (0.54): its exit code is 0 when no worker can start, it does not notice an event loop that
hangs, and replaces a worker only when it has gone. gunicorn forks, which ONNX Runtime's threads do not survive.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import TYPE_CHECKING

from service.http.connection_tracker import address_of
from service.http.listening import admit_no_more, bind
from service.observe import METRICS_FOLDER
from service.observe.logs import fields
from service.process.messages import DRAIN, EXIT_KILLED, EXIT_MODELS, HURRY, LEAVES, RELOAD, Assignment
from service.process.signals import Terminal, noted
from service.settings import Settings

if TYPE_CHECKING:
    from service.observe.telemetry import Ending

log = logging.getLogger(__name__)

_SHARED_MEMORY = "/dev/shm"
HUNG_SECONDS = 30.0  # of silence; no request blocks the event loop for so long
START_SECONDS = 180.0  # for a worker to open its models
EARLY_SECONDS = 60.0  # a worker that dies within this time died early
LONGEST_PAUSE = 30.0
CLOSING_SECONDS = 5.0  # after the grace period, for a worker to close
_LOOK_SECONDS = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
_TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)
_spawn = multiprocessing.get_context("spawn")


@dataclass(eq=False)
class _Worker:
    """A worker process, as the supervisor knows it."""

    number: int
    process: SpawnProcess
    line: socket.socket
    started: float
    heard: float  # time of its last message
    predecessor: "_Worker | None"  # the worker that it replaces when it serves
    serves: bool = False  # or has served
    leaves: bool = False
    hung: bool = False
    mute: bool = False  # its end of the socket pair is closed

    def log_fields(self, **more: object) -> dict[str, dict[str, object]]:
        return fields(worker=self.number, worker_pid=self.process.pid, **more)


class Supervisor:
    """The parent process, which starts workers and restarts those that end."""

    def __init__(self, settings: Settings, size: int) -> None:
        """Prepare; `size` is the number of workers."""
        self._settings = settings
        self._size = size
        self._numbers = count(1)
        self._workers: list[_Worker] = []
        self._outdated: list[_Worker] = []  # to be replaced, one after another
        self._signals: list[int] = []
        self._proved = False  # whether a worker has served, so that settings and models are valid
        self._early_deaths = 0  # in a row
        self._next_start_at = 0.0
        self._drained_at: float | None = None
        self._killed_at: float | None = None  # set when all are told to leave
        self._exit_code = 0
        self._terminal = Terminal()

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, or until no worker can serve; the exit code."""
        try:
            self._listening = bind(self._settings.host, self._settings.port)
        except OSError as error:
            address = f"{self._settings.host}:{self._settings.port}"
            log.critical("cannot start: %s: %s", address, (error.strerror or str(error)).lower())
            return EXIT_MODELS
        # In memory, unless TMPDIR is set: each request writes to these files.
        in_memory = "TMPDIR" not in os.environ and os.access(_SHARED_MEMORY, os.W_OK)
        where = _SHARED_MEMORY if in_memory else None
        try:
            shared = tempfile.TemporaryDirectory(prefix="semblance-", dir=where, ignore_cleanup_errors=True)
        except OSError as error:
            log.critical("cannot start: no folder for the workers' metrics: %s", error)
            return EXIT_MODELS
        # Otherwise NumPy starts a thread for each CPU in each worker; the arrays here are too small for that.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with shared as folder, noted(_SIGNALS, self._signals) as woken:
            os.environ[METRICS_FOLDER] = folder  # before prometheus_client is imported
            from prometheus_client import CollectorRegistry

            from service.observe.telemetry import restarts_counter

            self._restarts = restarts_counter(CollectorRegistry())
            host, port = self._settings.host, self._listening.getsockname()[1]
            address = address_of(host, port)
            log.info(
                "supervising",
                extra=fields(workers=self._size, host=host, port=port, address=address, docs=f"{address}/docs"),
            )
            self._start_worker()
            while self._workers or not self._leaving:
                lines = [worker.line for worker in self._workers if not worker.mute]
                connection.wait([*lines, *(worker.process.sentinel for worker in self._workers), woken], _LOOK_SECONDS)
                self._handle_signals(woken)
                for worker in list(self._workers):
                    self._read_messages(worker)
                    self._check(worker)
                self._check_deadlines()
                self._start_missing()
            log.info("stopped", extra=fields(exit_code=self._exit_code))
        return self._exit_code

    @property
    def _leaving(self) -> bool:
        return self._killed_at is not None

    @property
    def _stopping(self) -> bool:
        return self._leaving or self._drained_at is not None

    def _start_worker(self, predecessor: _Worker | None = None) -> bool:
        """Start a worker; whether that succeeded. If the system cannot start it, the others go on."""
        number = next(self._numbers)
        try:
            self._workers.append(self._started(number, predecessor))
        except OSError as error:
            reason = error.strerror or str(error)
            log.error("the system cannot start a worker", extra=fields(worker=number, reason=reason))
            if not self._workers:
                self._exit_code = EXIT_KILLED
                self._leave(hurried=True)
                return False
            if predecessor is not None:
                self._keep_the_old()
            self._pause(early=True)
            return False
        return True

    def _started(self, number: int, predecessor: _Worker | None) -> _Worker:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        assignment = Assignment(self._settings, number, self._listening, theirs)
        process = _spawn.Process(target=_work, args=(assignment,), name=f"worker {number}", daemon=True)
        # Inherited by the worker, which ignores them: the supervisor handles Ctrl-C and a closed terminal. Blocked and
        # not ignored here, so that a signal that comes meanwhile is delivered afterwards.
        resource_tracker.ensure_running()  # would unblock SIGINT if `start` had to start it
        signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL_SIGNALS)
        try:
            process.start()
        except OSError:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINAL_SIGNALS)
            theirs.close()
        now = monotonic()
        return _Worker(number, process, ours, now, now, predecessor)

    def _read_messages(self, worker: _Worker) -> None:
        """Read the worker's messages."""
        try:
            news = worker.line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        if not news:
            worker.mute = True
            return
        worker.heard = monotonic()
        if not worker.serves:
            worker.serves = self._proved = True
            log.info("worker serves", extra=worker.log_fields(seconds=round(worker.heard - worker.started, 3)))
            if worker.predecessor is not None:
                worker.predecessor.process.terminate()
        if RELOAD in news:
            self._send(RELOAD, but=worker)
        if LEAVES in news and not worker.leaves:
            worker.leaves = True
            if not self._stopping:
                log.info("worker leaves", extra=worker.log_fields())

    def _check(self, worker: _Worker) -> None:
        """Remove a worker that has ended, kill one that hangs."""
        code = worker.process.exitcode
        if code is not None:
            self._remove(worker, code)
            return
        silent = monotonic() - worker.heard  # before it serves, since it was started
        if worker.leaves:
            patience = self._settings.shutdown_grace_seconds + CLOSING_SECONDS
        else:
            patience = HUNG_SECONDS if worker.serves else START_SECONDS
        if silent > patience and not worker.hung:
            worker.hung = True
            log.error(
                "worker hangs; it is killed",
                extra=worker.log_fields(silent_seconds=round(silent, 1), had_served=worker.serves),
            )
            worker.process.kill()

    def _remove(self, worker: _Worker, code: int) -> None:
        self._workers.remove(worker)
        worker.process.join()
        worker.line.close()
        reason: Ending = "killed" if code < 0 else "failed"
        if worker.hung:
            reason = "hung"
        elif worker.leaves or code in (0, -signal.SIGTERM):
            reason = "asked"
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(worker.process.pid)  # type: ignore[no-untyped-call]
        if not self._stopping and (worker.serves or worker.predecessor is None):
            self._restarts.labels(reason).inc()
        how = {"signal": signal.Signals(-code).name} if code < 0 else {"exit_code": code}
        if self._stopping or reason == "asked":
            log.info("worker ended", extra=worker.log_fields(**how))
            return
        log.error("worker died" if worker.serves else "worker could not start", extra=worker.log_fields(**how))
        if not any(other.serves for other in self._workers) and not worker.serves:
            self._exit_code = code if code > 0 else EXIT_KILLED
            self._leave(hurried=True)
            return
        if worker.predecessor is not None and not worker.serves:
            self._keep_the_old()
        self._pause(early=not worker.serves or monotonic() - worker.started < EARLY_SECONDS)

    def _keep_the_old(self) -> None:
        log.error("the workers that serve are kept", extra=fields(workers=len(self._workers)))
        self._outdated.clear()

    def _pause(self, *, early: bool) -> None:
        """Delay the next start, by a time that doubles with each worker in a row that died early."""
        self._early_deaths = self._early_deaths + 1 if early else 1
        pause = min(2.0 ** (self._early_deaths - 1) - 1, LONGEST_PAUSE)
        self._next_start_at = monotonic() + pause
        if pause:
            log.warning("the next worker starts after a pause", extra=fields(seconds=pause))

    def _start_missing(self) -> None:
        """Start missing workers; replace outdated ones."""
        if self._stopping or not self._proved:
            return
        missing = self._size - sum(not worker.leaves for worker in self._workers)
        if missing > 0 and monotonic() >= self._next_start_at:
            for _ in range(missing):
                if not self._start_worker():
                    break
        elif missing == 0 and self._outdated and all(worker.serves for worker in self._workers):
            outdated = self._outdated.pop(0)
            if outdated in self._workers and not outdated.leaves:
                self._start_worker(predecessor=outdated)

    def _handle_signals(self, woken: socket.socket) -> None:
        with suppress(BlockingIOError):
            woken.recv(4096)
        while self._signals:
            sig = self._signals.pop(0)
            log.info("signal", extra=fields(signal=signal.Signals(sig).name))
            if sig == signal.SIGHUP and self._terminal.is_gone:
                sig = signal.SIGTERM
            if sig == signal.SIGHUP:
                self._send(RELOAD)
            elif sig == signal.SIGUSR2:
                if not self._stopping:
                    self._outdated = list(self._workers)
            elif self._leaving:
                if sig == signal.SIGINT:
                    self._kill()
            elif sig == signal.SIGTERM and not self._stopping and self._settings.drain_seconds:
                self._drained_at = monotonic() + self._settings.drain_seconds
                self._send(DRAIN)
            else:
                self._leave(hurried=sig == signal.SIGINT)

    def _check_deadlines(self) -> None:
        now = monotonic()
        if self._killed_at is not None:
            if now >= self._killed_at and self._workers:
                log.error("workers that did not end in time are killed", extra=fields(workers=len(self._workers)))
                self._kill()
        elif self._drained_at is not None and now >= self._drained_at:
            self._leave()

    def _leave(self, *, hurried: bool = False) -> None:
        """Tell all workers to end; those that do not serve yet end at once."""
        self._killed_at = monotonic() + self._settings.shutdown_grace_seconds + CLOSING_SECONDS
        admit_no_more(self._listening)
        self._listening.close()
        self._send(DRAIN + HURRY if hurried else DRAIN)
        for worker in self._workers:
            worker.process.terminate()

    def _kill(self) -> None:
        self._killed_at = monotonic() + CLOSING_SECONDS
        for worker in self._workers:
            worker.process.kill()

    def _send(self, what: bytes, but: _Worker | None = None) -> None:
        for worker in self._workers:
            if worker is but:
                continue
            with suppress(OSError):  # it has ended
                worker.line.send(what)


def _work(assignment: Assignment) -> None:
    for sig in _TERMINAL_SIGNALS:
        signal.signal(sig, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINAL_SIGNALS)
    from service.process.worker import serve_as_worker  # here, so that the supervisor does not import it

    sys.exit(serve_as_worker(assignment))
