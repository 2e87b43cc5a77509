"""Open-loop load: requests are sent by a schedule, independent of answers; latency counts from the scheduled time.

A closed loop (wrk, hey) waits for a slow server before it sends again, and so omits the requests that would have been
slow (coordinated omission). Here the latency of a request that found no free connection, or was sent late, still counts
from the time it was due. `lag` is the generator's own lateness: unless it is far below the latencies, the generator
was measured, not the server. No packaged tool does this: wrk2, vegeta and k6 are in neither Debian 12 nor PyPI; `hey`,
locust and autocannon wait for answers.

`await load(plan)` runs in this process, `start(plan, ...)` in its own, which the caller's work does not delay.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httptools
import numpy as np
import numpy.typing as npt
import uvloop
from pydantic import TypeAdapter

Arrivals = Literal["poisson", "constant"]
Floats = npt.NDArray[np.float64]

# Outcomes of requests without a status.
TIMED_OUT, CLOSED, REFUSED, NOT_SENT = "timed out", "closed", "refused", "not sent"
BARE = "429 without its headers"
SPIN_BELOW = 0.0015  # seconds: the event loop's timers have a resolution of milliseconds, so shorter waits poll


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The requests, their schedule, and the connections."""

    port: int
    bodies: Sequence[bytes]  # sent in turn, then from the first again
    rate: float  # requests a second
    seconds: float
    connections: int  # opened before the first request; a lost one is reopened
    path: str = "/similarity"
    arrivals: Arrivals = "poisson"
    timeout: float = 30.0  # seconds from the time a request was due, after which it is given up
    patience: float = 3600.0  # seconds to wait for a free connection; then it is not sent
    seed: int = 1
    spin: bool = True  # poll for precise timing; uses a whole core, which must not be the server's
    refusals_need: tuple[str, ...] = ()  # headers; a 429 without one of them is a `BARE`


PLAN = TypeAdapter(Plan)


@dataclass(frozen=True)
class Quantiles:
    """In milliseconds."""

    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True)
class Outcome:
    """The outcome of every request, in the order of the schedule."""

    plan: Plan
    due: Floats  # seconds from the start
    latency: Floats  # seconds from `due` to the complete answer, or to when it was given up
    lag: Floats  # seconds by which the generator was late
    sent: Floats  # seconds from the start; NaN: never sent
    status: list[str]  # "200", or one of the words above
    waited: int  # number of requests that found no free connection
    seconds: float  # from the first to the last answer

    def quantiles(self, status: str = "200") -> Quantiles | None:
        """Quantiles of the latencies of requests with this outcome; None if there are none."""
        chosen = self.latency[np.array([found == status for found in self.status], dtype=bool)]
        return quantiles(chosen) if len(chosen) else None

    @property
    def from_sent(self) -> Floats:
        """Seconds from sending to the complete answer, of requests answered with 200."""
        answered = np.array([found == "200" for found in self.status], dtype=bool)
        took: Floats = (self.latency - (self.sent - self.due))[answered]
        return took

    @property
    def statuses(self) -> dict[str, int]:
        """Number of requests by outcome."""
        return dict(Counter(self.status))

    def by_second(self) -> list[dict[str, int]]:
        """Likewise for the requests that were due in each second."""
        seconds: list[Counter[str]] = [Counter() for _ in range(int(self.due[-1]) + 1 if len(self.due) else 0)]
        for due, status in zip(self.due.tolist(), self.status, strict=True):
            seconds[int(due)][status] += 1
        return [dict(counted) for counted in seconds]

    def summary(self) -> dict[str, Any]:
        """Totals, without single requests; the command prints it."""
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
    """Quantiles in milliseconds of latencies in seconds; each is a measured value, without interpolation."""
    found = np.percentile(seconds, [50, 95, 99, 100], method="inverted_cdf") * 1000
    return Quantiles(*(round(value, 4) for value in found.tolist()))


def schedule(rate: float, seconds: float, arrivals: Arrivals, seed: int) -> Floats:
    """The times at which requests are due, in seconds from the start.

    Args:
        rate: requests a second, above 0.
        seconds: no request is due at or after this.
        arrivals: `constant`: one every 1/rate seconds; `poisson`: a Poisson process, as of many independent callers.
        seed: of the Poisson arrivals.
    """
    if arrivals == "constant":
        return np.arange(np.ceil(rate * seconds)) / rate
    rng = np.random.default_rng(seed)
    most = int(rate * seconds + 10 * np.sqrt(rate * seconds) + 10)
    due = np.cumsum(rng.exponential(1 / rate, most))
    return due[due < seconds]


def prepare(plan: Plan) -> list[bytes]:
    """The bytes of each request."""
    head = [f"POST {plan.path} HTTP/1.1", f"Host: 127.0.0.1:{plan.port}", "Content-Type: application/json"]
    start = "\r\n".join(head).encode()
    return [start + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body for body in plan.bodies]


class _Connection(asyncio.Protocol):
    """One request at a time; calls back when it is answered or the connection is lost."""

    def __init__(self, answered: Callable[["_Connection", str], None], lost: Callable[["_Connection"], None]) -> None:
        self._answered, self._lost = answered, lost
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self.request: int | None = None  # the one in flight

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a TCP connection's is one

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_complete(self) -> None:
        status = self.status()
        if not self._parser.should_keep_alive():  # close first, so that it is not given the next request
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
    """Also reads headers, which costs the generator time."""

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
        """Send or queue each request when it is due."""
        due = self.due.tolist()
        # A margin, so that the first request is not late.
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
            if not i & 15:  # let answers be read while many are due
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
        """Open a connection. While there is none at all, requests that are due count as refused."""
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
        """Give up requests after the timeout; closes their connections, so that no late answer is taken for another."""
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
    """Run the load in this process.

    Raises:
        ConnectionError: nobody listens.
    """
    return await _Run(plan).run()


@dataclass
class Running:
    """A load in its own process."""

    process: subprocess.Popen[str]

    def result(self) -> dict[str, Any]:
        """Wait for the end; returns `Outcome.summary()`.

        Raises:
            RuntimeError: it failed; the message has its last line of output.
        """
        out, err = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(f"the load ended with {self.process.returncode}: {err.strip().splitlines()[-1:]}")
        found: dict[str, Any] = json.loads(out)
        return found


def start(plan: Plan, prefix: Sequence[str] = ()) -> Running:
    """Start a load in its own process.

    Args:
        plan: the load.
        prefix: of its command, such as `taskset -c 1`.
    """
    command = [*prefix, sys.executable, str(Path(__file__).resolve())]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(PLAN.dump_json(plan).decode())
    process.stdin.close()
    process.stdin = None  # `communicate` would write to it
    return Running(process)


def main() -> None:
    """Read a plan as JSON from standard input, print the outcome as JSON."""
    plan = PLAN.validate_json(sys.stdin.read())
    try:
        outcome = uvloop.run(load(plan))
    except ConnectionError as error:
        sys.exit(str(error))
    json.dump(outcome.summary(), sys.stdout)


if __name__ == "__main__":
    main()
