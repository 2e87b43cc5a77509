"""What begins a reload: a signal, another worker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.harness.fleet import Service, fleet
from tests.harness.load import Load
from tests.harness.process import ROOT, running
from tests.harness.process import until as fleet_until
from tests.harness.service import NEEDED_SECONDS, open_terminal
from tests.service.models.replacing import ID, PAIR, break_golden, expected, put

pytestmark = pytest.mark.anyio


def ask(url: str) -> float:
    return httpx.post(f"{url}/similarity", json=PAIR).json()["results"][0]["raw_score"]


def test_sighup_reloads(root: Path) -> None:
    with running(root) as (process, url):
        assert ask(url) == expected(0)
        put(root, 1)
        process.send_signal(signal.SIGHUP)
        fleet_until(lambda: ask(url) == expected(1), "the new model is served")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
    events = [json.loads(line) for line in errors.splitlines()]
    (event,) = [event for event in events if event["message"] == "model reloaded"]
    assert event["model"] == ID
    assert {event["level"] for event in events} == {"info"}


def test_a_hangup_during_start_up_is_remembered() -> None:
    code = (
        "import signal; from service.process.signals import HangupHandler; "
        "hangup = HangupHandler(); signal.raise_signal(signal.SIGHUP); "
        "print('alive'); hangup.then(lambda: print('reload')); signal.raise_signal(signal.SIGHUP)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["alive", "reload", "reload"]


def test_all_workers_reload_when_one_is_told_to(root: Path, tmp_path: Path) -> None:
    def all_say(service: Service, seed: int) -> bool:
        """Of both workers: each request has a connection of its own, which either may take."""
        return all(ask(service.url) == expected(seed) for _ in range(20))

    with fleet(root, tmp_path) as service:
        before = service.pids()
        assert all_say(service, 0)
        with Load(service.url, "/similarity", PAIR) as load:
            put(root, 1)
            service.process.send_signal(signal.SIGHUP)
            fleet_until(lambda: all_say(service, 1), "both have the second model")
            fleet_until(lambda: len(service.events("model reloaded")) == 2, "both say so")
            put(root, 2)
            assert httpx.post(f"{service.url}/models/reload").status_code == 200
            fleet_until(lambda: all_say(service, 2), "both have the third model")
            break_golden(put(root, 3))
            assert httpx.post(f"{service.url}/models/reload").status_code == 409
            fleet_until(lambda: len(service.events("model not reloaded")) >= 2, "both refuse the fourth")
            assert all_say(service, 2)
        assert load.failures == []
        assert set(load.statuses) == {200}
        assert service.metric("semblance_model_reload_failures_total", model=ID) >= 2
        assert service.pids() == before
        assert service.stop() == 0


_IN_TERMINAL = """
import fcntl, os, pty, signal, termios, time
terminal, child_end = pty.openpty()
heard, says = os.pipe()
if (pid := os.fork()) == 0:
    os.setsid()
    fcntl.ioctl(child_end, termios.TIOCSCTTY, 0)
    os.close(terminal)
    from service.process.signals import HangupHandler
    HangupHandler().then(lambda: os.write(says, b"L"))
    os.write(says, b"R")
    time.sleep(60)
    os._exit(1)
os.close(child_end)
assert os.read(heard, 1) == b"R"
os.kill(pid, signal.SIGHUP)
assert os.read(heard, 1) == b"L"
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(os.WTERMSIG(status))
"""


def test_a_closed_terminal_ends_what_was_started_from_it() -> None:
    """While it is open the signal reloads; when it closes, the kernel sends the same signal."""
    for end in open_terminal():
        os.close(end)
    done = subprocess.run(
        [sys.executable, "-c", _IN_TERMINAL], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == str(int(signal.SIGTERM)), done.stderr
