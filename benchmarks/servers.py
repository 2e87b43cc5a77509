"""Processes of a benchmark on given CPUs: any server, the service."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS, STOP_SECONDS, SETTLE_SECONDS = 180.0, 30.0, 30.0
TICKS = os.sysconf("SC_CLK_TCK")
MB = 1024.0 * 1024.0


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Resources:
    """Resources of all processes of a server."""

    resident_mb: float
    peak_mb: float  # sum over the processes of each one's own peak: an upper bound of the common peak
    files: int  # open descriptors
    threads: int


class Server:
    """A process that answers on a port of loopback; runs until the block ends. Its output goes to a log file."""

    def __init__(
        self, command: Sequence[str], port: int, environment: Mapping[str, str] | None = None, cpus: str | None = None
    ) -> None:
        """Store the settings; `start`, or the block, starts the process.

        Args:
            command: without `taskset`.
            port: on which it will answer.
            environment: in addition to ours, of which SEMBLANCE_ and MALLOC_ variables are left out.
            cpus: as `taskset -c` takes them; None: those of this process.
        """
        inherited = {k: value for k, value in os.environ.items() if not k.startswith(("SEMBLANCE_", "MALLOC_"))}
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self._command = [*(["taskset", "-c", cpus] if cpus else []), *command]
        self._environment = {**inherited, **(environment or {})}
        self._log = Path(tempfile.mkstemp(prefix="server-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, and wait until it is ready.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message has the end of its log.
        """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError):
                if self.is_ready():
                    return self
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"{' '.join(self._command)} is not ready:\n{self._log.read_text(errors='replace')[-2000:]}")

    def is_ready(self) -> bool:
        """Whether it answers at all; raises OSError where it does not."""
        return self.get("/")[0] > 0

    def stop(self) -> None:
        """Stop it with SIGTERM, and with SIGKILL if that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            for pid in self.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._log.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """The process that was started."""
        assert self._process is not None, "started"
        return self._process.pid

    def pids(self) -> list[int]:
        """That process and all its descendants."""
        found = [self.pid]
        for each in found:  # extended within the loop
            for task in Path(f"/proc/{each}/task").glob("*/children"):
                with suppress(OSError):
                    found += map(int, task.read_text().split())
        return found

    def get(self, path: str) -> tuple[int, bytes]:
        """GET over a new connection; status and body.

        Raises:
            OSError: nobody listens, or the connection broke.
        """
        try:
            with urllib.request.urlopen(self.url + path, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def resources(self) -> Resources:
        """Present resources of its processes; ended ones are skipped."""
        resident = peak = files = threads = 0
        for pid in self.pids():
            with suppress(OSError, KeyError):  # it ended while it was read
                status = dict(re.findall(r"(\w+):\s+(\d+)", Path(f"/proc/{pid}/status").read_text()))
                resident += int(status["VmRSS"])
                peak += int(status["VmHWM"])
                threads += int(status["Threads"])
                files += len(os.listdir(f"/proc/{pid}/fd"))
        return Resources(resident / 1024, peak / 1024, files, threads)

    def cpu_seconds(self) -> float:
        """CPU time that its processes have used."""
        ticks = 0
        for pid in self.pids():
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text()
                ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))  # utime, stime
        return ticks / TICKS

    def settled(self) -> bool:
        """Wait until it uses no CPU, so that answers to one load do not slow the next; False after half a minute."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            spent = self.cpu_seconds()
            time.sleep(0.1)
            if self.cpu_seconds() - spent <= 1.5 / TICKS:  # an idle process uses a little, too
                return True
        return False


class Service(Server):
    """`python -m service` on a free port."""

    def __init__(self, cpus: str | None = None, **settings: object) -> None:
        """Store the settings of the service.

        Args:
            cpus: as `taskset -c` takes them; None: those of this process.
            settings: of the service, by their names in `service/settings.py`.
        """
        own = {"host": "127.0.0.1", "port": free_port(), **settings}
        environment = {f"SEMBLANCE_{name.upper()}": str(value) for name, value in own.items()}
        super().__init__([sys.executable, "-m", "service"], int(str(own["port"])), environment, cpus)

    def is_ready(self) -> bool:
        """Whether `/health/ready` answers 200."""
        return self.get("/health/ready")[0] == 200

    def complaints(self) -> list[str]:
        """Errors in the log, and uncaught tracebacks."""
        lines = self._log.read_text(errors="replace").splitlines()
        return [line[:500] for line in lines if _level(line) not in ("debug", "info", "warning")]


def _level(line: str) -> object:
    """Of a line of the log; None: it is no event."""
    with suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event.get("level")
    return None


def total(scrape: str, name: str) -> float:
    """The sum of all series of a metric.

    Raises:
        LookupError: there is none.
    """
    families = text_string_to_metric_families(scrape)
    found = [sample.value for family in families for sample in family.samples if sample.name == name]
    if not found:
        raise LookupError(f"no series {name}")
    return float(sum(found))
