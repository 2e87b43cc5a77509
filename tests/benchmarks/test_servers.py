import os
import subprocess
import sys

import pytest

from benchmarks.closed_loop import read
from benchmarks.servers import Server, cpu_seconds, family, free_port, resources


def test_what_wrk_says_is_read() -> None:
    line = '{"requests": 1000, "seconds": 2.0, "refused": 100, "broken": 3}'
    found = read(f"Running 2s test\n  1 threads and 16 connections\n{line}\n")
    assert (found.rate, found.seconds, found.refused, found.broken) == (450.0, 2.0, 100, 3)


def test_resources_count_child_processes() -> None:
    alone = resources(family(os.getpid()))
    code = "x = bytearray(50_000_000); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        together = resources(family(os.getpid()))
        child.communicate("\n")
    assert together.resident_mb > alone.resident_mb + 40
    assert together.peak_mb >= together.resident_mb
    assert together.processes == alone.processes + 1
    assert together.threads > alone.threads
    assert alone.files > 0
    assert cpu_seconds(family(os.getpid())) > 0


def test_a_server_is_started_answers_settles_and_ends() -> None:
    port = free_port()
    with Server([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], port) as server:
        assert server.get("/")[0] == 200
        assert server.get("/nowhere")[0] == 404
        assert server.settled()
        assert server.resources().processes == 1
    assert not server.running()
    with pytest.raises(OSError, match="refused"):
        server.get("/")


def test_a_server_that_ends_tells_its_last_output() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        Server([sys.executable, "-c", "import sys; sys.exit('no such thing')"], free_port()).start()
