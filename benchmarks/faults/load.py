"""Steady load whose answers are all read and held against what they must say."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx
import numpy as np

TOLERANCE = 1e-6
ANSWER_SECONDS = 60.0  # more than any setting of the service lets a request take
MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Ask:
    """One request, and what must come back."""

    path: str
    body: bytes | None = None  # without one it is a GET
    status: int = 200
    answer: object = None  # parsed JSON; None: anything
    judge: Callable[[object], str | None] | None = None  # parsed JSON -> what is wrong with it; instead of `answer`

    @classmethod
    def post(cls, path: str, body: Mapping[str, object], status: int = 200) -> Self:
        """A POST of JSON."""
        return cls(path, json.dumps(body).encode(), status)


@dataclass
class Tally:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0  # no answer at all: refused, reset, timed out
    wrong: int = 0  # an answer that says something else than it must
    examples: list[str] = field(default_factory=list)  # of what failed
    milliseconds: list[float] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Requests with an answer or without."""
        return self.statuses.total() + self.lost

    @property
    def failed(self) -> int:
        """Requests that did not get the answer they must."""
        return self.lost + self.wrong

    def percentile(self, percent: float) -> float:
        """Of the milliseconds; not a number where nothing was answered."""
        return float(np.percentile(self.milliseconds, percent)) if self.milliseconds else float("nan")

    def note(self, example: str) -> None:
        """Keep an example of what failed."""
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(example)


def difference(found: object, expected: object, tolerance: float = TOLERANCE, place: str = "") -> str | None:
    """The first place where two answers differ by more than the tolerance of a number, or None."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return f"{place}: fields {sorted(found)}, expected {sorted(expected)}"
        pairs = [(f"{place}.{key}", found[key], expected[key]) for key in expected if key != "created"]  # a time
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{place}: {len(found)} items, expected {len(expected)}"
        pairs = [(f"{place}.{i}", one, other) for i, (one, other) in enumerate(zip(found, expected, strict=True))]
    elif isinstance(expected, float) and isinstance(found, float):
        return None if abs(found - expected) <= tolerance else f"{place}: {found!r}, expected {expected!r}"
    else:
        return None if found == expected else f"{place}: {found!r}, expected {expected!r}"
    differences = (difference(one, other, tolerance, where) for where, one, other in pairs)
    return next((found for found in differences if found is not None), None)


def client_of(url: str) -> httpx.AsyncClient:
    """A client with connections of its own; without certificates, whose loading takes longer than many requests."""
    return httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, verify=False, trust_env=False)


async def answered(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    """Send one request, under an id of ours, which some answers repeat."""
    headers = {"x-request-id": "trial", "content-type": "application/json"}
    return await client.request("GET" if ask.body is None else "POST", ask.path, content=ask.body, headers=headers)


class Load:
    """Requests from a number of callers, each of whom waits for an answer before the next one, until the block ends."""

    def __init__(self, url: str, asks: Iterator[Ask], *, callers: int, rate: float | None = None) -> None:
        """Prepare.

        Args:
            url: of the service.
            asks: what is asked, without an end; each is asked once, by whoever is next.
            callers: how many there are, each over connections of its own.
            rate: requests a second of all of them together, as long as answers come in time; without it no pause.
        """
        self._url = url
        self._asks = asks
        self._callers = callers
        self._pause = callers / rate if rate else 0.0
        self._tally = Tally()
        self._tasks: list[asyncio.Task[None]] = []
        self._goes_on = asyncio.Event()
        self._ended = False

    async def __aenter__(self) -> Self:
        self._goes_on.set()
        clients = [client_of(self._url) for _ in range(self._callers)]
        self._tasks = [
            asyncio.create_task(self._call(client, i * self._pause / self._callers)) for i, client in enumerate(clients)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._goes_on.set()
        await asyncio.gather(*self._tasks)

    def hold(self) -> None:
        """Send nothing more; what was sent is still waited for."""
        self._goes_on.clear()

    def go_on(self) -> None:
        """Send again."""
        self._goes_on.set()

    def take(self) -> Tally:
        """What came back since the last time."""
        tally, self._tally = self._tally, Tally()
        return tally

    async def run(self, seconds: float) -> Tally:
        """What comes back in the next seconds."""
        self.take()
        await asyncio.sleep(seconds)
        return self.take()

    async def _call(self, client: httpx.AsyncClient, wait: float) -> None:
        async with client:
            await asyncio.sleep(wait)
            while not self._ended:
                if not self._goes_on.is_set():
                    await self._goes_on.wait()
                    await asyncio.sleep(wait)  # or all would ask at once from now on
                    continue
                began = time.perf_counter()
                await self._ask(client, next(self._asks))
                await asyncio.sleep(max(0.0, self._pause - (time.perf_counter() - began)))

    async def _ask(self, client: httpx.AsyncClient, ask: Ask) -> None:
        began = time.perf_counter()
        try:
            response = await answered(client, ask)
        except httpx.TransportError as error:
            self._tally.lost += 1
            self._tally.note(f"{ask.path}: {type(error).__name__} {error}")
            return
        tally = self._tally  # of the time when the answer came
        tally.milliseconds.append((time.perf_counter() - began) * 1000)
        tally.statuses[response.status_code] += 1
        if response.status_code != ask.status:
            wrong: str | None = f"status {response.status_code}, expected {ask.status}: {response.text[:200]}"
        elif ask.judge is not None:
            wrong = ask.judge(response.json())
        elif ask.answer is not None:
            wrong = difference(response.json(), ask.answer)
        else:
            wrong = None
        if wrong is not None:
            tally.wrong += 1
            tally.note(f"{ask.path}: {wrong}")


def in_random_order(asks: Sequence[Ask], seed: int) -> Iterator[Ask]:
    """Each of them again and again."""
    rng = random.Random(seed)
    while True:
        yield rng.choice(asks)


async def with_answers(url: str, asks: Sequence[Ask]) -> list[Ask]:
    """The requests, each with what this service answers.

    Raises:
        RuntimeError: it answers one of them with another status than the request says.
    """
    known = []
    async with client_of(url) as client:
        for ask in asks:
            response = await answered(client, ask)
            if response.status_code != ask.status:
                raise RuntimeError(f"{ask.path} is answered {response.status_code}: {response.text[:500]}")
            known.append(Ask(ask.path, ask.body, ask.status, response.json()))
    return known
