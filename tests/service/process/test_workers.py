"""Two workers as an operator meets them behind the proxy: load, signals, deaths, models that went bad."""

import json
import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from tests.harness.fleet import Service, fleet
from tests.harness.load import CALLERS, Load
from tests.harness.process import BODY, failed, until
from tests.harness.proxy import needs_haproxy, proxy
from tests.harness.service import NEEDED_SECONDS

pytestmark = pytest.mark.timeout(4 * NEEDED_SECONDS)
RESTARTS, ANSWERED = "semblance_worker_restarts_total", "semblance_requests_total"


class Scrapes(threading.Thread):
    """`with Scrapes(url) as scrapes:` asks for the metrics twice a second, of whichever worker accepts each."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._over = threading.Event()
        self.highest: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.fallen: list[object] = []
        self.unready: list[str] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.5):
            with suppress(httpx.TransportError):  # of the worker that is killed
                ready = httpx.get(f"{self._url}/health/ready")
                self.unready += [ready.text] if ready.status_code != 200 else []
                found = families(httpx.get(f"{self._url}/metrics").text)
                for sample in [each for family in found if family.type != "gauge" for each in family.samples]:
                    key = sample.name, frozenset(sample.labels.items())
                    if sample.value < self.highest.get(key, 0.0):
                        self.fallen.append((key, self.highest[key], sample.value))
                    self.highest[key] = sample.value


@needs_haproxy
def test_workers_end_in_every_way_and_no_request_behind_the_proxy_is_refused(root: Path, tmp_path: Path) -> None:
    with fleet(root, tmp_path) as service:
        port = int(service.url.rpartition(":")[2])
        with (
            proxy(tmp_path, port, port) as url,
            Scrapes(service.url) as scrapes,
            Load(url, "/similarity", BODY) as load,
        ):
            before = service.pids()
            service.process.send_signal(signal.SIGUSR2)
            until(lambda: service.both_serve(*before), "both are replaced")
            assert load.failures == []
            killed = service.pids()[0]
            os.kill(killed, signal.SIGKILL)
            until(lambda: service.both_serve(*before, killed), "it is replaced")
            until(lambda: service.metric(RESTARTS, reason="killed") == 1, "it is counted")
        # An answer that the killed one had begun cannot be asked again.
        assert all("IncompleteRead" in failure for failure in load.failures)
        assert len(load.failures) <= CALLERS
        assert set(load.statuses) == {200}
        assert scrapes.fallen == []
        assert scrapes.unready == []  # a worker that is replaced does not stop the service
        # Of all workers, also those that ended; what the killed one was answering was asked twice.
        assert service.metric(ANSWERED, route="/similarity", status="200") >= load.statuses[200] - 8 > 100
        assert (service.metric(RESTARTS, reason="asked"), service.metric(RESTARTS, reason="killed")) == (2, 1)
        models_that_went_bad(service, root)
        pids = service.pids()
        service.process.kill()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "no worker outlives the parent")
    assert list(service.temporary.iterdir()) == []


def test_a_worker_that_hangs_keeps_neither_a_replacement_nor_the_stop(root: Path, tmp_path: Path) -> None:
    def replace(*, hanging: int) -> None:
        """Have the workers replaced; so many hang while the first successor starts."""
        before = service.pids()
        service.process.send_signal(signal.SIGUSR2)
        until(lambda: len(service.pids()) == 3, "a successor starts")
        for pid in before[:hanging]:
            os.kill(pid, signal.SIGSTOP)

    with fleet(root, tmp_path, shutdown_grace_seconds=0) as service:
        before = service.pids()
        replace(hanging=1)
        until(lambda: service.both_serve(*before), "both are replaced")
        until(lambda: service.metric(RESTARTS, reason="hung") == 1, "it is counted")
        serving = len(service.events("worker serves"))
        replace(hanging=2)
        until(lambda: len(service.events("worker serves")) > serving, "the first successor serves")
        assert service.stop() == 0


def test_a_stop_refuses_whoever_comes_while_a_slow_client_is_waited_for(root: Path, tmp_path: Path) -> None:
    def refuses() -> bool:
        try:
            socket.create_connection(address, NEEDED_SECONDS).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # in the moment of closing
            pass
        return False

    with fleet(root, tmp_path, shutdown_grace_seconds=NEEDED_SECONDS) as service:
        address = "127.0.0.1", int(service.url.rpartition(":")[2])
        with socket.create_connection(address) as slow:
            slow.sendall(b"POST /similarity HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{")
            service.process.send_signal(signal.SIGTERM)
            until(refuses, "the port is closed")
            assert service.process.poll() is None
        assert service.process.wait(NEEDED_SECONDS) == 0


def models_that_went_bad(service: Service, root: Path) -> None:
    """A successor that cannot start takes nobody along."""
    (root / "avg-paraphrase" / "encoder.onnx").write_bytes(b"")
    os.kill(service.pids()[0], signal.SIGKILL)

    def successor_failed() -> bool:
        with suppress(httpx.TransportError):  # of the one that is killed
            return service.metric(RESTARTS, reason="failed") >= 1
        return False

    until(successor_failed, "its successor fails")
    assert httpx.post(f"{service.url}/similarity", json=BODY).status_code == 200


def test_what_is_wrong_at_start_up_is_said_once(root: Path) -> None:
    path = root / "avg-paraphrase" / "encoder.onnx"
    path.write_bytes(path.read_bytes()[:-1])
    code, lines = failed(models_dir=root, workers=4)
    assert code == 3
    (critical,) = [event for event in map(json.loads, lines) if event["level"] == "critical"]
    assert str(path) in critical["message"]
