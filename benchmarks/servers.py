"""Processes of a benchmark on given CPUs: any server, the service, Redis."""

import json
import os
import re
import shutil
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

import redis
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parent.parent
SERVICE = [sys.executable, "-m", "service"]
START_SECONDS, STOP_SECONDS, SETTLE_SECONDS = 180.0, 30.0, 30.0
TICKS = os.sysconf("SC_CLK_TCK")
MB = 1024.0 * 1024.0


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(cpus: str | None) -> list[str]:
    """The beginning of a command that runs on these CPUs only, such as `0,2-3`; empty for None."""
    return ["taskset", "-c", cpus] if cpus else []


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
        self._command = [*pinned(cpus), *command]
        self._environment = {**inherited, **(environment or {})}
        self._log = Path(tempfile.mkstemp(prefix="server-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> Self:
        """Start it with `more` options, and wait until it is ready.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message has the end of its log.
        """
        command = [*self._command, *more]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError):
                if self.is_ready():
                    return self
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"{' '.join(command)} is not ready:\n{self._log.read_text(errors='replace')[-2000:]}")

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
        return self._ask(urllib.request.Request(self.url + path))

    def post(self, path: str, body: object) -> tuple[int, bytes]:
        """Likewise POST, of JSON."""
        sent = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return self._ask(sent)

    def _ask(self, request: urllib.request.Request) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def metrics(self) -> "Metrics":
        """A scrape of `/metrics`."""
        return Metrics(self.get("/metrics")[1].decode())

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
        super().__init__(SERVICE, int(str(own["port"])), environment, cpus)

    def is_ready(self) -> bool:
        """Whether `/health/ready` answers 200."""
        return self.readiness()[0] == 200

    def readiness(self) -> tuple[int, dict[str, object]]:
        """Status and body of `/health/ready`."""
        status, body = self.get("/health/ready")
        return status, json.loads(body)

    def workers(self) -> list[int]:
        """The processes that serve, by its log."""
        serving = {event.get("pid") for event in self.events() if event.get("message") == "worker serves"}
        return [pid for pid in self.pids()[1:] if pid in serving]

    def events(self) -> list[dict[str, object]]:
        """The log so far; a line that is no JSON object becomes a `message`."""
        return [_event(line) for line in self._log.read_text(errors="replace").splitlines()]

    def complaints(self) -> list[str]:
        """Errors in the log, and uncaught tracebacks."""
        fine = ("debug", "info", "warning")
        return [json.dumps(event)[:500] for event in self.events() if event.get("level") not in fine]


class RedisServer(Server):
    """A redis-server without persistence."""

    def __init__(self, cpus: str | None = None) -> None:
        """Store the settings of the server.

        Raises:
            SystemExit: there is no redis-server on the PATH.
        """
        if shutil.which("redis-server") is None:
            raise SystemExit("this needs redis-server on the PATH (Debian: apt install redis-server)")
        port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder.name]
        super().__init__(["redis-server", *options], port, cpus=cpus)
        self.url = f"redis://127.0.0.1:{port}/0"
        self.client = redis.Redis("127.0.0.1", port)

    def is_ready(self) -> bool:
        """Whether it answers a ping."""
        with suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False

    def kill(self) -> None:
        """SIGKILL; `start` starts it again, empty."""
        assert self._process is not None, "started"
        self._process.kill()
        self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._folder.cleanup()


class Metrics:
    """The metrics of one scrape."""

    def __init__(self, text: str) -> None:
        self._samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of this name that have these labels.

        Raises:
            LookupError: there is none.
        """
        found = [s.value for s in self._samples if s.name == name and labels.items() <= s.labels.items()]
        if not found:
            raise LookupError(f"no series {name} {labels}")
        return float(sum(found))

    def by(self, name: str, label: str) -> Mapping[str, float]:
        """The sums of all series of this name, by the values of a label; empty where there is no series."""
        sums: dict[str, float] = {}
        for sample in self._samples:
            if sample.name == name:
                value = sample.labels.get(label, "")
                sums[value] = sums.get(value, 0.0) + sample.value
        return sums


def _event(line: str) -> dict[str, object]:
    with suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return {"message": line}
