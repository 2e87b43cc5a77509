"""The log's way out: standard error that nobody reads, a terminal, the end of the process."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from service.observe import logs
from tests.harness.process import BODY, ROOT, address_of, command, listens, raw, running, until
from tests.harness.service import NEEDED_SECONDS, free_port, open_terminal

# Asks more of the log than the pipe and the queue take, and says when it is done.
CHATTY = """
import logging, sys
from service.observe import logs
logs.configure("info")
for i in range(20_000):
    logging.getLogger("x").info("line %06d %s", i, "x" * 100)
sys.stdout.write(f"{logs.dropped()}\\n")
sys.stdout.flush()
"""


def test_standard_error_that_nobody_reads_stops_neither_answers_nor_the_end(models: Path) -> None:
    few = {"service.observe.logs.MAX_WAITING": 100}
    with running(models, access_log=True, patches=few) as (process, url):  # nobody reads its pipe, of 64 KiB
        with closing(HTTPConnection(*address_of(url), timeout=NEEDED_SECONDS)) as connection:
            for _ in range(600):  # more lines than the pipe and the queue take
                connection.request("GET", "/health/live")
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, b'{"status":"alive"}')
        with httpx.Client(base_url=url) as client:
            assert client.post("/similarity", json=BODY).status_code == 200
            text = client.get("/metrics").text
        dropped = re.search(r"^semblance_log_lines_dropped_total ([0-9.]+)$", text, re.MULTILINE)
        assert dropped is not None
        assert float(dropped[1]) > 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(NEEDED_SECONDS) == 0


def test_dropped_lines_are_counted_and_told_and_the_others_arrive() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHATTY], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    dropped = int(process.stdout.readline())  # it has ended, but for what it has left to say
    assert 0 < dropped < 20_000
    _, errors = process.communicate(timeout=NEEDED_SECONDS)
    events = [json.loads(line) for line in errors.splitlines()]
    told = sum(event["lines"] for event in events if event["message"] == "log lines were dropped")
    lines = [event["message"] for event in events if event["message"].startswith("line ")]
    assert told == dropped
    assert len(lines) == 20_000 - dropped
    assert lines == sorted(lines)


def test_an_error_of_a_request_has_no_message_and_one_of_the_service_has() -> None:
    """That of a request may hold its texts."""
    record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", None, None)
    try:
        raise ValueError("a text")
    except ValueError:
        record.exc_info = sys.exc_info()
    of_the_service = json.loads(logs.JsonFormatter().format(record))["exception"]
    asked = logs.REQUEST_ID.set("abc")
    of_a_request = json.loads(logs.JsonFormatter().format(record))["exception"]
    logs.REQUEST_ID.reset(asked)
    assert of_the_service.endswith("ValueError: a text")
    assert of_a_request.endswith("ValueError")


def test_what_is_not_http_is_logged_seldom(models: Path) -> None:
    with running(models) as (process, url):
        for _ in range(50):
            assert raw(url, b"no request\r\n\r\n").startswith(b"HTTP/1.1 400")
        process.terminate()
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
    warnings = [event for event in map(json.loads, errors.splitlines()) if event["level"] == "warning"]
    assert 1 <= len(warnings) < 50  # one in ten seconds
    assert warnings[0]["times"] == 1
    assert warnings[0]["reason"]


@pytest.mark.parametrize("workers", [1, 2])
def test_at_a_terminal_lines_are_for_people_and_name_the_documentation(models: Path, workers: int) -> None:
    port = free_port()
    ours, theirs = open_terminal()
    arguments = command(models_dir=models, port=port, workers=workers)
    process = subprocess.Popen(**arguments | {"stderr": theirs, "stdout": subprocess.DEVNULL})
    os.close(theirs)
    said = bytearray()
    try:
        deadline = time.monotonic() + NEEDED_SECONDS
        while b"/docs" not in said and time.monotonic() < deadline:
            said += os.read(ours, 65536)
        assert f"http://127.0.0.1:{port}/docs" in said.decode()
        until(lambda: listens(f"http://127.0.0.1:{port}"), "it listens")
        assert httpx.get(f"http://127.0.0.1:{port}/docs").status_code == 200
        lines = bytes(said).decode().splitlines()
        assert not any(line.startswith("{") for line in lines)
        if workers == 1:  # several say who speaks
            opened = [line.split()[1] for line in lines if line.startswith("opened ")]
            assert opened == ["avg-paraphrase"]  # what most requests ask
            assert lines[-1].startswith(f"Semblance answers at http://127.0.0.1:{port} ")
            assert len(lines) == len(opened) + 2
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_log_that_is_closed_stops_nothing(models: Path) -> None:
    with running(models, access_log=True) as (process, url):
        assert process.stderr is not None
        process.stderr.close()
        assert httpx.post(f"{url}/similarity", json=BODY).status_code == 200
        assert httpx.post(f"{url}/similarity", json=BODY).status_code == 200
        process.stderr = None
        process.terminate()
        assert process.wait(NEEDED_SECONDS) == 0


def test_standard_error_that_somebody_made_nonblocking_loses_nothing() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    program = CHATTY.replace("20_000", "900")
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs.fileno()
        )
        theirs.close()
        lines = b"".join(iter(lambda: ours.recv(65536), b"")).splitlines()
        assert process.wait(NEEDED_SECONDS) == 0
        process.communicate()
    assert len(lines) == 900
