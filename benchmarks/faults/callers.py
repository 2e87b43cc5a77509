"""One hostile caller after another against one process: memory stays bounded, and somebody else is answered."""

import asyncio
import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from statistics import median

from benchmarks.faults.trial import Kind, Trial
from benchmarks.servers import Service

LIMIT_MB = 1024  # of the process, at its peak
TIMES, LEAST_MS = 5.0, 100.0  # others wait no longer than these: times their control, or milliseconds
PROBED = "pwim-sick"  # the model that somebody else asks
THEIRS, MINE = "127.0.0.2", "127.0.0.1"
NUMBERS = count()
TEXT = "the quick brown fox jumps over the lazy dog while an old man plays his guitar by the river and "


def _post(path: str, body: object, *lines: str) -> bytes:
    content = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(content)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + content


def _new(words: int, number: int) -> str:
    return f"{number} " + (TEXT * (words // 20 + 1))[: 6 * words]


HEADERS = b"".join(b"X-%d: %s\r\n" % (i, b"a" * 600) for i in range(95))
CHUNKED = b"POST /similarity HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
HEAD = b"POST /similarity HTTP/1.1\r\nHost: a\r\n"
EXPECTING = HEAD + b"Content-Type: text/plain\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n"
CROSS = {"query": _new(60, 0), "candidates": [_new(100, i) for i in range(30)], "model": "minilm-cross"}
COUNTED = {"documents": "Nine in ten of 3 cost 5 to 7 kg. " * 150, "model": "pwim-general", "encoder": "avg-paraphrase"}
FOREIGN = {"input_type": "classification", "embedding_types": ["float"]}
EXPLAINED = {"a": _new(60, 1), "b": _new(60, 2), "model": "minilm"}
LARGE = _post("/similarity", {"pairs": [], "more": " " * 3_900_000})
LIMITED = "refused bodies of 4 MB, 200 connections"  # for which no time is promised (docs/faults.md)
SHORT = _post("/rank", {"query": "a", "candidates": [str(i) for i in range(10_000)]})
# Name -> connections, and what each sends again and again.
ATTACKS: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "labels times a template of places": (
        4, lambda i: _post("/classify", {"text": "a", "labels": ["a" * 99_000, str(i)], "template": "{}" * 50_000}),
    ),
    "trailers without end": (4, lambda _: CHUNKED + b"\r\n1\r\n{\r\n0\r\n" + b"a: b\r\n" * 200_000),
    "heads of many headers": (150, lambda _: HEAD + b"a: b\r\n" * 40_000),
    "heads without their bodies": (1000, lambda _: HEAD + HEADERS + b"Content-Length: 9\r\n\r\n"),
    "a byte of a body": (1100, lambda _: HEAD + b"Content-Length: 9\r\n\r\n{"),
    "a refused body in bytes": (4, lambda _: CHUNKED + b"Content-Type: text/plain\r\n\r\n" + b"1\r\na\r\n" * 100_000),
    "a body in bytes": (4, lambda _: CHUNKED + b"\r\n" + b"1\r\n \r\n" * 100_000),
    "30 passages by minilm-cross": (4, lambda i: _post("/rank", CROSS | {"query": _new(60, i)})),
    "60 passages by minilm-cross, 24 connections": (
        24, lambda i: _post("/rank", CROSS | {"query": _new(60, i), "candidates": [_new(20, j) for j in range(60)]}),
    ),
    "60 passages by minilm-cross, 200 connections": (
        200, lambda i: _post("/rank", CROSS | {"query": _new(60, i), "candidates": [_new(20, j) for j in range(60)]}),
    ),
    "40 claims full of numbers, 24 connections": (
        24, lambda i: _post("/claims", COUNTED | {"claims": [f"{i} {j} one in ten of 5 kg" for j in range(40)]}),
    ),
    "explanations by minilm": (1, lambda i: _post("/explain", EXPLAINED | {"a": _new(60, i)})),
    "256 long texts embedded": (
        2, lambda i: _post("/embed", {"sentences": [_new(110, 1000 * i + j) for j in range(256)], "model": "minilm"}),
    ),
    "10,000 candidates by minilm-cross": (
        2, lambda i: _post("/rank", CROSS | {"candidates": [f"{i} {j} a man" for j in range(10_000)]}),
    ),
    "256 labels of 4,500 characters": (
        2, lambda i: _post("/classify", {"text": "a", "labels": [f"{i} {j} " + "ab " * 1500 for j in range(250)]}),
    ),
    "texts not in ASCII, asked twice": (
        2, lambda i: 2 * _post("/v2/embed", FOREIGN | {"texts": [f"caf\u00e9 {i} {j}" for j in range(90)]}),
    ),
    "a refused body that waits for 100": (4, lambda _: EXPECTING + b" " * 100_000 + HEAD + b"\r\n"),
    "bodies of 4 MB without their ends": (100, lambda _: HEAD + b"Content-Length: 4000000\r\n\r\n" + b" " * 3_900_000),
    LIMITED: (200, lambda _: LARGE),
    "10,000 short candidates by the default model, 200 connections": (200, lambda _: SHORT),
}  # fmt: skip


async def run(trial: Trial) -> None:
    """Run all attacks against one process."""
    with Service(preload=f"{PROBED},minilm,minilm-cross") as served:
        bound = LEAST_MS
        for name in ("control", *(name for name in ATTACKS if trial.options.only in name)):
            with _attacking(served.port, name):
                took, failed = await asyncio.to_thread(_probe, served.port, trial.options.seconds)
            half = median(took)
            trial.row(name, len(took), half, max(took), failed, round(served.resources().resident_mb))
            if name == "control":
                bound = max(LEAST_MS, TIMES * half)
                continue
            if name == LIMITED:
                trial.promise(f"{name}: all of others' requests answered", not failed, f"{failed} not answered")
                continue
            within = f"{name}: half of others' requests within {bound:.0f} ms"
            trial.promise(within, half <= bound and not failed, f"{half:.0f} ms, {failed} not answered")
        peak = served.resources().peak_mb
        trial.promise(f"the process takes less than {LIMIT_MB} MB", peak < LIMIT_MB, f"{peak:.0f} MB")
        trial.quiet("all", served.complaints())


def _probe(port: int, seconds: float) -> tuple[list[float], int]:
    """Somebody else, who asks for one new pair at a time over a new connection: milliseconds, and how many were not
    answered with 200."""
    until, took, failed = time.monotonic() + seconds, [], 0
    while time.monotonic() < until:
        pair = {"a": f"a man plays a guitar {next(NUMBERS)}", "b": "a woman is singing a song"}
        body = _post("/similarity", {"model": PROBED, "pairs": [pair]}, "Connection: close")
        began, said = time.monotonic(), b""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 15, (MINE, 0)) as connection:
            connection.sendall(body)
            said = b"".join(iter(lambda: connection.recv(65536), b""))  # called at once
        took.append((time.monotonic() - began) * 1000)
        failed += not said.startswith(b"HTTP/1.1 200")
        time.sleep(0.02)
    return took, failed


@contextmanager
def _attacking(port: int, name: str) -> Iterator[None]:
    """Attack from another process, which does not keep the probe's interpreter busy; nothing where it is no attack."""
    if name not in ATTACKS:
        yield
        return
    attacking = multiprocessing.get_context("spawn").Process(target=_attack, args=(port, name), daemon=True)
    attacking.start()
    time.sleep(1)  # until it has begun
    try:
        yield
        if not attacking.is_alive():
            raise RuntimeError(f"{name}: nothing attacked")
    finally:
        attacking.kill()
        attacking.join()


def _attack(port: int, name: str) -> None:
    """Send a request on each connection, again when it is answered or refused; in a few threads, until killed."""
    connections, request = ATTACKS[name]
    threads = min(4, connections)

    def attack(first: int) -> None:
        for round_ in range(first, first + 10**6, connections):
            with ExitStack() as stack:
                opened = []
                for number in range(round_, round_ + connections // threads):
                    with suppress(OSError):
                        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5, (THEIRS, 0)))
                        opened.append(connection)
                        connection.settimeout(60)
                        connection.sendall(request(number))
                for connection in opened:
                    with suppress(OSError):
                        connection.recv(65536)

    for i in range(threads):
        threading.Thread(target=attack, args=(i * 10**6,)).start()


KIND = Kind(
    "One caller against all others",
    "Each attack for {seconds:g} s from one address, against one process with the default settings; another address "
    f"asks for one new pair of `{PROBED}` at a time. Control: the same without an attack.",
    ("attack", "probes", "median ms", "worst ms", "not 200", "MB"),
    {"seconds": 10.0, "only": ""},
    run,
)
