"""The loads of `make bench`: what is asked, and threads that ask it.

Every text is new but the known answers of a FAQ. wrk keeps no schedule and counts no unfinished request, and an answer
here may take seconds, so requests are sent from here: `send` with all of them due at once is a closed loop, with due
times an open one, whose latencies count from when a request was due.
"""

import http.client
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from benchmarks.sentences import sentences

ANSWERS = 125  # of a FAQ
CLIENTS = 32
_SEEDS = count(1)


@dataclass(frozen=True)
class Ask:
    """A question with candidates, or pairs if `query` is None: then texts are a, b, a, b and so on."""

    query: str | None
    texts: Sequence[str]


def texts(number: int, least: int, most: int) -> list[str]:
    """New texts of `least` to `most` words, every length as likely."""
    rng = random.Random(next(_SEEDS))
    lengths = [rng.randint(least, most) for _ in range(number)]
    words = iter(" ".join(sentences(sum(lengths) // 8 + 2, next(_SEEDS))).split())
    return [" ".join([*islice(words, length - 1), f"{rng.randrange(10**9)}."]) for length in lengths]


KNOWN = tuple(texts(ANSWERS, 20, 200))


def _pairs(number: int, first: tuple[int, int], second: tuple[int, int]) -> Ask:
    both = zip(texts(number, *first), texts(number, *second), strict=True)
    return Ask(None, [text for pair in both for text in pair])


LOADS: dict[str, Callable[[], Ask]] = {
    "FAQ: a new question, 125 known answers": lambda: Ask(texts(1, 5, 15)[0], KNOWN),
    "FAQ: a new question, 125 new answers": lambda: Ask(texts(1, 5, 15)[0], texts(ANSWERS, 20, 200)),
    "duplicates: 64 new pairs": lambda: _pairs(64, (5, 40), (5, 40)),
    "duplicates: one new pair": lambda: _pairs(1, (5, 40), (5, 40)),
    "entailment: 32 new pairs": lambda: _pairs(32, (60, 60), (12, 12)),
}
# How often each of them is asked in the mix.
WEIGHTS = (15, 5, 10, 60, 10)


def mixed(number: int, seed: int) -> list[tuple[str, Ask]]:
    """All loads in random order, with their names."""
    return [(name, LOADS[name]()) for name in random.Random(seed).choices(list(LOADS), WEIGHTS, k=number)]


@dataclass(frozen=True)
class Sent:
    """What became of requests: seconds of each from when it was due to its whole answer, in order; of all together."""

    latencies: list[float]
    seconds: float

    def percentile(self, percent: float) -> float:
        """A latency that was measured, without interpolation."""
        return float(np.percentile(self.latencies, percent, method="inverted_cdf"))


def _answer(connection: http.client.HTTPConnection, path: str, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer to a POST; over a new connection where the server has closed the one that was kept."""
    was_open = connection.sock is not None
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
    except ConnectionError:
        connection.close()
        if not was_open:
            raise
        return _answer(connection, path, body)
    return answer, answer.read()


def send(
    port: int, requests: Sequence[tuple[str, bytes]], due: Sequence[float], clients: int, seconds: float = 1e9
) -> Sent:
    """POST requests over `clients` connections, in order, none before it is due.

    Args:
        port: of the server, on loopback.
        requests: path and JSON body of each.
        due: seconds from the start at which each is due, ascending.
        clients: each sends one request at a time.
        seconds: none is begun later than this; those that were are awaited.

    Raises:
        RuntimeError: an answer was not a 200.
    """
    positions, lock = iter(range(len(requests))), threading.Lock()
    latencies: dict[int, float] = {}
    failures: list[str] = []
    start = time.perf_counter()

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        while not failures and time.perf_counter() - start < seconds:
            with lock:
                at = next(positions, None)
            if at is None:
                break
            time.sleep(max(0.0, due[at] - (time.perf_counter() - start)))
            path, body = requests[at]
            try:
                answer, content = _answer(connection, path, body)
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{path}: {error!r}")
                break
            if answer.status != 200:
                failures.append(f"{path} answered {answer.status}: {content[:300]!r}")
            latencies[at] = time.perf_counter() - start - due[at]
        connection.close()

    with ThreadPoolExecutor(clients) as pool:
        for sender in [pool.submit(client) for _ in range(clients)]:
            sender.result()
    if failures:
        raise RuntimeError(failures[0])
    return Sent([latencies[at] for at in sorted(latencies)], time.perf_counter() - start)
