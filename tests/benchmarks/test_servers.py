import sys
import time

import pytest

from benchmarks.servers import Server, free_port


def test_resources_count_child_processes() -> None:
    port = free_port()
    one = f"from http.server import *; s = HTTPServer(('127.0.0.1', {port}), SimpleHTTPRequestHandler);"
    child = "import sys; x = bytearray(50_000_000); sys.stdin.read()"
    two = f"import subprocess, sys; c = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE);"
    with Server([sys.executable, "-c", f"{one} s.serve_forever()"], port) as server:
        alone = server.resources()
        assert server.settled()
        assert server.cpu_seconds() > 0
    with Server([sys.executable, "-c", f"{one} {two} s.serve_forever()"], port) as server:
        until = time.monotonic() + 60
        while (together := server.resources()).resident_mb < alone.resident_mb + 40 and time.monotonic() < until:
            time.sleep(0.05)
        assert together.resident_mb > alone.resident_mb + 40
        assert together.peak_mb >= together.resident_mb
        assert together.threads > alone.threads
        assert alone.files > 0


def test_a_server_is_started_answers_settles_and_ends() -> None:
    port = free_port()
    with Server([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], port) as server:
        assert server.get("/")[0] == 200
        assert server.get("/nowhere")[0] == 404
        assert server.settled()
        assert len(server.pids()) == 1
    with pytest.raises(OSError, match="refused"):
        server.get("/")


def test_a_server_that_ends_tells_its_last_output() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        Server([sys.executable, "-c", "import sys; sys.exit('no such thing')"], free_port()).start()
