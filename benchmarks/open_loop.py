"""Open-loop load: requests leave by a schedule, whether or not earlier ones are answered, and latency counts from it.

    python benchmarks/open_loop.py --port 8000 --bodies bodies.jsonl --rate 2000 --seconds 10 --connections 64

A closed loop (wrk, hey) waits for a slow server before it asks again, and so leaves out just the requests that would
have been slow (coordinated omission). Here a request that found no free connection, or left late, still counts from
the moment it was due. The generator reports its own lateness, `lag`: where that is not far below the latencies, it was
the generator that was measured. No packaged tool that we can install does this: wrk2, vegeta and k6 are in neither
Debian 12 nor PyPI; `hey`, locust and autocannon wait for answers.

Also a library: `await load(plan)`, for scripts that do something to the server meanwhile; or `start(plan, ...)` for a
process of its own, which a busy script does not make late.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import httptools
import numpy as np
import numpy.typing as npt
import uvloop

Arrivals = Literal["poisson", "constant"]
Floats = npt.NDArray[np.float64]

# What happened to a request that has no status.
TIMED_OUT, CLOSED, REFUSED, NOT_SENT = "timed out", "closed", "refused", "not sent"
BARE = "429 without its headers"
SPIN_BELOW = 0.0015  # seconds: the event loop's timers count milliseconds, so shorter waits are spent looking


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which requests, when, over how many connections."""

    port: int
    bodies: Sequence[bytes]  # sent in turn, then from the first again
    rate: float  # requests a second
    seconds: float
    connections: int  # opened before the first request; one that is lost is opened again
    path: str = "/similarity"
    headers: tuple[tuple[str, str], ...] = ()
    arrivals: Arrivals = "poisson"
    timeout: float = 30.0  # seconds after which an answer no longer counts, from the moment the request was due
    patience: float = float("inf")  # seconds that a request waits for a connection that is free, and then is not sent
    seed: int = 1
    spin: bool = True  # punctual to microseconds; it takes a whole core, so not on the server's
    refusals_need: tuple[str, ...] = ()  # headers; a 429 without one of them is a `BARE`


@dataclass(frozen=True)
class Quantiles:
    """In milliseconds."""

    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True)
class Outcome:
    """What became of every request, in the order of the schedule."""

    plan: Plan
    due: Floats  # seconds from the start
    latency: Floats  # seconds from `due` to the whole answer; of no answer, to when it was given up
    lag: Floats  # seconds by which the generator looked at a request too late
    sent: Floats  # seconds from the start to when it left; not a number, if it never did
    status: list[str]  # "200", or one of the words above
    waited: int  # requests that found every connection busy
    seconds: float  # from the first to the last answer

    def quantiles(self, status: str = "200") -> Quantiles | None:
        """Of the latencies of those answered so; None without any."""
        chosen = self.latency[np.array([found == status for found in self.status], dtype=bool)]
        return quantiles(chosen) if len(chosen) else None

    @property
    def from_sent(self) -> Floats:
        """Seconds that those answered with 200 took once they had found a connection: what the server knows of."""
        answered = np.array([found == "200" for found in self.status], dtype=bool)
        took: Floats = (self.latency - (self.sent - self.due))[answered]
        return took

    @property
    def statuses(self) -> dict[str, int]:
        """How many requests ended in each way."""
        return dict(Counter(self.status))

    def by_second(self) -> list[dict[str, int]]:
        """The same for the requests that were due in each second."""
        seconds: list[Counter[str]] = [Counter() for _ in range(int(self.due[-1]) + 1 if len(self.due) else 0)]
        for due, status in zip(self.due.tolist(), self.status, strict=True):
            seconds[int(due)][status] += 1
        return [dict(counted) for counted in seconds]

    def summary(self) -> dict[str, Any]:
        """All of it but the single requests; what the command prints."""
        ok = self.quantiles()
        return {
            "rate": self.plan.rate,
            "arrivals": self.plan.arrivals,
            "connections": self.plan.connections,
            "requests": len(self.status),
            "statuses": self.statuses,
            "answered_per_second": self.statuses.get("200", 0) / self.seconds if self.seconds else 0.0,
            "latency_ms": asdict(ok) if ok else None,
            "from_sent_ms": asdict(quantiles(self.from_sent)) if ok else None,
            "lag_ms": asdict(quantiles(self.lag)) if len(self.lag) else None,
            "waited": self.waited,
            "by_second": self.by_second(),
        }


def quantiles(seconds: Floats) -> Quantiles:
    """Latencies in seconds -> milliseconds; each is one that was measured, not one between two."""
    found = np.percentile(seconds, [50, 95, 99, 100], method="inverted_cdf") * 1000
    return Quantiles(*(round(value, 4) for value in found.tolist()))


def schedule(rate: float, seconds: float, arrivals: Arrivals, seed: int) -> Floats:
    """When each request is due, in seconds from the start.

    Args:
        rate: requests a second, above 0.
        seconds: no request is due at or after this.
        arrivals: `constant`: one each 1/rate seconds; `poisson`: independent of each other, as those of many people.
        seed: of the Poisson arrivals.
    """
    if arrivals == "constant":
        return np.arange(np.ceil(rate * seconds)) / rate
    rng = np.random.default_rng(seed)
    most = int(rate * seconds + 10 * np.sqrt(rate * seconds) + 10)
    due = np.cumsum(rng.exponential(1 / rate, most))
    return due[due < seconds]


def prepare(plan: Plan) -> list[bytes]:
    """Whole requests, as they go over the wire."""
    head = [f"POST {plan.path} HTTP/1.1", f"Host: 127.0.0.1:{plan.port}", "Content-Type: application/json"]
    head += [f"{name}: {value}" for name, value in plan.headers]
    start = "\r\n".join(head).encode()
    return [start + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body for body in plan.bodies]


class _Connection(asyncio.Protocol):
    """One request at a time; says when it is answered, and when it is lost."""

    def __init__(self, answered: Callable[["_Connection", str], None], lost: Callable[["_Connection"], None]) -> None:
        self._answered, self._lost = answered, lost
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self.request: int | None = None  # the number of the one under way

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a TCP connection's is one

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_complete(self) -> None:
        status = self.status()
        if not self._parser.should_keep_alive():  # closed first, or it would be given the next request
            self.close()
        self._answered(self, status)

    def status(self) -> str:
        return str(self._parser.get_status_code())

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost(self)


class _HeaderReader(_Connection):
    """Reads the headers too, which costs the generator time."""

    needed: frozenset[bytes]

    def on_message_begin(self) -> None:
        self._seen: set[bytes] = set()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._seen.add(name.lower())

    def status(self) -> str:
        status = super().status()
        return BARE if status == "429" and not self.needed <= self._seen else status


class _Run:
    """The state of one load."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests = prepare(plan)
        self.due = schedule(plan.rate, plan.seconds, plan.arrivals, plan.seed)
        self.loop = asyncio.get_running_loop()
        count = len(self.due)
        self.latency, self.lag, self.sent = np.zeros(count), np.zeros(count), np.full(count, np.nan)
        self.status: list[str] = [""] * count
        self.open_requests = count
        self.waited = 0
        self.idle: deque[_Connection] = deque()
        self.live: set[_Connection] = set()
        self.queue: deque[int] = deque()  # due, but every connection is busy
        self.reconnecting: set[asyncio.Task[None]] = set()
        self.finished = asyncio.Event()
        self.stopping = False
        self.start = self.last = 0.0

    async def run(self) -> Outcome:
        await asyncio.gather(*(self.connect() for _ in range(self.plan.connections)))
        if not self.live:
            raise ConnectionError(f"nobody listens on port {self.plan.port}")
        expiring = asyncio.create_task(self.expire())
        try:
            if len(self.due):
                await self.send()
                await self.finished.wait()
        finally:
            self.stopping = True
            for task in [expiring, *self.reconnecting]:
                task.cancel()
            for connection in list(self.live):
                connection.close()
            await asyncio.sleep(0)
        took = self.last - float(self.due[0]) if len(self.due) else 0.0
        return Outcome(self.plan, self.due, self.latency, self.lag, self.sent, self.status, self.waited, took)

    def now(self) -> float:
        return time.perf_counter() - self.start

    async def send(self) -> None:
        """Hand over each request when it is due."""
        due = self.due.tolist()
        # Time for what came before, and a first request that is not late.
        self.start = time.perf_counter() + 0.01
        for i, moment in enumerate(due):
            while (ahead := moment - self.now()) > 0:
                if self.plan.spin and ahead < SPIN_BELOW:
                    await asyncio.sleep(0)
                else:
                    await asyncio.sleep(ahead - SPIN_BELOW if self.plan.spin else ahead)
            self.lag[i] = -ahead
            if self.idle:
                self.give(self.idle.popleft(), i)
            else:
                self.waited += 1
                self.queue.append(i)
            if not i & 15:  # many due at once must not keep answers from being read
                await asyncio.sleep(0)

    def give(self, connection: _Connection, request: int) -> None:
        assert connection.transport is not None
        connection.request = request
        self.sent[request] = self.now()
        connection.transport.write(self.requests[request % len(self.requests)])

    def settle(self, request: int, status: str) -> None:
        self.last = self.now()
        self.latency[request] = self.last - self.due[request]
        self.status[request] = status
        self.open_requests -= 1
        if not self.open_requests:
            self.finished.set()

    def answered(self, connection: _Connection, status: str) -> None:
        request, connection.request = connection.request, None
        if request is not None:
            self.settle(request, status)
        if connection.transport is not None and not connection.transport.is_closing():
            self.free(connection)

    def free(self, connection: _Connection) -> None:
        if self.queue:
            self.give(connection, self.queue.popleft())
        else:
            self.idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        self.live.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)
        if connection.request is not None:
            self.settle(connection.request, CLOSED)
            connection.request = None
        if not self.stopping:
            task = asyncio.ensure_future(self.connect())
            self.reconnecting.add(task)
            task.add_done_callback(self.reconnecting.discard)

    async def connect(self) -> None:
        """Open a connection. While there is none at all, what is due is refused, as its sender would be."""
        while not self.stopping:
            try:
                _, connection = await self.loop.create_connection(self.connection, "127.0.0.1", self.plan.port)
            except OSError:
                if not self.start:
                    return
                while self.queue and not self.live:
                    self.settle(self.queue.popleft(), REFUSED)
                await asyncio.sleep(0.01)
                continue
            self.live.add(connection)
            self.free(connection)
            return

    def connection(self) -> _Connection:
        if not self.plan.refusals_need:
            return _Connection(self.answered, self.lost)
        reader = _HeaderReader(self.answered, self.lost)
        reader.needed = frozenset(name.lower().encode() for name in self.plan.refusals_need)
        return reader

    async def expire(self) -> None:
        """Give up on what takes too long: the connection is closed, for a late answer would be taken for the next."""
        while True:
            await asyncio.sleep(min(0.1, self.plan.timeout / 4, self.plan.patience / 4))
            if not self.start:
                continue
            oldest = self.now() - self.plan.timeout
            while self.queue and self.due[self.queue[0]] < oldest:
                self.settle(self.queue.popleft(), TIMED_OUT)
            while self.queue and self.due[self.queue[0]] < self.now() - self.plan.patience:
                self.settle(self.queue.popleft(), NOT_SENT)
            for connection in list(self.live):
                if connection.request is not None and self.due[connection.request] < oldest:
                    self.settle(connection.request, TIMED_OUT)
                    connection.request = None
                    connection.close()


async def load(plan: Plan) -> Outcome:
    """Put the load on a server, in this process.

    Raises:
        ConnectionError: nobody listens.
    """
    return await _Run(plan).run()


@dataclass
class Running:
    """A load under way in a process of its own."""

    process: subprocess.Popen[str]
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)

    def result(self) -> dict[str, Any]:
        """Wait for its end: `Outcome.summary()`.

        Raises:
            RuntimeError: it failed; the message is its last words.
        """
        out, err = self.process.communicate()
        self.folder.cleanup()
        if self.process.returncode:
            raise RuntimeError(f"the load ended with {self.process.returncode}: {err.strip().splitlines()[-1:]}")
        found: dict[str, Any] = json.loads(out)
        return found


def start(plan: Plan, prefix: Sequence[str] = ()) -> Running:
    """Begin a load in a process of its own.

    Args:
        plan: what to send.
        prefix: begins its command, such as `taskset -c 1`.
    """
    folder = tempfile.TemporaryDirectory()
    bodies = Path(folder.name) / "bodies.jsonl"
    bodies.write_bytes(b"\n".join(plan.bodies) + b"\n")
    command = [*prefix, sys.executable, str(Path(__file__).resolve()), "--bodies", str(bodies)]
    for name, value in asdict(replace(plan, bodies=())).items():
        if name == "headers":
            command += [part for key, text in value for part in ("--header", f"{key}: {text}")]
        elif name == "spin":
            command += [] if value else ["--no-spin"]
        elif name == "refusals_need":
            command += [part for header in value for part in ("--refusals-need", header)]
        elif name != "bodies":
            command += [f"--{name}", str(value)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return Running(process, folder)


def main() -> None:
    """Read a plan from the command line, print the outcome as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bodies", type=Path, required=True, help="request bodies, one a line, sent in turn")
    parser.add_argument("--rate", type=float, required=True, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--path", default="/similarity")
    parser.add_argument("--header", action="append", default=[], metavar="NAME: VALUE")
    parser.add_argument("--refusals-need", action="append", default=[], metavar="NAME", help="a header of every 429")
    parser.add_argument("--arrivals", choices=("poisson", "constant"), default="poisson")
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--patience", type=float, default=float("inf"), help="seconds to wait for a free connection")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--no-spin", action="store_true", help="leave the core to others between requests; less punctual"
    )
    options = parser.parse_args()
    plan = Plan(
        port=options.port,
        bodies=options.bodies.read_bytes().splitlines(),
        rate=options.rate,
        seconds=options.seconds,
        connections=options.connections,
        path=options.path,
        headers=tuple((name.strip(), value.strip()) for name, _, value in (h.partition(":") for h in options.header)),
        arrivals=options.arrivals,
        timeout=options.timeout,
        patience=options.patience,
        seed=options.seed,
        spin=not options.no_spin,
        refusals_need=tuple(options.refusals_need),
    )
    try:
        outcome = uvloop.run(load(plan))
    except ConnectionError as error:
        sys.exit(str(error))
    json.dump(outcome.summary(), sys.stdout)
    sys.stdout.write(os.linesep)


if __name__ == "__main__":
    main()
