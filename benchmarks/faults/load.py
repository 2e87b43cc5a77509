"""Steady load that compares every answer with the expected one.

It measures correctness under load, not the limits of the service, so httpx is fast enough.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

import httpx
import numpy as np

TOLERANCE = 3e-6  # rows of a batch differ by some 1e-6 with its other rows
ANSWER_SECONDS = 60.0  # more than any time limit of the service


@dataclass(frozen=True)
class Ask:
    """One request and its expected answer."""

    path: str
    body: bytes | None = None  # without one it is a GET
    status: int = 200
    answer: object = None  # the right one, parsed; None: all are right

    @classmethod
    def post(cls, path: str, body: Mapping[str, object], status: int = 200) -> Self:
        """A POST of JSON."""
        return cls(path, json.dumps(body).encode(), status)


@dataclass
class Tally:
    """Counts of answers by kind."""

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0  # without an answer: refused, reset, timed out
    wrong: int = 0  # with another status or answer than expected
    examples: list[str] = field(default_factory=list)  # of failures
    milliseconds: list[float] = field(default_factory=list)  # of answers with the expected status

    @property
    def asked(self) -> int:
        """All requests, answered or lost."""
        return self.statuses.total() + self.lost

    @property
    def failed(self) -> int:
        """Requests without the expected answer."""
        return self.lost + self.wrong

    @property
    def times(self) -> tuple[float, float]:
        """Median and 99th percentile of `milliseconds`; NaN where nothing was answered."""
        found = self.milliseconds or [float("nan")]
        return float(np.percentile(found, 50)), float(np.percentile(found, 99))


def difference(found: object, expected: object, tolerance: float = TOLERANCE, place: str = "") -> str | None:
    """The first difference of two answers, by path, or None; numbers may differ by `tolerance`, relative beyond 1."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return f"{place}: fields {sorted(found)}, expected {sorted(expected)}"
        # All but the time of the answer.
        pairs = [(f"{place}.{key}", found[key], expected[key]) for key in expected if key != "created"]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{place}: {len(found)} items, expected {len(expected)}"
        pairs = [(f"{place}.{i}", one, other) for i, (one, other) in enumerate(zip(found, expected, strict=True))]
    elif isinstance(expected, float) and isinstance(found, float):
        near = abs(found - expected) <= tolerance * max(1.0, abs(expected))
        return None if near else f"{place}: {found!r}, expected {expected!r}"
    else:
        return None if found == expected else f"{place}: {found!r}, expected {expected!r}"
    differences = (difference(one, other, tolerance, where) for where, one, other in pairs)
    return next((found for found in differences if found is not None), None)


def client_of(url: str) -> httpx.AsyncClient:
    """A client with its own connections; loads no certificates, which would take longer than many requests."""
    return httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, verify=False, trust_env=False)


async def answered(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    """Send one request with a fixed id, which some answers repeat."""
    headers = {"x-request-id": "trial", "content-type": "application/json"}
    return await client.request("GET" if ask.body is None else "POST", ask.path, content=ask.body, headers=headers)


@dataclass
class Load:
    """Counts the answers to `asks`, an endless iterator that all callers share, of the service at `url`."""

    url: str
    asks: Iterator[Ask]
    tally: Tally = field(default_factory=Tally)

    def take(self) -> Tally:
        """The counts since the last call."""
        tally, self.tally = self.tally, Tally()
        return tally

    @asynccontextmanager
    async def by(self, callers: int) -> AsyncIterator[Self]:
        """Callers that wait for an answer before their next request, until the block ends; then nothing is in flight.

        Each caller has its own connections.
        """
        ended = asyncio.Event()

        async def call() -> None:
            async with client_of(self.url) as client:
                while not ended.is_set():
                    await self._ask(client, next(self.asks))

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(call())
            try:
                yield self
            finally:
                ended.set()

    async def _ask(self, client: httpx.AsyncClient, ask: Ask) -> None:
        began = time.perf_counter()
        try:
            response = await answered(client, ask)
        except httpx.TransportError as error:
            self.tally.lost += 1
            self.tally.examples.append(f"{ask.path}: {type(error).__name__} {error}")
            return
        took = (time.perf_counter() - began) * 1000
        tally = self.tally  # the current one, when the answer arrives
        tally.statuses[response.status_code] += 1
        if response.status_code != ask.status:
            wrong: str | None = f"status {response.status_code}, expected {ask.status}: {response.text[:200]}"
        else:
            tally.milliseconds.append(took)
            wrong = None if ask.answer is None else difference(response.json(), ask.answer)
        if wrong is not None:
            tally.wrong += 1
            tally.examples.append(f"{ask.path}: {wrong}")


async def with_answers(url: str, asks: Sequence[Ask]) -> list[Ask]:
    """The requests, each with this service's answer as the expected one.

    Raises:
        RuntimeError: an answer has another status than expected.
    """
    known = []
    async with client_of(url) as client:
        for ask in asks:
            response = await answered(client, ask)
            if response.status_code != ask.status:
                raise RuntimeError(f"{ask.path} is answered {response.status_code}: {response.text[:500]}")
            known.append(replace(ask, answer=response.json()))
    return known
