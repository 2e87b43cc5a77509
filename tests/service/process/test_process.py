"""`python -m service` as an operator meets it: a real process, a real socket, signals and exit codes."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.harness import fakes
from tests.harness.process import BODY, ROOT, address_of, command, failed, listens, question, running, until
from tests.harness.service import NEEDED_SECONDS, RedisServer, free_port


def test_what_is_open_at_sigterm_is_answered_before_a_clean_end(models: Path) -> None:
    """A request whose body is on its way."""
    with running(models) as (process, url):
        idle = http.client.HTTPConnection(url.removeprefix("http://"))
        with closing(idle), socket.create_connection(address_of(url)) as halfway:

            def ask() -> str | None:
                idle.request("POST", "/similarity", json.dumps(BODY), {"content-type": "application/json"})
                answer = idle.getresponse()
                assert (answer.status, answer.getheader("server")) == (200, None)
                assert answer.read()
                return answer.getheader("connection")

            assert [ask() for _ in range(3)] == [None] * 3  # over one connection
            assert httpx.get(f"{url}/docs").status_code == 200
            halfway.sendall(question()[:-5])
            assert ask() is None  # the service has read the half: the loop takes what came first
            process.send_signal(signal.SIGTERM)
            until(lambda: not listens(url), "it does not listen any more")
            halfway.sendall(question()[-5:])
            assert halfway.recv(65536).startswith(b"HTTP/1.1 200 OK")
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
        assert process.returncode == 0
    events = [json.loads(line) for line in errors.splitlines()]
    assert {event["level"] for event in events} == {"info"}
    messages = [event["message"] for event in events]
    # The default model of /similarity and /rank; the others are opened when a request asks for them.
    opened = [event["model"] for event in events if event["message"] == "model opened"]
    assert opened == ["avg-paraphrase"]
    assert "starting" in messages
    assert "Traceback" not in errors


def test_sigterm_while_the_models_are_opened_ends_it_well(models: Path) -> None:
    process = subprocess.Popen(**command(models_dir=models, port=free_port()))
    assert process.stderr is not None
    process.stderr.readline()  # the first model is open
    process.terminate()
    _, errors = process.communicate(timeout=NEEDED_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_the_service_is_unready_before_it_stops_listening(models: Path) -> None:
    with running(models, drain_seconds=1000) as (process, url):
        assert httpx.get(f"{url}/health/ready").status_code == 200
        process.send_signal(signal.SIGTERM)
        until(lambda: httpx.get(f"{url}/health/ready").status_code != 200, "it is unready")
        unready = httpx.get(f"{url}/health/ready")
        assert (unready.status_code, unready.json()["reasons"]) == (503, ["shutting down"])
        answered = httpx.post(f"{url}/similarity", json=BODY)
        assert (answered.status_code, answered.headers["connection"]) == (200, "close")
        process.send_signal(signal.SIGTERM)  # enough of that
        process.wait(NEEDED_SECONDS)


LET_IN = 10


@pytest.fixture(scope="module")
def limited(models: Path) -> Iterator[str]:
    """Where a service with small limits listens."""
    limits = {"max_body_bytes": 1000, "max_in_flight": LET_IN}
    with running(models, cors_origins="https://a.example", **limits) as (_, url):
        yield url


def test_a_body_over_the_limit_is_answered_and_the_service_goes_on(limited: str) -> None:
    with socket.create_connection(address_of(limited)) as connection:
        connection.sendall(b"POST /similarity HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    with socket.create_connection(address_of(limited)) as connection:
        connection.sendall(b"POST /similarity HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    with httpx.Client(base_url=limited) as client:
        for _ in range(2):
            response = client.post("/similarity", content=b" " * 500_000)
            assert response.status_code == 413
            assert response.json()["error"]["limit"] == 1000
        assert client.post("/similarity", json=BODY).status_code == 200


def test_of_a_burst_as_many_are_answered_as_are_let_in(limited: str) -> None:
    """Those that are refused must make room for the others of the same turn of the event loop."""
    address = limited.removeprefix("http://")
    with ExitStack() as stack:
        connections = [
            stack.enter_context(closing(HTTPConnection(address, timeout=NEEDED_SECONDS))) for _ in range(6 * LET_IN)
        ]
        for _ in range(5):
            for connection in connections:
                connection.request("POST", "/similarity", json.dumps(BODY))
            responses = [connection.getresponse() for connection in connections]
            assert all(response.read() for response in responses)
            statuses = [response.status for response in responses]
            assert set(statuses) <= {200, 429}
            assert statuses.count(200) >= LET_IN
    with httpx.Client(base_url=limited) as client:  # what is answered before the door counts too
        ask_first = {"origin": "https://a.example", "access-control-request-method": "POST"}
        for _ in range(2 * LET_IN):
            assert client.options("/similarity", headers=ask_first).status_code == 200
        assert client.post("/similarity", json=BODY).status_code == 200


def test_misspelt_and_earlier_names_are_warned_of_and_a_missing_folder_ends_it_with_one_line(tmp_path: Path) -> None:
    code, lines = failed(models_dir=tmp_path / "nowhere", apikey=3, redis_ttl_seconds=3)
    assert code == 3
    said = [(event["level"], event["message"]) for event in map(json.loads, lines)]
    missing = f"cannot start: SEMBLANCE_MODELS_DIR: {tmp_path}/nowhere: No such file or directory"
    assert said[-1] == ("critical", missing)
    warnings = [
        "SEMBLANCE_APIKEY is not a setting; see --help-settings",
        "SEMBLANCE_REDIS_TTL_SECONDS is not a setting; see --help-settings",
    ]
    assert sorted(said[:-1]) == [("warning", message) for message in warnings]


@pytest.mark.parametrize("host", ["nowhere.invalid", "bad..host"])
def test_a_host_without_an_address_is_named(models: Path, host: str) -> None:
    code, lines = failed(models_dir=models, host=host)
    assert (code, len(lines)) == (2, 1)
    assert lines[0].startswith(f"SEMBLANCE_HOST: {host!r} has no address")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_in_use_ends_it(models: Path, workers: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, lines = failed(models_dir=models, port=port, workers=workers)
    assert code == 3
    assert any("Address already in use" in line for line in lines)
    assert f"cannot listen at http://127.0.0.1:{port}" in lines[-1]


def is_dual() -> bool:
    """Whether who listens at all addresses of IPv6 listens at those of IPv4 too, unless he says otherwise."""
    try:
        with socket.socket(socket.AF_INET6) as listening:
            listening.bind(("::", 0))
            return not listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    except OSError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.skipif(not is_dual(), reason="IPv6 is off, or net.ipv6.bindv6only is set")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too(models: Path, workers: int) -> None:
    with running(models, host="::", workers=workers) as (_, url):
        assert httpx.get(f"http://127.0.0.1:{address_of(url)[1]}/health/live").status_code == 200


def endless(root: Path) -> None:
    """A model whose graph never ends when it is asked of a word that no golden pair has."""
    fakes.cosine_model(root / "avg-paraphrase")
    fakes.repeating_encoder(root / "avg-paraphrase" / "encoder.onnx", 2**40)
    fakes.sign(root / "avg-paraphrase", "encoder.onnx")


ENDLESS = {"pairs": [{"a": fakes.REPEATS, "b": fakes.REPEATS}]}


def test_a_graph_that_never_ends_keeps_neither_the_event_loop_nor_the_process(tmp_path: Path) -> None:
    """Its golden pairs took microseconds."""
    endless(tmp_path)
    soon = {"shutdown_grace_seconds": 1, "request_timeout": 1, "drain_seconds": 0}
    with running(tmp_path, **soon) as (process, url):
        assert httpx.post(f"{url}/similarity", json=BODY).status_code == 200
        assert httpx.post(f"{url}/similarity", json=ENDLESS, timeout=NEEDED_SECONDS).status_code == 503
        assert httpx.get(f"{url}/health/live").status_code == 200
        process.terminate()
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
        assert process.returncode == 0
        assert "a graph does not end" in errors


def test_a_process_that_ends_tells_those_whose_bodies_have_not_come_and_logs_no_fault(models: Path) -> None:
    with running(models, shutdown_grace_seconds=1, drain_seconds=0) as (process, url):
        with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as halfway:
            halfway.sendall(b"POST /embed HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n")
            halfway.sendall(b"Content-Length: 100000\r\n\r\n{")
            assert httpx.get(f"{url}/docs").status_code == 200  # the loop takes what came first
            process.terminate()
            answer = b"".join(iter(lambda: halfway.recv(65_536), b""))
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
        assert process.returncode == 0
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "shutting_down"
        assert "Exception" not in errors


_OPENS = """
import sys
from service.__main__ import main
from service.models.opener import Opener

def proving(self, model, _open=Opener.open):
    print("begun", flush=True)
    return _open(self, model)

Opener.open = proving
sys.exit(main([]))
"""


def test_a_graph_that_never_ends_does_not_keep_a_process_that_starts(tmp_path: Path) -> None:
    endless(tmp_path)
    fakes.golden_of(tmp_path / "avg-paraphrase", fakes.REPEATS, fakes.REPEATS)
    started = command(models_dir=tmp_path, port=free_port())
    process = subprocess.Popen(**started | {"args": [sys.executable, "-c", _OPENS]})
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.terminate()
    _, errors = process.communicate(timeout=NEEDED_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in errors


_CHECKS = """
import sys, time
from service.__main__ import main
from service.models import checks
from service.process import serving

def round_(self):
    print("begun", flush=True)
    time.sleep(1)
    print("ended", flush=True)

checks.CHECK_SECONDS, checks.HealthChecker._round, serving._THREAD_SECONDS = 0.0, round_, 240.0
sys.exit(main([]))
"""


def test_a_check_under_way_ends_before_the_process(models: Path) -> None:
    """It runs graphs: coming back from one when Python is gone, its thread would abort the process."""
    with running(models, program=_CHECKS, shutdown_grace_seconds=1, drain_seconds=0) as (process, _):
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        said, _ = process.communicate(timeout=NEEDED_SECONDS)
        assert process.returncode == 0
        assert said.count("ended") == said.count("begun") + 1


ASKED = r"curl 127\.0\.0\.1:8000(/\S+) -H 'content-type: application/json' -d '(.+?)'"


def test_the_questions_of_two_pages_leave_vectors_in_redis(redis_server: RedisServer) -> None:
    """Where a Redis is named, and nothing else is set."""
    pages = [Path(ROOT, name).read_text("utf-8") for name in ("README.md", "docs/claims.md")]
    questions = [found for page in pages for found in re.findall(ASKED, page, re.DOTALL)]
    assert {path for path, _ in questions} == {"/rank", "/claims"}
    with running(ROOT / "models", redis_url=redis_server.url) as (_, url), redis_server.client() as kept:
        for path, body in questions:
            before = kept.dbsize()
            asked = httpx.post(f"{url}{path}", content=body, headers={"content-type": "application/json"}, timeout=None)
            assert asked.status_code == 200, asked.text
            # Vectors are written after the answer.
            until(lambda before=before: kept.dbsize() > before, f"there are those of {path}")  # type: ignore[misc]


@pytest.mark.parametrize("workers", [1, 2])
def test_hundreds_of_connections_may_wait_to_be_accepted(models: Path, workers: int) -> None:
    """Of those for which the kernel has no room, each would be tried again a second later."""
    number = min(300, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    with running(models, workers=workers) as (process, url), ExitStack() as opened:
        address = address_of(url)
        pids = [process.pid, *(int(pid) for pid in children_of(process.pid))]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            waiting = [opened.enter_context(closing(socket.socket())) for _ in range(number)]
            for each in waiting:
                each.settimeout(0.5)
                each.connect(address)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("workers", [1, 2])
def test_with_closed_standard_streams_it_serves_and_ends(models: Path, tmp_path: Path, workers: int) -> None:
    asked = command(models_dir=models, port=free_port(), workers=workers)
    shell = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *asked["args"]]  # type: ignore[misc]
    process = subprocess.Popen(shell, cwd=asked["cwd"], env=asked["env"])  # type: ignore[call-overload]
    url = f"http://127.0.0.1:{asked['env']['SEMBLANCE_PORT']}"  # type: ignore[index]
    until(lambda: listens(url) and httpx.get(f"{url}/health/ready").status_code == 200, "it serves")
    process.terminate()
    assert process.wait(NEEDED_SECONDS) == 0


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_one_process_ignores_what_only_several_workers_can_do(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGUSR2, and another service's folder of metrics."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "nowhere"))
    with running(models) as (process, url):
        process.send_signal(signal.SIGUSR2)
        assert httpx.get(f"{url}/metrics").status_code == 200
        process.terminate()
        _, errors = process.communicate(timeout=NEEDED_SECONDS)
        assert process.returncode == 0
    (warning,) = [event for event in map(json.loads, errors.splitlines()) if event["level"] == "warning"]
    assert "SEMBLANCE_WORKERS > 1" in warning["message"]
