"""`make bench`: what is asked, what is sent, and what its table says."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.beside import INFINITY, OURS, WANTED, Figure, infinity, lines_of, ours, plain
from benchmarks.loads import LOADS, Sent, send


def test_known_answers_are_known_and_questions_new() -> None:
    known, new = list(LOADS.values())[:2]
    first, second = known(), known()
    assert first.texts == second.texts != new().texts
    assert first.query != second.query
    assert (len(first.texts), len(new().texts)) == (125, 125)


def test_the_same_texts_reach_every_server() -> None:
    for make in LOADS.values():
        ask = make()
        own, theirs, app = (json.loads(body) for _, body in (ours(ask), infinity(ask), plain(ask)))
        sent = [own["query"], *own["candidates"]] if ask.query else [p[k] for p in own["pairs"] for k in ("a", "b")]
        assert sent == theirs["input"]
        assert sent[bool(ask.query) :] == app["texts"]


class Slow(BaseHTTPRequestHandler):
    """Answers with 200 after 50 ms; 404 for /nowhere."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.05)
        self.send_response(404 if self.path == "/nowhere" else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def port():
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def test_a_request_waits_until_it_is_due_and_counts_from_then(port: int) -> None:
    # All due at once over one connection: each waits for those before it.
    closed = send(port, [("/", b"{}")] * 4, [0.0] * 4, 1)
    assert sorted(closed.latencies) == closed.latencies
    assert closed.latencies[-1] >= 0.2
    assert send(port, [("/", b"{}")] * 2, [0.0, 0.3], 2).seconds >= 0.35


def test_what_begins_too_late_is_not_sent(port: int) -> None:
    assert 1 <= len(send(port, [("/", b"{}")] * 100, [0.0] * 100, 1, seconds=0.2).latencies) <= 5


def test_an_answer_that_is_no_200_ends_the_load(port: int) -> None:
    with pytest.raises(RuntimeError, match="/nowhere answered 404"):
        send(port, [("/nowhere", b"{}")] * 3, [0.0] * 3, 2)


def test_a_percentile_is_one_that_was_measured() -> None:
    sent = Sent([float(n) for n in range(1, 101)], 1.0)
    assert (sent.percentile(50), sent.percentile(99), sent.percentile(100)) == (50.0, 99.0, 100.0)
    assert Sent([3.0], 1.0).percentile(1) == 3.0


def test_verdicts_are_of_the_medians() -> None:
    load = "duplicates: 64 new pairs"
    assert WANTED[load] == 2.5
    times = {OURS: (1.0, 2.0, 9.0), INFINITY: (3.0, 2.0, 1.0)}
    lines = lines_of([Figure(load, server, 0.5, each) for server, found in times.items() for each in found])
    assert lines[2] == f"| {load} | ours | 500.0 | 2000.0 |  | 1.00 x as fast, wanted 2.5: missed |"
    alone = lines_of([Figure(load, OURS, 0.5, 1.0)])
    assert alone[2] == f"| {load} | ours | 500.0 | 1000.0 |  |  |"
    fast = lines_of([Figure(load, OURS, 0.5, 1.0), Figure(load, INFINITY, 0.5, 2.5)])
    assert fast[2].endswith("| 2.50 x as fast, wanted 2.5: reached |")
    half = "mix at half of what is reached"
    ends = {OURS: (2.0, 24.0), INFINITY: (3.0, 2.0)}
    lines = lines_of([Figure(half, server, 0.1, 0.1, 1.0, p99, rate, 7.6) for server, (p99, rate) in ends.items()])
    said = "12.0 x as many, p99 : p50 2.0, infinity's 3.0; wanted 12 x as many: reached"
    assert lines[2].endswith(f"| 24.00/s: 1.00 s, 2.00 s, 8 x | {said} |")
