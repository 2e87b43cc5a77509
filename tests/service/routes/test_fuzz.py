"""Bytes that no client of good will sends, against a real process on a real socket.

Whatever comes: no 5xx, each error in the shape of the dialect that was asked, a process that goes on answering, and
memory that stays where it was. The bytes come from a seed. `TEST_EFFORT` makes it many times as many, from another seed
each time, which a failure names: see `tests/harness/effort.py`.
"""

import json
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httptools
import httpx
import pytest

from service.http.connection import MAX_HEAD_BYTES, MAX_HEADERS
from tests.harness.dialects import OURS as OWN_ERRORS
from tests.harness.dialects import REQUESTS
from tests.harness.effort import EFFORT
from tests.harness.process import address_of, running
from tests.harness.requests import GOOD
from tests.harness.service import NEEDED_SECONDS

SEED = 20_261_122 if EFFORT == 1 else time.time_ns()
MESSAGES = 120 * EFFORT
SECONDS = 0.5  # that a request may take to arrive
MB = 1_000_000
MAY_GROW = 64 * MB  # of resident memory: arenas of the allocator, nothing that grows with what is sent

OURS = frozenset({"error.code", "error.message", "error.field", "error.limit", "error.request_id"})
ANY_SHAPE = {OURS} | {each.errors.leaves for each in REQUESTS.values() if each.errors is not OWN_ERRORS}
TYPES = [
    "application/json", "application/json; charset=utf-16", "application/vnd.api+json", "text/plain", "", "json", "*/*",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json\t;", "application/" * 500,
]  # fmt: skip


class Answer(NamedTuple):
    """A response as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture(scope="module")
def served(models: Path) -> Iterator[str]:
    """Where a process listens; what it writes is read, and at the end it is found to be alive and sane."""
    patches = {"service.process.config.KEEP_ALIVE_SECONDS": 2}
    with running(models, request_timeout=SECONDS, max_body_bytes=MB, patches=patches) as (process, url):
        lines: list[str] = []
        assert process.stderr is not None
        reader = threading.Thread(target=lines.extend, args=(process.stderr,))  # a full pipe would stop the process
        reader.start()
        try:
            yield url
            assert process.poll() is None
        finally:
            process.kill()
            reader.join()
        for line in lines:
            assert json.loads(line)["level"] in ("info", "warning"), line
            assert "Traceback" not in line


@pytest.fixture
def watched(served: str) -> Iterator[str]:
    """The process, which after the test must answer as before it and hold no more memory than it did."""
    with httpx.Client(base_url=served) as client:
        good = {path: client.post(path, json=body).json() for path, body in GOOD.items()}
        before = memory(client)
    yield served
    with httpx.Client(base_url=served) as client:
        assert {path: client.post(path, json=body).json() for path, body in GOOD.items()} == good
        assert client.get("/health/ready").json()["status"] == "ready"
        assert memory(client) - before < MAY_GROW


def memory(client: httpx.Client) -> float:
    """Resident bytes of the process that answers."""
    found = re.search(r"^process_resident_memory_bytes (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def check(status: int, content_type: str, body: bytes, shapes: set[frozenset[str]]) -> None:
    """An answer, or an error of one of these shapes: either of them JSON, and no fault of the service's."""
    assert status < 500 or (status == 503 and b"no answer within" in body)  # a machine that does much else
    assert content_type == "application/json"
    content = json.loads(body, parse_constant=_not_json)
    if status != 200:
        assert status >= 400
        assert frozenset(leaves(content)) in shapes


def _not_json(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def leaves(content: Any, path: str = "") -> Iterator[str]:
    """Paths of all that is no object itself."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path


def flipped(rng: random.Random, data: bytes) -> bytes:
    """A few bits turned over."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def spliced(rng: random.Random, data: bytes) -> bytes:
    """Some bytes taken out, and others put in."""
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(0, 10))
    return data[:start] + rng.randbytes(rng.randint(0, 10)) + data[end:]


def post(body: bytes = b"", *headers: bytes, path: bytes = b"/similarity", first: bytes = b"") -> bytes:
    """A request, with no header that is not given but Host."""
    return b"\r\n".join([first or b"POST %s HTTP/1.1" % path, b"host: x", *headers, b"", body])


def sized(body: bytes, *headers: bytes, path: bytes = b"/similarity") -> bytes:
    """A request with the length it has."""
    return post(body, b"content-length: %d" % len(body), *headers, path=path)


GOOD_BODY = json.dumps(GOOD["/similarity"]).encode()
CHUNKED = b"transfer-encoding: chunked"
IN_CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD_BODY), GOOD_BODY)
WHOLE = sized(GOOD_BODY)
WEBSOCKET = (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: eA==")
ODD_LENGTHS = [b"-1", b"1e3", b"0x10", b"+5", b"", b"9" * 40, b"1, 2"]
ODD_LINE_ENDS = [b";x=" + b"y" * 9000 + b"\r\n", b"\n", b"\r", b"\r\n\r\n"]
ODD_ENCODINGS = [b"gzip, chunked", b"chunked, x", b"x", b"", b"Chunked"]
ODD_HEADERS = [b"no colon", b" x: folded", b": y", b"x : y", b"x\0: y", b"x: \0", b"\xff: \xff", b"x: a\rb"]
ODD_PLACES = [
    b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/models%00", b"/%ff%fe", b"/%c0%ae", b"/%", b"/models?%ff=%z",
    b"http://x/models", b"http://x", b"x:80", b"*", b"//models", b"/models#x", b"/" + b"a" * 50_000, b"/\xff", b"?",
    b"/v1/models/%2e%2e", b"/v1/models/%F0%9F%98%80", b"/v1/models/" + b"a/" * 500, b"/tei/info?model=%00",
    b"/docs/../x", b"/ /",
]  # fmt: skip
MESSAGES_OF: list[Callable[[random.Random], bytes]] = [
    lambda rng: rng.randbytes(rng.randint(1, 2000)),
    lambda rng: flipped(rng, WHOLE),
    lambda rng: spliced(rng, WHOLE),
    lambda rng: flipped(rng, post(IN_CHUNKS, CHUNKED)),
    lambda rng: WHOLE[: rng.randrange(1, len(WHOLE))],
    # lengths
    lambda rng: post(GOOD_BODY, b"content-length: %d" % rng.randint(0, 2 * len(GOOD_BODY))),
    lambda rng: post(GOOD_BODY, b"content-length: " + rng.choice(ODD_LENGTHS)),
    lambda rng: post(GOOD_BODY, b"content-length: 5", b"content-length: %d" % rng.randint(4, 6)),
    lambda rng: post(IN_CHUNKS, CHUNKED, b"content-length: %d" % rng.randint(0, 99)),
    lambda rng: post(GOOD_BODY),
    # chunks
    lambda rng: post(rng.choice([b"", b"-", b"0x", b"g", b"F" * 17, b"7" * 400]) + IN_CHUNKS, CHUNKED),
    lambda rng: post(IN_CHUNKS.replace(b"\r\n", rng.choice(ODD_LINE_ENDS), 1), CHUNKED),
    lambda rng: post(b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD_BODY) + b"0\r\n\r\n", CHUNKED),
    lambda rng: post(IN_CHUNKS[:-2] + b"x: y\r\n" * rng.choice([1, 5000]) + b"\r\n", CHUNKED, b"trailer: x"),
    lambda rng: post(IN_CHUNKS, b"transfer-encoding: " + rng.choice(ODD_ENCODINGS)),
    # headers
    lambda rng: sized(GOOD_BODY, *[b"x-%d: y" % i for i in range(rng.choice([100, 3000]))]),
    lambda rng: sized(GOOD_BODY, b"x: " + b"y" * rng.choice([9000, 60_000])),
    lambda rng: sized(GOOD_BODY, rng.choice(ODD_HEADERS)),
    lambda rng: sized(GOOD_BODY, b"x-request-id: " + rng.randbytes(8).hex().encode() * rng.choice([1, 9])),
    lambda rng: sized(GOOD_BODY, b"content-type: " + rng.choice(TYPES).encode()),
    lambda rng: sized(GOOD_BODY, b"content-encoding: " + rng.choice([b"gzip", b"identity", b"br, gzip", b""])),
    lambda rng: sized(GOOD_BODY, b"expect: " + rng.choice([b"100-continue", b"200-ok"])),
    lambda rng: sized(GOOD_BODY, b"authorization: " + rng.randbytes(20).replace(b"\n", b"").replace(b"\r", b"")),
    lambda rng: sized(GOOD_BODY, *WEBSOCKET),
    lambda rng: post(b"", *WEBSOCKET, first=b"GET / HTTP/1.1"),
    lambda rng: sized(GOOD_BODY, b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABk"),
    # request lines
    lambda rng: post(first=b"%s /models HTTP/1.1" % rng.choice([b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"BREW"])),
    lambda rng: post(first=b"GET /models HTTP/" + rng.choice([b"0.9", b"1.0", b"1.2", b"2.0", b"9.9", b"1.1 x", b"x"])),
    lambda rng: post(first=b"GET /models"),
    lambda rng: post(first=b"GET %s HTTP/1.1" % rng.choice(ODD_PLACES)),
    lambda rng: post(first=b"CONNECT x:80 HTTP/1.1"),
    lambda rng: post(first=b"OPTIONS * HTTP/1.1"),
    lambda rng: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(40),
    lambda rng: bytes.fromhex("16030100a5010000a10303") + rng.randbytes(160),  # whoever speaks TLS here
    lambda rng: b"\r\n" * rng.randint(1, 5000) + WHOLE,
    lambda rng: WHOLE.replace(b"\r\n", b"\n"),
    # several at once
    lambda rng: WHOLE * rng.randint(2, 30),
    lambda rng: WHOLE + rng.randbytes(50) + WHOLE,
]  # fmt: skip


class _Parsed:
    """Responses out of a stream of bytes."""

    def __init__(self, data: bytes) -> None:
        self.answers: list[Answer] = []
        self._headers: dict[str, str] = {}
        self._body = b""
        self._parser = httptools.HttpResponseParser(self)
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._headers, self._body = {}, b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status != 100:
            self.answers.append(Answer(status, self._headers, self._body))


def say(url: str, *parts: bytes, pause: float = 0.0) -> list[Answer]:
    """Send, and read until the other side closes: it does so in the end, whatever it was told."""
    with closing(socket.create_connection(address_of(url), timeout=NEEDED_SECONDS)) as connection:
        with suppress(ConnectionError):  # it need not read what it refuses
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
        received = b""
        with suppress(ConnectionError):
            while data := connection.recv(65536):
                received += data
    return _Parsed(received).answers


def in_shape(answers: list[Answer]) -> bool:
    """Whether each answer is one, or an error in some dialect's shape; all of them JSON but the playground."""
    for answer in answers:
        if answer.status == 200 and answer.body.startswith(b"<!doctype html>"):
            continue
        check(answer.status, answer.headers["content-type"].partition(";")[0], answer.body, ANY_SHAPE)
    return True


LAST = post(b"", b"connection: close", first=b"GET /health/live HTTP/1.1")  # whoever understands it, hangs up after it


def test_any_bytes_are_answered_or_refused_in_shape(watched: str) -> None:
    rng = random.Random(SEED)
    messages = [make(rng) for make in MESSAGES_OF]  # each kind at least once
    messages += [rng.choice(MESSAGES_OF)(rng) for _ in range(MESSAGES - len(messages))]

    def ask(i: int) -> set[int]:
        cut = random.Random(SEED + i).randrange(len(messages[i]))
        try:
            answers = say(watched, messages[i][:cut], messages[i][cut:] + LAST)
            assert in_shape(answers)
        except (AssertionError, KeyError, ValueError, OSError, httptools.HttpParserError) as error:
            raise AssertionError(f"seed {SEED}, number {i}: {messages[i][:500]!r}") from error
        return {answer.status for answer in answers}

    with ThreadPoolExecutor(16) as pool:
        seen = set().union(*pool.map(ask, range(len(messages))))
    assert seen >= {200, 400, 404, 405, 415}  # the messages do reach all of them


@pytest.mark.parametrize(
    ("head", "more", "limit"),
    [
        (b"GET /" + b"a" * 1000, b"a" * 1000, MAX_HEAD_BYTES),
        (b"GET / HTTP/1.1\r\nx: ", b"y" * 1000, MAX_HEAD_BYTES),
        (b"GET / HTTP/1.1\r\n", b"x: y\r\n" * 170, MAX_HEADERS),
    ],
    ids=["line", "header", "headers"],
)
def test_a_head_without_end_is_refused_before_it_fills_the_memory(
    watched: str, head: bytes, more: bytes, limit: int
) -> None:
    sent = 0
    with closing(socket.create_connection(address_of(watched), timeout=NEEDED_SECONDS)) as connection:
        connection.sendall(head)
        time.sleep(0.05)
        with suppress(ConnectionError):
            while sent < 50 * MB:
                connection.sendall(more)
                sent += len(more)
    assert sent < 10 * MB  # what the sockets hold on their way is not the service's
    for _ in range(10):
        (answer,) = say(watched, head, *[more] * 70, pause=0.001)
        if answer.status != 408:  # a busy machine may send it too slowly
            break
    assert answer.status == 431
    assert json.loads(answer.body)["error"] | {"request_id": "", "message": ""} == {
        "code": "head_too_large",
        "message": "",
        "field": None,
        "limit": limit,
        "request_id": "",
    }


# What begins a request that does not end, what it goes on with, and the status and code that end it.
ENDLESS = (
    (b"POST /simi", b"l", 408, "head_timeout"),
    (b"POST /similarity HTTP/1.1\r\nhost: x\r\n", b"x: y\r\n", 408, "head_timeout"),
    (post(b"", b"content-length: 1000"), b" ", 408, "body_timeout"),
    (post(b"", CHUNKED), b"1\r\n \r\n", 408, "body_timeout"),
    (b"", b"\r\n", None, None),  # no request was begun
    (b"", b"", None, None),
    (sized(b"{") + post(b"", b"content-length: 2000000"), b" ", 400, "not_json"),
    (post(b"", b"content-length: 2000000"), b" ", 413, "too_large"),
)


def drip_on(url: str, start: bytes, drip: bytes) -> list[Answer]:
    """Begin a request and go on with it until the other side hangs up; what it has said."""
    with closing(socket.create_connection(address_of(url), timeout=NEEDED_SECONDS)) as connection:
        received, gone = b"", threading.Event()

        def listen() -> None:
            nonlocal received
            with suppress(ConnectionError):
                while data := connection.recv(65536):
                    received += data
            gone.set()

        listener = threading.Thread(target=listen)
        listener.start()
        with suppress(ConnectionError):
            connection.sendall(start)
            while not gone.wait(SECONDS / 10):
                connection.sendall(drip)
        listener.join()
    return _Parsed(received).answers


def test_who_never_ends_is_hung_up_on(watched: str) -> None:
    """Many slow ones of every kind at once, while others are answered as ever."""
    kinds = ENDLESS * 5
    with ThreadPoolExecutor(len(kinds)) as pool:
        slow = [pool.submit(drip_on, watched, start, drip) for start, drip, *_ in kinds]
        # One connection a request: between two of them a busy machine may take longer than one is kept.
        once = {"connection": "close"}
        with httpx.Client(base_url=watched, timeout=NEEDED_SECONDS, headers=once) as client:
            while not all(one.done() for one in slow):
                found = client.post("/similarity", json=GOOD["/similarity"])
                check(found.status_code, found.headers["content-type"], found.content, {OURS})
    for one, (start, drip, status, code) in zip(slow, kinds, strict=True):
        answers = one.result()
        assert in_shape(answers)
        if status is None:
            assert answers == []
        else:
            assert (answers[0].status, json.loads(answers[0].body)["error"]["code"]) == (status, code), (start, drip)
