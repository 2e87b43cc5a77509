"""Bytes that a caller sends to cost others something: endless heads and trailers, bodies that go on after a refusal."""

import json
import socket
import time

import pytest

from service.http.connection import MAX_HEAD_BYTES, MAX_HEADERS
from tests.harness.process import BODY, address_of, question, raw
from tests.harness.service import NEEDED_SECONDS

CHUNKED = (
    b"POST /similarity HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)


def rest_of(connection: socket.socket) -> bytes:
    """What comes until it is closed."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def chunks(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n" % (len(body), body)


def test_trailers_are_refused(url: str) -> None:
    answer = raw(url, CHUNKED + chunks(json.dumps(BODY).encode()) + b"a: b\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"trailers are not accepted" in answer


def test_a_trailer_without_end_is_not_collected(url: str) -> None:
    endless = [b"a" * MAX_HEAD_BYTES] * 16  # more than one read of the socket takes
    answer = raw(url, CHUNKED + chunks(b"{"), b"x: ", *endless)
    assert answer.startswith(b"HTTP/1.1 431")


def test_short_headers_are_counted(url: str) -> None:
    own = question().partition(b"\r\n\r\n")[0].count(b"\r\n")
    lines = [f"h{i}: 1" for i in range(MAX_HEADERS - own)]
    assert raw(url, question(*lines)).startswith(b"HTTP/1.1 200")
    answer = raw(url, question(*lines, "one: more"))
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"more than 100 headers" in answer


def test_a_body_may_come_after_a_large_head(url: str) -> None:
    head, _, body = question(f"x-large: {'a' * (MAX_HEAD_BYTES // 2)}").partition(b"\r\n\r\n")
    with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
        connection.sendall(head + b"\r\n\r\n")
        time.sleep(0.1)
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


REFUSED = b"POST /similarity HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n%scontent-length: %d\r\n\r\n"


@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"], ids=["at once", "after it was asked for"])
def test_what_follows_a_refused_body_is_no_request(url: str, expect: bytes) -> None:
    answer = raw(url, REFUSED % (expect, 100_000), question(), question())
    assert answer.startswith(b"HTTP/1.1 415")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_request_is_not_read_as_the_body_that_was_not_asked_for(url: str) -> None:
    """Also where that body is so short that the connection would stay open: who gets no 100 sends the next request."""
    with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
        connection.sendall(REFUSED % (b"expect: 100-continue\r\n", 100))
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 415")
        assert b"\r\nconnection: close\r\n" in answer
        connection.sendall(question())
        rest = rest_of(connection)  # of the answer whose head has come
        assert b"HTTP/1.1" not in rest


def test_an_answer_that_does_not_say_close_leaves_the_connection_open(url: str) -> None:
    with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n")
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 404")
        assert b"connection: close" not in answer.lower()
        connection.sendall(b"{}" + question())
        said = rest_of(connection)
    assert said.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("was", "instead", "status"),
    [
        (b"application/json", b"text/plain", b"415"),
        (b"/similarity", b"/nowhere", b"404"),
        (b"/similarity", b"/models", b"405"),
        (b"POST /similarity", b"GET /models", b"200"),
    ],
)
def test_a_body_that_nobody_reads_in_small_chunks_is_not_parsed(
    url: str, was: bytes, instead: bytes, status: bytes
) -> None:
    head = CHUNKED.replace(was, instead)
    answer = raw(url, head, *[b"40\r\n%s\r\n" % (b"a" * 64) * 2000] * 20, b"0\r\n\r\n" + question())
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_after_a_refusal_nothing_more_is_parsed(url: str) -> None:
    """Pieces of one byte, which would get a second answer, in the middle of the time to read the first."""
    with socket.create_connection(address_of(url), timeout=NEEDED_SECONDS) as connection:
        connection.sendall(CHUNKED.replace(b"application/json", b"text/plain"))
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 415")
        connection.sendall(b"1\r\na\r\n" * MAX_HEAD_BYTES)
        connection.shutdown(socket.SHUT_WR)
        answer += rest_of(connection)
    assert answer.count(b"HTTP/1.1 ") == 1
