"""Several worker processes behind one port, as an operator meets them: load, signals, deaths, exit codes."""

import http.client
import json
import os
import signal
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from tests.harness.fleet import Service, fleet
from tests.harness.load import Load
from tests.harness.process import BODY, failed, until
from tests.harness.service import NEEDED_SECONDS

pytestmark = pytest.mark.timeout(4 * NEEDED_SECONDS)
IMPATIENT = "import service.process.supervisor as fleet\nfleet.HUNG_SECONDS = 4.0\n"
# The third worker has three seconds to start, whoever follows it has time.
STRICT = (
    "import service.process.supervisor as fleet\n"
    "look = fleet.Supervisor._check\n"
    "def strict(self, worker):\n"
    "    seconds = 3.0 if worker.number == 3 else 180.0\n"
    "    fleet.START_SECONDS = seconds\n"
    "    look(self, worker)\n"
    "fleet.Supervisor._check = strict\n"
)
# What comes in the way of a start; `tries` has the processes that were to start, this one too.
AT_A_START = (
    "import errno, os, signal, service.process.supervisor as fleet\n"
    "start, tries = fleet.SpawnProcess.start, []\n"
    "def begin(process):\n"
    "    tries.append(process)\n"
    "    {}\n"
    "    start(process)\n"
    "fleet.SpawnProcess.start = begin\n"
)
# The third and the fourth worker find no memory, as the system would say it.
POOR = AT_A_START.format("if len(tries) in (3, 4): raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))")
# Ctrl-C while the third worker is being started.
INTERRUPTED = AT_A_START.format("if len(tries) == 3: os.kill(os.getpid(), signal.SIGINT)")


class Scrapes(threading.Thread):
    """`with Scrapes(url) as scrapes:` asks for the metrics ten times a second, of whichever worker accepts each."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._over = threading.Event()
        self.highest: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.fallen: list[object] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.1):
            with suppress(httpx.TransportError):  # of the worker that is killed
                found = families(httpx.get(f"{self._url}/metrics").text)
                for sample in [each for family in found if family.type != "gauge" for each in family.samples]:
                    key = sample.name, frozenset(sample.labels.items())
                    if sample.value < self.highest.get(key, 0.0) and not sample.name.endswith("_created"):
                        self.fallen.append((key, self.highest[key], sample.value))
                    self.highest[key] = sample.value


def test_workers_that_are_replaced_or_killed_lose_no_request_and_no_count(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path) as service:
        with Scrapes(service.url) as scrapes:
            replaced_and_killed(service)
        assert scrapes.fallen == []
        answered = ("semblance_requests_total", frozenset({("route", "/similarity"), ("status", "200")}))
        assert scrapes.highest[answered] > 100
        assert service.stop() == 0
        assert list(service.temporary.iterdir()) == []


def replaced_and_killed(service: Service) -> None:
    supervisor = service.process.pid
    before = service.pids()
    assert supervisor not in before
    with Load(service.url, "/similarity", BODY) as load:
        load.go_on(1)
        for pid in before:  # one by one
            served = len(service.events("worker serves"))
            os.kill(pid, signal.SIGTERM)
            until(lambda served=served: len(service.events("worker serves")) > served, "a successor serves")
            until(lambda pid=pid: pid not in service.pids(), "the old one ends")
        begun = len(service.events())
        service.process.send_signal(signal.SIGUSR2)  # all
        until(lambda: len(service.events("worker ended")) == 4, "all four have ended")
        load.go_on(1)
    assert load.failures == []
    assert set(load.statuses) == {200}
    assert len(set(service.pids()) - set(before)) == 2
    # Each of the old ones was told to leave only when its successor served.
    order = [e["message"] for e in service.events()[begun:] if e["message"] in ("worker serves", "worker leaves")]
    assert order == ["worker serves", "worker leaves"] * 2
    asked = load.statuses[200]
    # of all workers, also those that ended
    service.shows(asked, "semblance_requests_total", route="/similarity", status="200")
    service.shows(asked, "semblance_request_seconds_count", route="/similarity", model="avg-paraphrase")
    service.shows(4, "semblance_worker_restarts_total", reason="asked")
    service.shows(2, "semblance_worker_processes")
    assert {event["level"] for event in service.events()} == {"info"}

    first, second = service.pids()
    os.kill(first, signal.SIGKILL)
    until(lambda: len(service.pids()) == 2 and first not in service.pids(), "it is replaced")
    assert second in service.pids()
    [died] = service.events("worker died")
    assert (died["level"], died["worker_pid"], died["signal"]) == ("error", first, "SIGKILL")
    assert died["pid"] == supervisor
    service.shows(1, "semblance_worker_restarts_total", reason="killed")
    service.shows(asked, "semblance_requests_total", route="/similarity", status="200")


def test_a_worker_that_hangs_is_replaced_and_none_outlives_the_supervisor(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path, IMPATIENT) as service:
        stopped = service.pids()[0]
        os.kill(stopped, signal.SIGSTOP)
        until(lambda: stopped not in service.pids() and len(service.pids()) == 2, "it is replaced")
        assert stopped in [event["worker_pid"] for event in service.events("worker hangs; it is killed")]
        until(lambda: service.metric("semblance_worker_restarts_total", reason="hung") >= 1, "it is counted")
        pids = service.pids()
        service.process.kill()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "they leave")
    assert len(service.events("the supervisor is gone; this worker leaves too")) == 2
    assert list(service.temporary.iterdir()) == []


def children(pid: int) -> set[int]:
    """The workers of a supervisor that have begun: one stopped before its `exec` would stop the supervisor too."""
    found = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # it has ended
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(int(child))
    return found


def test_a_worker_that_hangs_before_it_serves_is_killed_and_replaced(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path, STRICT) as service:
        first, second = service.pids()
        known = children(service.process.pid)
        os.kill(first, signal.SIGKILL)
        until(lambda: bool(children(service.process.pid) - known), "there is a successor")
        [hangs] = children(service.process.pid) - known
        os.kill(hangs, signal.SIGSTOP)
        until(lambda: bool(service.events("worker hangs; it is killed")), "it is noticed")
        [event] = service.events("worker hangs; it is killed")
        assert (event["worker_pid"], event["had_served"]) == (hangs, False)
        assert httpx.post(f"{service.url}/similarity", json=BODY).status_code == 200  # of the one that is left
        until(lambda: len(service.pids()) == 2, "the next one serves")
        assert second in service.pids()
        assert service.stop() == 0


def test_a_worker_that_the_system_cannot_start_takes_nobody_along(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path, POOR) as service:
        first, second = service.pids()
        os.kill(first, signal.SIGKILL)
        until(lambda: len(service.events("the system cannot start a worker")) == 2, "it is tried twice in vain")
        assert httpx.post(f"{service.url}/similarity", json=BODY).status_code == 200
        until(lambda: len(service.pids()) == 2, "the third try serves")
        assert second in service.pids()
        assert service.events("the system cannot start a worker")[0]["reason"] == "Cannot allocate memory"
        assert len(service.events("the next worker starts after a pause")) == 2
        assert service.stop() == 0


def test_the_service_drains_before_it_stops(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path, drain_seconds=5) as service, httpx.Client(base_url=service.url) as client:
        assert client.get("/health/ready").status_code == 200
        service.process.send_signal(signal.SIGTERM)
        # A worker hears of it at its next look, and an answer may come of either: ask each until it has heard.
        last: dict[str, httpx.Response] = {}

        def closes(method: str, path: str, **body: object) -> bool:
            last[path] = client.request(method, path, **body)  # type: ignore[arg-type]
            return last[path].headers.get("connection") == "close"

        until(lambda: closes("GET", "/health/ready"), "it is unready")
        assert (last["/health/ready"].status_code, last["/health/ready"].json()["reasons"]) == (503, ["shutting down"])
        until(lambda: closes("POST", "/similarity", json=BODY), "it closes after an answer")  # the socket still listens
        assert last["/similarity"].status_code == 200
        assert service.process.wait(NEEDED_SECONDS) == 0
        with pytest.raises(httpx.ConnectError):
            client.get("/health/live")


def test_ctrl_c_does_not_wait_for_idle_connections(models: Path, tmp_path: Path) -> None:
    with (
        fleet(models, tmp_path, drain_seconds=1000, shutdown_grace_seconds=1000) as service,
        closing(http.client.HTTPConnection(service.url.removeprefix("http://"))) as client,
    ):
        client.request("GET", "/health/live")
        assert client.getresponse().read()
        for pid in service.pids():  # a terminal sends it to all
            os.kill(pid, signal.SIGINT)
        assert service.stop(signal.SIGINT) == 0
    assert {event["level"] for event in service.events()} == {"info"}


def test_ctrl_c_while_a_worker_is_started_is_not_lost(models: Path, tmp_path: Path) -> None:
    with fleet(models, tmp_path, INTERRUPTED) as service:
        os.kill(service.pids()[0], signal.SIGKILL)  # another is started
        assert service.process.wait(NEEDED_SECONDS) == 0
        assert [event["signal"] for event in service.events("signal")] == ["SIGINT"]


def test_what_is_wrong_at_start_up_is_said_once(root: Path) -> None:
    path = root / "avg-sick" / "encoder.onnx"
    path.write_bytes(path.read_bytes()[:-1])
    code, lines = failed(models_dir=root, workers=4)
    assert code == 3
    critical = [event for event in map(json.loads, lines) if event["level"] == "critical"]
    assert len(critical) == 1
    assert str(path) in critical[0]["message"]
    assert not [event for event in map(json.loads, lines) if event["level"] in ("critical", "error")][2:]


def test_models_that_went_bad_keep_the_workers_that_serve(root: Path, tmp_path: Path) -> None:
    with fleet(root, tmp_path) as service:
        before = service.pids()
        (root / "avg-sick" / "encoder.onnx").write_bytes(b"")
        service.process.send_signal(signal.SIGUSR2)
        until(lambda: bool(service.events("the workers that serve are kept")), "the successor fails")
        assert service.pids() == before
        assert httpx.post(f"{service.url}/similarity", json=BODY).status_code == 200
        os.kill(before[0], signal.SIGKILL)
        until(lambda: bool(service.events("the next worker starts after a pause")), "there is a pause")
        assert httpx.post(f"{service.url}/similarity", json=BODY).status_code == 200
        os.kill(before[1], signal.SIGKILL)  # the last one that serves: nobody is left to answer
        assert service.process.wait(NEEDED_SECONDS) == 3
