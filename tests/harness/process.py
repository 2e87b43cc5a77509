"""`python -m service` as a process of its own, and what is sent to it byte by byte."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.harness.service import NEEDED_SECONDS, free_port

ROOT = Path(__file__).parents[2]
BODY = {"pairs": [{"a": "a man", "b": "a dog"}]}


def command(**settings: object) -> dict[str, object]:
    environment = {f"SEMBLANCE_{name.upper()}": str(value) for name, value in settings.items()}
    return {
        "args": [sys.executable, "-m", "service"],
        "cwd": ROOT,
        "env": os.environ | environment,
        "stderr": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
    }


@contextmanager
def running(
    models: Path,
    /,
    *,
    files: int | None = None,
    program: str = "",
    patches: Mapping[str, object] | None = None,
    **settings: object,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of the service and its address.

    Args:
        models: folder of its models.
        files: how many it may open.
        program: what starts it instead.
        patches: values of constants, by the names of their modules.
        settings: of the service.
    """
    # A machine that does much else may need longer for a request than the service grants by itself.
    settings = {"models_dir": models, "port": free_port(), "request_timeout": 100} | settings
    started = command(**settings)
    if files is not None:
        started["args"] = ["sh", "-c", f'ulimit -S -n {files} && exec "$@"', "sh", *started["args"]]
    if patches:
        lines = [f"import {name.rpartition('.')[0]}; {name} = {value!r}" for name, value in patches.items()]
        program = "\n".join([*lines, "import sys; from service.__main__ import main; sys.exit(main())"])
    if program:
        started["args"] = [sys.executable, "-c", program]
    process = subprocess.Popen(**started)
    url = f"http://127.0.0.1:{settings['port']}"
    try:
        deadline = time.monotonic() + NEEDED_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if listens(url):  # a question of httpx at each look would take a good part of a core
                with suppress(httpx.TransportError):
                    httpx.get(f"{url}/health/ready")
                    break
            time.sleep(0.02)
        else:
            assert process.poll() is not None, "the service does not listen"
        yield process, url
    finally:
        process.kill()
        process.communicate()


def address_of(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + NEEDED_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"not within {NEEDED_SECONDS:g} s: {what}"
        time.sleep(0.05)


def failed(**settings: object) -> tuple[int, list[str]]:
    """Exit code and the lines that a start-up which must fail leaves."""
    done = subprocess.run(**command(**settings), timeout=NEEDED_SECONDS, check=False)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()


def listens(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address_of(url)) == 0


def raw(url: str, *parts: bytes) -> bytes:
    """Send bytes to a service, as far as it listens; the bytes that come back until it closes."""
    said = b""
    with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
        with suppress(OSError):
            for part in parts:
                connection.sendall(part)
        with suppress(OSError):
            while part := connection.recv(65536):
                said += part
    return said


def question(*lines: str, method: str = "POST", close: bool = True) -> bytes:
    body = json.dumps(BODY).encode()
    head = [f"{method} /similarity HTTP/1.1", "host: a", "content-type: application/json", *lines]
    head += [f"content-length: {len(body)}", *(["connection: close"] if close else [])]
    return "\r\n".join([*head, "", ""]).encode() + body
