"""Several processes of the service behind one port."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families as families

from tests.harness.process import command, until
from tests.harness.service import NEEDED_SECONDS, free_port

AND_RUN = "import sys, service.__main__\nsys.exit(service.__main__.main())\n"


class Service:
    """A running service of several processes."""

    def __init__(self, process: subprocess.Popen[str], url: str, errors: Path, temporary: Path) -> None:
        self.process = process
        self.url = url
        self._errors = errors
        self.temporary = temporary

    def events(self, message: str | None = None) -> list[dict[str, object]]:
        """What the log has."""
        lines = self._errors.read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if message in (None, event["message"])]

    def pids(self) -> list[int]:
        """The workers that have served and have not ended, oldest first."""
        over = {event["worker_pid"] for what in ("worker ended", "worker died") for event in self.events(what)}
        return [event["worker_pid"] for event in self.events("worker serves") if event["worker_pid"] not in over]

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        text = httpx.get(f"{self.url}/metrics").text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families(text)
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics()[name, frozenset(labels.items())]

    def shows(self, value: float, name: str, **labels: str) -> None:
        """Wait until a metric has the value: what a worker shows of another one is up to a second old."""
        until(lambda: self.metrics().get((name, frozenset(labels.items()))) == value, f"{name} {labels} is {value}")

    def stop(self, sig: int = signal.SIGTERM) -> int:
        self.process.send_signal(sig)
        return self.process.wait(NEEDED_SECONDS)


@contextmanager
def fleet(models: Path, folder: Path, program: str = "", **settings: object) -> Iterator[Service]:
    """Two workers, both serving."""
    port = free_port()
    temporary = folder / "tmp"
    temporary.mkdir()
    arguments = command(**{"models_dir": models, "port": port, "workers": 2} | settings)
    arguments["env"] = arguments["env"] | {"TMPDIR": str(temporary)}
    if program:
        arguments["args"] = [sys.executable, "-c", f"{program}{AND_RUN}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(**arguments | {"stderr": log})
    service = Service(process, f"http://127.0.0.1:{port}", folder / "log", temporary)
    try:
        until(lambda: len(service.pids()) == 2 or process.poll() is not None, "two workers serve")
        assert process.poll() is None, service.events()
        yield service
    finally:
        pids = service.pids()
        process.kill()
        process.communicate()
        for pid in pids:  # orphans leave by themselves; a test that failed does not wait for that
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
