"""What is let in is answered in time: large rankings beside busy processes, and many callers who are mostly refused.

Callers wait as long as they are asked to, and divide what would take too long, as our client does; `at_once` ones ask
again at once. Every text is new. The busy processes use a CPU each, as a neighbour on the same machine would.
"""

import asyncio
import http.client
import itertools
import json
import math
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from benchmarks.faults.trial import Kind, Trial
from benchmarks.loads import texts
from benchmarks.servers import Service

CANDIDATES, WORDS = 1000, 60  # of a ranking, and of each candidate
PAIRS, PAIR_WORDS = 200, 12
FEW, MANY = 4, 64  # callers of pairs
BODIES = 24  # of each caller of pairs, whose texts are made new by a number in each
GOODPUT = 0.9  # of the best, that many callers get
ANSWER_SECONDS = 60.0
AT_ONCE = 1.0  # seconds; a refusal that comes later is of a request that was let in, and then given up
_NUMBER = b"@@@@@@@@"  # the place of that number
_BUSY = "while True: pass"


@contextmanager
def neighbours(number: int) -> Iterator[None]:
    """So many processes that do nothing but use a CPU."""
    with ExitStack() as ends:
        for _ in range(number):
            process = subprocess.Popen([sys.executable, "-c", _BUSY])
            ends.callback(process.wait)
            ends.callback(process.kill)
        yield


@dataclass
class Outcome:
    """The answers that callers got."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of each 200
    items: int = 0  # texts or pairs that were answered
    named: list[int] = field(default_factory=list)  # how many would end in time, as refusals said
    given_up: list[float] = field(default_factory=list)  # seconds of each refusal that came late
    lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, status: int, seconds: float, items: int, named: int | None = None) -> None:
        """Count one answer and its time."""
        with self.lock:
            self.statuses[status] += 1
            if status == 200:
                self.seconds.append(seconds)
                self.items += items
            elif status in (413, 429) and seconds > AT_ONCE:
                self.given_up.append(seconds)
            if named:
                self.named.append(named)


class Caller:
    """One connection after another, as answers close them."""

    def __init__(self, port: int, outcome: Outcome) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        self._outcome = outcome

    def ask(self, path: str, body: bytes, items: int) -> tuple[int, float, int | None]:
        """The status, the seconds that the caller is to wait, and how many items would be answered in time."""
        began = time.perf_counter()
        try:
            self._connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            content = response.read()
        except OSError:
            self._connection.close()
            self._outcome.took(0, 0.0, 0)
            return 0, 0.0, None
        named = None
        if response.status in (413, 429):
            error = json.loads(content)["error"]
            named = error["limit"] if error["field"] == "candidates" else None
        self._outcome.took(response.status, time.perf_counter() - began, items, named)
        return response.status, float(response.headers.get("retry-after-ms", 0)) / 1000, named


def rankings(port: int, outcome: Outcome, until: float) -> None:
    """One caller's, until a time of the monotonic clock."""
    caller = Caller(port, outcome)
    while time.monotonic() < until:
        parts = [texts(CANDIDATES, WORDS, WORDS)]
        (query,) = texts(1, PAIR_WORDS, PAIR_WORDS)
        while parts and time.monotonic() < until:
            part = parts.pop(0)
            body = json.dumps({"query": query, "candidates": part, "top_k": 10}).encode()
            status, wait, named = caller.ask("/rank", body, len(part))
            if status == 413 and named:
                parts = [part[i : i + named] for i in range(0, len(part), named)] + parts
            elif status != 200:
                parts.insert(0, part)
                time.sleep(min(wait, max(0.0, until - time.monotonic())))


def pairs(port: int, outcome: Outcome, bodies: Sequence[bytes], numbers: Iterator[int], until: float) -> None:
    """One caller of pairs, who asks again at once."""
    caller = Caller(port, outcome)
    for body in itertools.cycle(bodies):
        if time.monotonic() > until:
            break
        caller.ask("/similarity", body.replace(_NUMBER, b"%08d" % next(numbers)), PAIRS)


async def run(trial: Trial) -> None:
    """Both loads, without neighbours and with them."""
    options = trial.options
    if options.only in "rankings":
        with Service() as served, neighbours(options.neighbours):
            await _rankings(trial, served)
            trial.quiet("rankings", served.complaints())
    if options.only in "pairs":
        best = 0.0
        for busy in (0, 1):
            for callers in (FEW, MANY):
                with Service() as served, neighbours(busy):
                    good = await _pairs(trial, served, callers, busy)
                best = good if callers == FEW else max(best, good)
                if callers == MANY:
                    what = f"pairs, {busy} busy beside: {MANY} callers get at least {GOODPUT:.0%} of the best goodput"
                    trial.promise(what, good >= GOODPUT * best, f"{good:.2f} of {best:.2f} a second")


async def _rankings(trial: Trial, served: Service) -> None:
    outcome, options = Outcome(), trial.options
    until = time.monotonic() + options.seconds
    asking = (asyncio.to_thread(rankings, served.port, outcome, until) for _ in range(options.callers))
    await asyncio.gather(*asking)
    name = f"rankings, {options.neighbours} busy beside"
    _row(trial, name, options.callers, outcome, options.seconds)
    found = dict(sorted(outcome.statuses.items()))
    trial.promise(f"{name}: nothing let in ends with 503", outcome.statuses[503] == 0, found)
    trial.promise(f"{name}: some are answered, the rest refused", set(outcome.statuses) <= {200, 413, 429}, found)
    trial.promise(f"{name}: callers get answers", outcome.items > 0, f"{outcome.items} candidates")


async def _pairs(trial: Trial, served: Service, callers: int, busy: int) -> float:
    outcome, bodies = Outcome(), []
    for _ in range(BODIES):
        sides = {name: texts(PAIRS, PAIR_WORDS - 1, PAIR_WORDS - 1) for name in "ab"}
        content = [{name: f"{side[i]} {_NUMBER.decode()}{name}" for name, side in sides.items()} for i in range(PAIRS)]
        bodies.append(json.dumps({"pairs": content}).encode())
    numbers = iter(range(10**8))
    until = time.monotonic() + trial.options.seconds
    with ThreadPoolExecutor(callers) as pool:
        asking = [pool.submit(pairs, served.port, outcome, bodies, numbers, until) for _ in range(callers)]
        await asyncio.gather(*map(asyncio.wrap_future, asking))
    _row(trial, f"pairs, {busy} busy beside", callers, outcome, trial.options.seconds)
    found, name = dict(sorted(outcome.statuses.items())), f"pairs, {callers} callers, {busy} busy beside"
    trial.promise(f"{name}: some are answered, the rest refused", set(found) <= {200, 413, 429}, found)
    return outcome.statuses[200] / float(trial.options.seconds)


def _row(trial: Trial, name: str, callers: int, outcome: Outcome, seconds: float) -> None:
    times = sorted(outcome.seconds) or [math.nan]
    statuses = [outcome.statuses[each] for each in (200, 429, 413, 503)]
    named = f"{min(outcome.named)} to {max(outcome.named)}" if outcome.named else ""
    counts = (*statuses, len(outcome.given_up), outcome.items / seconds)
    trial.row(name, callers, *counts, times[len(times) // 2], times[-1], named)
    found = {"statuses": dict(outcome.statuses), "seconds": times, "given up after": outcome.given_up}
    trial.values[f"{name}, {callers} callers"] = found


KIND = Kind(
    "What is let in is answered in time",
    f"{{seconds:g}} s each: {{callers}} callers of rankings of {CANDIDATES} new candidates of {WORDS} words beside "
    "{neighbours} busy processes, who wait and divide as they are told; "
    f"{FEW} and {MANY} callers of {PAIRS} new pairs of {PAIR_WORDS} words, who ask again at once, alone and beside one "
    "busy process. The default model of each route.",
    ("load", "callers", "200", "429", "413", "503", "given up", "items/s", "p50 s", "longest s", "would end in time"),
    {"seconds": 30.0, "callers": 4, "neighbours": 2, "only": ""},
    run,
)
