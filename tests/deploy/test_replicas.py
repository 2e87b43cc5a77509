"""The proxy before the replicas: its configuration, and what deploy/replicas.sh says where it cannot run."""

import re
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from service.process.config import KEEP_ALIVE_SECONDS
from service.settings import Settings
from tests.harness.process import ROOT, address_of
from tests.harness.proxy import CONFIGURATION, needs_haproxy, proxy
from tests.harness.service import NEEDED_SECONDS


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
    assert seconds("http-keep-alive") < KEEP_ALIVE_SECONDS
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
def answering(*replicas: type[Replica]) -> Iterator[list[int]]:
    """The ports of servers that answer so."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), replica) for replica in replicas]
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [server.server_port for server in servers]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@needs_haproxy
def test_a_request_whose_replica_is_killed_goes_to_the_other_though_its_body_came_late(tmp_path: Path) -> None:
    """Most clients send head and body apart; HAProxy sends nothing a second time that it passed on in parts."""
    answers = []
    with answering(Killed, Replica) as ports, proxy(tmp_path, *ports) as url:
        for _ in range(4):  # two are for the one that is killed
            with socket.create_connection(address_of(url)) as client:
                client.sendall(b"POST /similarity HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n")
                time.sleep(0.05)  # long enough for HAProxy to pass the head on, if it did
                client.sendall(b"body")
                answers.append(client.recv(4096).split(b"\r\n")[0])
    assert answers == [b"HTTP/1.1 200 OK"] * 4


ASKED = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


@needs_haproxy
def test_an_address_opens_so_many_connections_and_a_head_takes_so_long(tmp_path: Path) -> None:
    limits = {"timeout_http__request": "300ms", "sc0_conn_cur_gt": "5"}
    with answering(Replica) as ports, proxy(tmp_path, *ports, **limits) as url, ExitStack() as stack:
        theirs = [
            stack.enter_context(socket.create_connection(address_of(url), source_address=("127.0.0.2", 0)))
            for _ in range(6)
        ]
        refused, _, _ = select.select(theirs, [], [], NEEDED_SECONDS)  # any of them: HAProxy has several threads
        for each in refused:
            with suppress(ConnectionResetError):
                assert each.recv(100) == b""
            theirs.remove(each)
        assert len(theirs) >= 3  # two that come at once may both be the last
        theirs[0].sendall(ASKED)
        assert theirs[0].recv(100).startswith(b"HTTP/1.1 200")
        theirs[1].sendall(b"GET / HT")
        assert theirs[1].recv(100).startswith(b"HTTP/1.1 408")
        with socket.create_connection(address_of(url)) as mine:
            mine.sendall(ASKED)
            assert mine.recv(100).startswith(b"HTTP/1.1 200")
