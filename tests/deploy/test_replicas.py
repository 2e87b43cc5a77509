"""The proxy before the replicas: its configuration, and what deploy/replicas.sh says where it cannot run."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from service.settings import Settings
from tests.harness.service import free_port

ROOT = Path(__file__).resolve().parents[2]
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="apt-get install haproxy")
CONFIGURATION = (ROOT / "deploy/haproxy.cfg").read_text()


def seconds(name: str) -> int:
    (found,) = re.findall(rf"^\s*timeout {name} (\d+)s", CONFIGURATION, re.MULTILINE)
    return int(found)


@needs_haproxy
def test_haproxy_reads_it() -> None:
    run = subprocess.run(
        ["haproxy", "-c", "-f", "deploy/haproxy.cfg"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_service_never_closes_first_and_is_never_given_up_first() -> None:
    settings = Settings.model_fields
    assert seconds("http-keep-alive") < settings["keep_alive_seconds"].default
    assert seconds("server") > settings["request_timeout"].default + settings["max_queue_seconds"].default


class Replica(BaseHTTPRequestHandler):
    """Ready, and answers every request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


class Killed(Replica):
    """Ready still, but each request finds it killed: its connection ends before any answer."""

    def do_POST(self) -> None:
        self.close_connection = True


@contextmanager
def proxy(tmp_path: Path, *replicas: type[Replica]) -> Iterator[int]:
    """HAProxy's port, with the project's file but for addresses."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), replica) for replica in replicas]
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    port, file = free_port(), tmp_path / "haproxy.cfg"
    lines = "\n    ".join(f"server {at} 127.0.0.1:{server.server_port}" for at, server in enumerate(servers))
    text = re.sub(r"^resolvers.*?\n\n", "", CONFIGURATION, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"server-template .*", lines, text).replace("bind :8000", f"bind 127.0.0.1:{port}")
    file.write_text(text)
    with subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.01)
            yield port
        finally:
            process.kill()
            for server in servers:
                server.shutdown()
                server.server_close()


@needs_haproxy
def test_a_request_whose_replica_is_killed_goes_to_the_other_though_its_body_came_late(tmp_path: Path) -> None:
    """Most clients send head and body apart; HAProxy sends nothing a second time that it passed on in parts."""
    answers = []
    with proxy(tmp_path, Killed, Replica) as port:
        for _ in range(4):  # two are for the one that is killed
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"POST /similarity HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n")
                time.sleep(0.05)  # long enough for HAProxy to pass the head on, if it did
                client.sendall(b"body")
                answers.append(client.recv(4096).split(b"\r\n")[0])
    assert answers == [b"HTTP/1.1 200 OK"] * 4
