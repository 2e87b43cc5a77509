"""Several processes of the service behind one port."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families as families

from tests.harness.process import command, until
from tests.harness.service import NEEDED_SECONDS, free_port


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
        """The workers, whether they serve yet or not."""
        pid, found = self.process.pid, []
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):  # it has ended
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
        return found

    def both_serve(self, *without: int) -> bool:
        """Whether two workers serve, none of them one of these."""
        if len(self.pids()) != 2 or set(self.pids()) & set(without):
            return False
        with suppress(httpx.TransportError):  # of one that is killed
            return self.metric("semblance_worker_processes") == 2
        return False

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
        """Wait until a metric has the value: a gauge of another worker is up to a second old."""
        until(lambda: self.metrics().get((name, frozenset(labels.items()))) == value, f"{name} {labels} is {value}")

    def stop(self, sig: int = signal.SIGTERM) -> int:
        self.process.send_signal(sig)
        return self.process.wait(NEEDED_SECONDS)


@contextmanager
def fleet(models: Path, folder: Path, **settings: object) -> Iterator[Service]:
    """Two workers, both serving."""
    port = free_port()
    temporary = folder / "tmp"
    temporary.mkdir()
    arguments = command(**{"models_dir": models, "port": port, "workers": 2} | settings)
    arguments["env"] = arguments["env"] | {"TMPDIR": str(temporary)}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(**arguments | {"stderr": log})
    service = Service(process, f"http://127.0.0.1:{port}", folder / "log", temporary)
    try:
        until(lambda: process.poll() is not None or service.both_serve(), "two workers serve")
        assert process.poll() is None, service.events()
        yield service
    finally:
        pids = service.pids() if process.poll() is None else []
        process.kill()
        process.communicate()
        for pid in pids:  # orphans leave by themselves; a test that failed does not wait for that
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
