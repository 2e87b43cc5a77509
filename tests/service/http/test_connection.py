"""Connections and the bytes on them: accepting, answers in one piece, idle ones."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.harness.process import address_of, question, raw, running
from tests.harness.service import NEEDED_SECONDS

KEEP_ALIVE_SECONDS = "service.process.config.KEEP_ALIVE_SECONDS"

ORIGIN = "https://a.example"


def test_an_answer_is_whole(models: Path, url: str) -> None:
    plain = raw(url, question(close=False), question(f"origin: {ORIGIN}"))
    with running(models, cors_origins=ORIGIN) as (_, named):
        answer = raw(named, question(f"origin: {ORIGIN}", close=False), question())
    for found in (answer, plain):
        first, second = [b"HTTP/1.1 200 OK" + part for part in found.split(b"HTTP/1.1 200 OK")[1:]]
        heads = []
        for one in (first, second):
            head, body = one.split(b"\r\n\r\n")
            lines = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
            headers = dict(lines)
            assert len(headers) == len([name for name, _ in lines if name != b"vary"]) + (b"vary" in headers)
            assert int(headers[b"content-length"]) == len(body)
            assert json.loads(body)["model"]
            assert {b"date", b"content-type", b"x-request-id", b"x-content-type-options", b"server-timing"} <= set(
                headers
            )
            heads.append(headers)
        assert b"connection" not in heads[0]
        assert heads[1][b"connection"] == b"close"
        assert (heads[0].get(b"access-control-allow-origin") == ORIGIN.encode()) == (found is answer)


def test_an_idle_connection_is_kept_and_half_a_head_is_not(models: Path) -> None:
    with running(models, request_timeout=2, patches={KEEP_ALIVE_SECONDS: 1}) as (_, url):
        sent = (b"", b"POST /similarity HT", question(close=False))
        with ThreadPoolExecutor(len(sent)) as threads:  # each waits for a second or two
            silent, halfway, answered = threads.map(lambda said: raw(url, said), sent)
        assert silent == b""  # closed once it has waited for its first request long enough
        assert halfway.startswith(b"HTTP/1.1 408")
        assert answered.startswith(b"HTTP/1.1 200")
        assert answered.count(b"HTTP/1.1") == 1


def test_the_rest_of_a_body_that_is_answered_does_not_shorten_the_time_of_an_idle_connection(models: Path) -> None:
    with ExitStack() as stack:
        _, url = stack.enter_context(running(models, request_timeout=1))
        connection = stack.enter_context(socket.create_connection(address_of(url), timeout=NEEDED_SECONDS))
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        connection.sendall(b"rest")
        time.sleep(1.5)
        connection.sendall(question())
        answers = b""
        while part := connection.recv(65536):
            answers += part
        assert b"HTTP/1.1 200" in answers
