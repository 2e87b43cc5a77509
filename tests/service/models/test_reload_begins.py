"""What begins a reload: a look at the folder from time to time, a signal, another worker."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from anyio import fail_after

from core.manifest import MANIFEST_NAME
from tests.harness.fleet import Service, fleet
from tests.harness.load import Load
from tests.harness.process import ROOT, running
from tests.harness.process import until as fleet_until
from tests.harness.service import NEEDED_SECONDS, Client, Serve, open_terminal, until
from tests.service.models.replacing import ID, PAIR, READY, break_golden, expected, put, readiness, scored

pytestmark = pytest.mark.anyio


async def test_a_folder_that_is_being_copied_is_waited_for(root: Path, client: Client, caplog) -> None:
    """File by file, the manifest early: each look finds it changed, and says nothing but once."""
    reloader = client.app.service.reloader
    whole = put(root, 1)
    copy = root / ".whole"
    whole.rename(copy)
    whole.mkdir()
    for name in (None, MANIFEST_NAME, "golden.json", "tokenizer.json"):
        if name is not None:
            shutil.copy(copy / name, whole / name)
        report = await reloader._reload(patient=True)
        assert report["status"] == "done"
        assert await scored(client) == expected(0)
        assert await readiness(client) == READY
    half = (copy / "encoder.onnx").read_bytes()
    (whole / "encoder.onnx").write_bytes(half[:100])
    await reloader._reload(patient=True)
    (whole / "encoder.onnx").write_bytes(half)
    assert await scored(client) == expected(0)
    await reloader._reload(patient=True)
    assert await scored(client) == expected(1)
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["model not whole yet"]
    assert not [r for r in caplog.records if r.levelname == "ERROR"]
    assert await client.metric("semblance_model_reload_failures_total", model=ID) == 0


async def test_what_stays_half_is_refused_once_and_tried_when_it_changes(
    root: Path, client: Client, caplog, monkeypatch
) -> None:
    service = client.app.service
    opened = []
    reads = service.reloader._opener.read
    monkeypatch.setattr(service.reloader._opener, "read", lambda release: opened.append(release) or reads(release))
    graph = put(root, 1) / "encoder.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1])
    for _ in range(4):
        report = await service.reloader._reload(patient=True)
    assert report["status"] == "failed"
    assert len(opened) == 1  # what does not change is not verified again and again
    errors = [r for r in caplog.records if r.levelname == "ERROR"]
    assert [error.message for error in errors] == ["model not reloaded"]
    assert await client.metric("semblance_model_reload_failures_total", model=ID) == 1
    assert (await readiness(client))[0] == "degraded"
    graph.write_bytes(whole)
    report = await service.reloader._reload(patient=True)
    assert report["status"] == "done"
    assert len(opened) == 2
    assert await readiness(client) == READY


async def test_the_folder_is_looked_at_from_time_to_time_also_after_an_unexpected_error(
    root: Path, serve: Serve, monkeypatch
) -> None:
    async with serve(models_dir=root, models_poll_seconds=0.02) as client:
        service = client.app.service
        opens = service.reloader._opener.open

        def fails(release):
            raise MemoryError

        monkeypatch.setattr(service.reloader._opener, "open", fails)
        put(root, 1)
        await until(lambda: bool(service.reloader.problems), "nobody is told")
        assert service.reloader.problems == [f"model {ID} is not reloaded: MemoryError"]
        monkeypatch.setattr(service.reloader._opener, "open", opens)
        for seed in (2, 3):
            put(root, seed)
            with fail_after(NEEDED_SECONDS):
                while await scored(client) != expected(seed):
                    await asyncio.sleep(0.005)


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
            fleet_until(lambda: len(service.events("model not reloaded")) == 2, "both refuse the fourth")
            assert all_say(service, 2)
        assert load.failures == []
        assert set(load.statuses) == {200}
        service.shows(2, "semblance_model_reload_failures_total", model=ID)
        assert service.pids() == before


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
