"""What begins a reload: a signal, another worker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.harness import fakes
from tests.harness.fleet import fleet
from tests.harness.load import Load
from tests.harness.process import ROOT, command, listens, running
from tests.harness.process import until as fleet_until
from tests.harness.service import NEEDED_SECONDS, free_port, open_terminal
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


def all_say(url: str, seed: int) -> bool:
    """Of both workers: each request has a connection of its own, which either may take."""
    return all(ask(url) == expected(seed) for _ in range(20))


def test_all_workers_reload_when_one_is_told_to(root: Path, tmp_path: Path) -> None:
    with fleet(root, tmp_path) as service:
        before = service.pids()
        assert all_say(service.url, 0)
        with Load(service.url, "/similarity", PAIR) as load:
            put(root, 1)
            service.process.send_signal(signal.SIGHUP)
            fleet_until(lambda: all_say(service.url, 1), "both have the second model")
            fleet_until(lambda: len(service.events("model reloaded")) == 2, "both say so")
            put(root, 2)
            assert httpx.post(f"{service.url}/models/reload").status_code == 200
            fleet_until(lambda: all_say(service.url, 2), "both have the third model")
            break_golden(put(root, 3))
            assert httpx.post(f"{service.url}/models/reload").status_code == 409
            fleet_until(lambda: len(service.events("model not reloaded")) >= 2, "both refuse the fourth")
            assert all_say(service.url, 2)
        assert load.failures == []
        assert set(load.statuses) == {200}
        assert service.metric("semblance_model_reload_failures_total", model=ID) >= 2
        assert service.pids() == before
        assert service.stop() == 0


def test_a_worker_that_starts_reloads_what_it_has_read_already(root: Path, tmp_path: Path) -> None:
    fakes.cosine_model(root / "slow", "slow")
    fakes.repeating_encoder(root / "slow" / "encoder.onnx", 25_000)  # opened in a few seconds
    fakes.sign(root / "slow", "encoder.onnx")
    fakes.golden_of(root / "slow", fakes.REPEATS, fakes.REPEATS)
    with fleet(root, tmp_path, preload="slow") as service:
        stays, killed = service.pids()
        os.kill(killed, signal.SIGKILL)
        fleet_until(lambda: len(set(service.pids()) - {killed}) == 2, "its successor starts")
        service.process.send_signal(signal.SIGHUP)  # it is not ready for any signal yet, and lives on
        (starts,) = set(service.pids()) - {stays, killed}
        opened = {"pid": starts, "model": ID}.items()
        fleet_until(lambda: any(opened <= e.items() for e in service.events("model opened")), "it has read all models")
        put(root, 1)
        assert httpx.post(f"{service.url}/models/reload").status_code == 200
        assert starts not in [event["pid"] for event in service.events("worker serves")]
        fleet_until(lambda: service.both_serve(killed), "both serve")
        fleet_until(lambda: all_say(service.url, 1), "both have the second model")
        assert set(service.pids()) == {stays, starts}


_IN_BACKGROUND = """
import fcntl, os, subprocess, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
print(subprocess.Popen([sys.executable, "-m", "service"], process_group=0, stderr=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


def both_serve(url: str) -> bool:
    return "\nsemblance_worker_processes 2.0\n" in httpx.get(f"{url}/metrics").text


def test_workers_in_the_background_outlive_their_terminal_and_reload(root: Path) -> None:
    """What a shell started with `& disown` hears nothing of the terminal's end."""
    ours, theirs = open_terminal()
    started = command(models_dir=root, port=free_port(), workers=2)
    url = f"http://127.0.0.1:{started['env']['SEMBLANCE_PORT']}"
    started |= {"args": [sys.executable, "-c", _IN_BACKGROUND, str(theirs)], "pass_fds": [theirs]}
    with subprocess.Popen(**started, stdin=subprocess.PIPE, start_new_session=True) as shell:
        os.close(theirs)
        service = int(shell.stdout.readline())
        try:
            fleet_until(lambda: listens(url) and both_serve(url), "both serve")
            os.close(ours)
            assert shell.wait(NEEDED_SECONDS) == -signal.SIGHUP
            for seed in (1, 2):
                put(root, seed)
                assert httpx.post(f"{url}/models/reload").status_code == 200
                fleet_until(lambda seed=seed: all_say(url, seed), "it has the new model")  # type: ignore[misc]
        finally:
            os.kill(service, signal.SIGTERM)
        fleet_until(lambda: not listens(url), "it ends")


_IN_TERMINAL = """
import fcntl, os, pty, signal, sys, termios, time
terminal, child_end = pty.openpty()
heard, says = os.pipe()
if (pid := os.fork()) == 0:
    os.setsid()
    fcntl.ioctl(child_end, termios.TIOCSCTTY, 0)
    os.close(terminal)
    if sys.argv[1] == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from service.process.signals import HangupHandler, Terminal
    HangupHandler(Terminal()).then(lambda: os.write(says, b"L"))
    os.write(says, b"R")
    time.sleep(60)
    os._exit(1)
os.close(child_end)
os.close(says)
assert os.read(heard, 1) == b"R"
os.kill(pid, signal.SIGHUP)
assert os.read(heard, 1) == b"L"
os.close(terminal)
if os.read(heard, 1) == b"L":  # it lives
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
print(os.WTERMSIG(status))
"""


@pytest.mark.parametrize(("how", "ended_by"), [("", signal.SIGTERM), ("nohup", signal.SIGKILL)])
def test_a_closed_terminal_ends_what_was_started_from_it_without_nohup(how: str, ended_by: int) -> None:
    """While it is open the signal reloads; when it closes, the kernel sends the same signal."""
    for end in open_terminal():
        os.close(end)
    done = subprocess.run(
        [sys.executable, "-c", _IN_TERMINAL, how], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == str(int(ended_by)), done.stderr
