"""A service of our own for a trial: started, watched from outside, and ended."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.servers import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 180.0
MB = 1024.0 * 1024.0


@dataclass(frozen=True)
class Resources:
    """What the processes of a service hold together."""

    resident_mb: float
    peak_mb: float  # the sum of each one's own peak
    files: int  # open descriptors
    threads: int
    processes: int


class Served:
    """`python -m service` on a free port of loopback, until the block ends."""

    def __init__(self, cpus: str | None = None, **settings: object) -> None:
        """Prepare; nothing runs before `start`.

        Args:
            cpus: the cores it may use, as `taskset -c` takes them; without them those of this process.
            settings: of the service, by their names in `service/settings.py`.
        """
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        own = {"host": "127.0.0.1", "port": self.port, **settings}
        # What the shell sets for the service, or for glibc's allocator, would be part of the trial without being told.
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("SEMBLANCE_", "MALLOC_"))}
        self._environment = outside | {f"SEMBLANCE_{name.upper()}": str(value) for name, value in own.items()}
        self._command = [*(["taskset", "-c", cpus] if cpus else []), sys.executable, "-m", "service"]
        self._log = Path(tempfile.mkstemp(prefix="service-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, and wait until it is ready.

        Raises:
            RuntimeError: it ended, or was not ready in time; with the end of its log.
        """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError):
                if self.readiness()[0] == 200:
                    return self
            time.sleep(0.05)
        log_end = self._log.read_text()[-2000:]
        self.stop()
        raise RuntimeError(f"the service is not ready:\n{log_end}")

    def stop(self) -> int | None:
        """End it; its exit code."""
        if self._process is None:
            return None
        self._process.terminate()
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            for pid in self.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return self._process.wait()

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

    def running(self) -> bool:
        """Whether the process that was started has not ended."""
        return self._process is not None and self._process.poll() is None

    def children(self) -> list[int]:
        """The processes that it started, and those that they did."""
        return list(_descendants(self.pid))

    def pids(self) -> list[int]:
        """All its processes."""
        return [self.pid, *self.children()]

    def workers(self) -> list[int]:
        """The children that serve, as the log has them."""
        serving = {event.get("worker_pid") for event in self.events() if event.get("message") == "worker serves"}
        return [pid for pid in self.children() if pid in serving]

    def get(self, path: str) -> tuple[int, bytes]:
        """Ask over a connection of its own; status and body.

        Raises:
            OSError: nobody listens, or the connection broke.
        """
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def readiness(self) -> tuple[int, dict[str, object]]:
        """Status and body of `/health/ready`."""
        status, body = self.get("/health/ready")
        return status, json.loads(body)

    def metrics(self) -> "Metrics":
        """What `/metrics` says now."""
        return Metrics(self.get("/metrics")[1].decode())

    def resources(self) -> Resources:
        """What its processes hold now."""
        resident = peak = files = threads = 0
        pids = self.pids()
        for pid in pids:
            with suppress(OSError):  # it may end while it is looked at
                status = _status(pid)
                resident += int(status["VmRSS"].split()[0])
                peak += int(status["VmHWM"].split()[0])
                threads += int(status["Threads"])
                files += len(os.listdir(f"/proc/{pid}/fd"))
        return Resources(resident / 1024, peak / 1024, files, threads, len(pids))

    def events(self) -> list[dict[str, object]]:
        """What the log has said so far; of lines that are no JSON, the line as `message`."""
        return [_event(line) for line in self._log.read_text(errors="replace").splitlines()]

    def complaints(self) -> list[str]:
        """What the log has of errors, and of tracebacks that nobody caught."""
        fine = ("debug", "info", "warning")
        return [json.dumps(event)[:500] for event in self.events() if event.get("level") not in fine]


class Metrics:
    """One scrape."""

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
        """The same by the values of a label."""
        sums: dict[str, float] = {}
        for sample in self._samples:
            if sample.name == name:
                value = sample.labels.get(label, "")
                sums[value] = sums.get(value, 0.0) + sample.value
        return sums


def cores(cpus: str | None) -> list[int]:
    """What `0,2-3` stands for; nothing for None."""
    found: list[int] = []
    for part in (cpus or "").split(","):
        first, _, last = part.partition("-")
        if first:
            found += range(int(first), int(last or first) + 1)
    return found


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _status(pid: int) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    status = {name: value.strip() for name, value in pairs}
    if "VmRSS" not in status:
        raise ProcessLookupError(pid)  # ended, and not yet waited for
    return status


def _event(line: str) -> dict[str, object]:
    with suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return {"message": line}
