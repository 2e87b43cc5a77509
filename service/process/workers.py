"""Several workers behind one port: uvicorn's own, with what it leaves open.

uvicorn starts a worker in place of one that ended or hangs. Besides, the first worker serves before the others start,
so that what is wrong is said once and is the exit code; a worker whose models went bad takes nobody along; and
replacements are counted. SIGHUP, or a worker's SIGUSR1, has each worker read the models folder again
(`service/models/reload.py`), SIGUSR2 replaces them one by one, each when its successor serves.
"""

import logging
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import uvicorn
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from service.observe import METRICS_FOLDER
from service.observe.logs import fields
from service.process import EXIT_KILLED, EXIT_MODELS, WORKER_EXIT
from service.process.config import address_of, config_of, listening_sockets
from service.process.signals import Terminal
from service.settings import Settings

log = logging.getLogger(__name__)

START_SECONDS = 180.0  # for the first worker to open its models
PAUSE_SECONDS = 10.0  # after a worker that could not start
CLOSING_SECONDS = 5.0  # after drain and grace, for a worker to close
_SHARED_MEMORY = "/dev/shm"


def serve_by_workers(settings: Settings, number: int) -> int:
    """Serve by several processes until SIGTERM or SIGINT, or until none can serve; the exit code."""
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
    with shared as folder:
        os.environ[METRICS_FOLDER] = folder  # before prometheus_client is imported
        config = config_of(settings, "service.process.serving:worker", number)
        workers = Workers(config, listening_sockets(config), settings.drain_seconds + settings.shutdown_grace_seconds)
        workers.run()
        log.info("stopped", extra=fields(exit_code=workers.exit_code))
    return workers.exit_code


class Workers(Multiprocess):
    """The parent process, which opens no models and answers nothing."""

    def __init__(self, config: uvicorn.Config, listening: list[socket.socket], grace_seconds: float) -> None:
        """Prepare; a worker that is told to stop may take so many seconds."""
        from prometheus_client import CollectorRegistry

        from service.observe.telemetry import restarts_counter

        self._terminal = Terminal()
        super().__init__(config, listening)
        # A worker inherits this: what comes before it has a handler, and reads the folder, waits for that.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        for sig in (signal.SIGTERM, signal.SIGINT):  # also while a worker is being replaced
            signal.signal(sig, lambda *_: self.should_exit.set())
        self.exit_code = 0
        self._address = address_of(config.host, listening[0].getsockname()[1])
        self._grace_seconds = grace_seconds
        self._restarts = restarts_counter(CollectorRegistry())
        self._next_look = 0.0
        self._ended: set[int | None] = set()  # whose figures are to be added up

    def init_processes(self) -> None:
        """Start the first worker and, when it serves, the others."""
        first = Process(self.config, self.sockets)
        first.start()
        self.processes.append(first)
        if first.wait_until_ready(START_SECONDS, self.should_exit):
            log.info("serving", extra=fields(address=self._address, docs=f"{self._address}/docs"))
            for _ in range(self.processes_num - 1):
                self.processes.append(Process(self.config, self.sockets))
                self.processes[-1].start()
        elif not self.should_exit.is_set():
            self._give_up(first.exitcode)

    def _give_up(self, code: int | None) -> None:
        self.exit_code = code - WORKER_EXIT if code is not None and code > WORKER_EXIT else EXIT_KILLED
        self.should_exit.set()

    def keep_subprocess_alive(self) -> None:
        """Start workers in place of those that ended."""
        if monotonic() >= self._next_look:
            # With its end of the pipe open here too, one that dies while it is asked would be waited for as if it hung.
            for process in self.processes:
                process.child_conn.close()
            with self._counted():
                super().keep_subprocess_alive()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count the workers that are replaced within the block, by the reason."""
        from prometheus_client.multiprocess import mark_process_dead

        from service.observe.shared import add_up_ended

        before = [(process, process.process.is_alive()) for process in self.processes]
        yield
        for process, was_alive in before:
            if process in self.processes or self.should_exit.is_set():
                continue
            mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
            self._ended.add(process.pid)
            code = process.exitcode or 0
            reason = "asked" if code in (0, -signal.SIGTERM) else "failed" if code > 0 else "killed"
            if was_alive and reason == "killed":  # by uvicorn
                reason = "hung"
            self._restarts.labels(reason).inc()
            log.log(
                logging.INFO if reason == "asked" else logging.ERROR,
                "a worker ended and is replaced",
                extra=fields(worker_pid=process.pid, exit_code=code, reason=reason),
            )
            if reason == "failed":
                self._next_look = monotonic() + PAUSE_SECONDS
                if not any(each.is_ready(1) for each in self.processes):
                    self._give_up(code)
        if self._ended:
            add_up_ended(os.environ[METRICS_FOLDER], self._ended)

    def handle_signals(self) -> None:
        """As uvicorn's; SIGHUP is heard here alone."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        super().handle_signals()

    def handle_hup(self) -> None:
        """Stop, where the terminal was closed; else reload."""
        if self._terminal.is_gone:
            self.should_exit.set()
        else:
            self.handle_usr1()

    def handle_usr1(self) -> None:
        """Have all workers read the models folder again, also those that start: they may have read it already."""
        for process in self.processes:
            if process.pid is not None and process.process.is_alive():
                os.kill(process.pid, signal.SIGHUP)

    def handle_usr2(self) -> None:
        """Replace all workers, one by one."""
        with self._counted():
            self.restart_all()

    def restart_all(self) -> None:
        """As uvicorn's, but a worker is told that it was replaced: it does not say that the service stops."""
        for index, old in enumerate(self.processes):
            new = Process(self.config, self.sockets)
            new.start()
            if not new.wait_until_ready(self.config.timeout_worker_healthcheck, self.should_exit):
                new.kill()
                new.join()
                if not self.should_exit.is_set():
                    log.error("a successor does not serve; the workers stay", extra=fields(worker_pid=new.pid))
                return
            self.processes[index] = new
            if old.pid is not None and old.process.is_alive():
                os.kill(old.pid, signal.SIGUSR1)
            until = self._last_moment()
            while old.process.is_alive() and monotonic() < until:
                if self.should_exit.wait(0.1):
                    self.processes.append(old)  # it ends with the others
                    return
            _end(old, until)

    def join_all(self) -> None:
        """Close the port with the workers, and wait for them; kill those that do not end in time."""
        for listening in self.sockets:  # else who comes when the workers have closed theirs would wait for nobody
            listening.close()
        until = self._last_moment()
        for process in self.processes:
            _end(process, until)

    def _last_moment(self) -> float:
        """Until when a worker may take that is told to end now."""
        return monotonic() + self._grace_seconds + CLOSING_SECONDS


def _end(worker: Process, until: float) -> None:
    """Wait for a worker that was told to end; kill it where it does not in time."""
    worker.process.join(max(0.0, until - monotonic()))
    if worker.process.is_alive():
        log.error("a worker does not end in time; it is killed", extra=fields(worker_pid=worker.pid))
        worker.process.kill()
        worker.process.join()
