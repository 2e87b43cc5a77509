"""Redis killed, stopped, slow, full, poisoned, emptied and cut off under load: no failed request, the same answers.

The answers are those of a service without Redis and without a cache, to 1e-6. The service under trial keeps nothing
in memory, so that every request asks Redis. First it has Redis before it, then a proxy that delays and cuts.
"""

import argparse
import asyncio
import json
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial

import redis

from benchmarks.faults.bodies import models_by_task, of_vectors
from benchmarks.faults.load import Ask, Load, in_random_order, with_answers
from benchmarks.faults.promises import Findings
from benchmarks.faults.proxy import Proxy
from benchmarks.faults.served import Metrics, Served
from benchmarks.servers import free_port

HEAD = [
    "Redis is",
    "asked",
    "failed",
    "p50 ms",
    "p99 ms",
    "max ms",
    "up",
    "readiness",
    "found there",
    "failures counted",
]
BACK_SECONDS = 10.0  # the breaker asks again after 2, and a request has to come by
ONLY_REDIS = {"cache": "redis", "cache_size": 0}  # of all models, also where the graph would be cheaper
_POISON_EVERY = 0.2
Fault = Callable[[], AbstractAsyncContextManager[None]]


class RedisServer:
    """A redis-server of our own; what it holds goes with it."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = tempfile.mkdtemp(prefix="redis-")
        self.start()

    def start(self) -> None:
        """Start, empty.

        Raises:
            RuntimeError: it does not answer.
        """
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = redis.Redis("127.0.0.1", self.port)
        for _ in range(500):
            with suppress(redis.ConnectionError):
                self.client.ping()
                return
            time.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, and forget its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Trial:
    """One service under load, and the faults it is put through."""

    def __init__(self, served: Served, load: Load, findings: Findings, seconds: float) -> None:
        self._served = served
        self._load = load
        self._findings = findings
        self._seconds = seconds

    async def phase(
        self,
        name: str,
        fault: Fault | None = None,
        *,
        up: bool | None = None,
        counted: tuple[str, ...] = (),
    ) -> None:
        """Load for a while with a fault, then without it until Redis is in use again.

        Args:
            name: how Redis is.
            fault: lasts as long as its block.
            up: whether metrics and readiness must say that Redis answers; None: as it happens, for a busy machine may
                make any Redis miss its time limit.
            counted: kinds of failure of which at least one must be counted meanwhile.
        """
        before = await self._metrics()
        self._load.take()
        if fault is None:
            await asyncio.sleep(self._seconds)
            during, readiness = await self._metrics(), await self._readiness()
        else:
            async with fault():
                await asyncio.sleep(self._seconds)
                during, readiness = await self._metrics(), await self._readiness()
        tally = self._load.take()
        kinds = during.by("semblance_redis_failures_total", "kind")
        was = before.by("semblance_redis_failures_total", "kind")
        new = {kind: int(value - was[kind]) for kind, value in kinds.items() if value > was[kind]}
        says_up = during.total("semblance_redis_up") > 0
        findings = self._findings
        findings.row(
            name,
            tally.asked,
            tally.failed,
            *(tally.percentile(percent) for percent in (50, 99, 100)),
            int(says_up),
            readiness,
            _share(before, during),
            ", ".join(f"{kind} {count}" for kind, count in new.items()) or "none",
        )
        findings.promise(
            f"{name}: every request answered, as without Redis",
            tally.failed == 0 and tally.asked > 0,
            f"{tally.asked} asked, {tally.lost} lost, {tally.wrong} wrong" + "".join(f"; {e}" for e in tally.examples),
        )
        if fault is not None:
            if up is not None:
                expected = "ready" if up else "degraded"
                findings.promise(
                    f"{name}: metrics and readiness say `{expected}`", (says_up, readiness) == (up, expected), readiness
                )
            if counted:
                findings.promise(f"{name}: {' and '.join(counted)} counted", set(counted) <= new.keys(), new)
            await self._back(name)

    async def _back(self, name: str) -> None:
        """Wait until Redis is in use again."""
        began = time.monotonic()
        while (readiness := await self._readiness()) != "ready" and time.monotonic() - began < BACK_SECONDS:
            await asyncio.sleep(0.05)
        tally = self._load.take()
        self._findings.promise(
            f"{name}, and well again: in use within {BACK_SECONDS:g} s, nothing failed",
            readiness == "ready" and tally.failed == 0,
            f"{readiness} after {time.monotonic() - began:.1f} s, {tally.failed} of {tally.asked} failed",
        )

    async def _metrics(self) -> Metrics:
        return await asyncio.to_thread(self._served.metrics)

    async def _readiness(self) -> str:
        status, body = await asyncio.to_thread(self._served.readiness)
        return str(body["status"]) if status == 200 else f"{body['status']} ({status})"


async def run(options: argparse.Namespace) -> Findings:
    """Put a service through all of it."""
    findings = Findings(
        "redis",
        "Redis failing under load",
        f"python -m benchmarks.faults redis --seconds {options.seconds:g} --rate {options.rate:g} "
        f"--redis-timeout-ms {options.redis_timeout_ms}",
        f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models, {options.distinct} distinct "
        f"requests of up to 60 texts in random order by {options.callers} callers, {options.rate:g} a second together, "
        f"{options.seconds:g} s of each fault. The service keeps nothing in memory, asks Redis for every model, and "
        f"waits {options.redis_timeout_ms} ms for it. Failed: lost, another status, or another answer (1e-6) than a "
        "service without Redis gives.",
        head=HEAD,
    )
    if shutil.which("redis-server") is None:
        raise SystemExit("this trial needs redis-server on the PATH (Debian: apt install redis-server)")
    server = RedisServer()
    try:
        with Served(options.service_cpus, cache="off") as plain:
            models = models_by_task(json.loads(plain.get("/models")[1])["models"])
            asks = await with_answers(plain.url, of_vectors(models, options.distinct, options.seed))
            async with _load(plain, asks, options, 0) as load:
                tally = await load.run(options.seconds)
        times = [tally.percentile(percent) for percent in (50, 99, 100)]
        findings.row("not there", tally.asked, tally.failed, *times, "-", "ready", "-", "-")
        findings.promise(
            "without Redis, under the same load: the same answers",
            tally.failed == 0 and tally.asked > 0,
            f"{tally.failed} of {tally.asked} failed{''.join(f'; {e}' for e in tally.examples)}",
        )
        await _directly(options, findings, server, asks)
        await _through_a_proxy(options, findings, server, asks)
    finally:
        server.close()
    return findings


async def _directly(options: argparse.Namespace, findings: Findings, server: RedisServer, asks: list[Ask]) -> None:
    @asynccontextmanager
    async def killed() -> AsyncIterator[None]:
        server.kill()
        yield
        await asyncio.to_thread(server.start)

    @asynccontextmanager
    async def emptied() -> AsyncIterator[None]:
        server.kill()
        await asyncio.to_thread(server.start)
        await asyncio.sleep(3.0)  # the breaker
        yield

    @asynccontextmanager
    async def stopped() -> AsyncIterator[None]:
        server.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            server.signal(signal.SIGCONT)

    @asynccontextmanager
    async def full() -> AsyncIterator[None]:
        await asyncio.to_thread(_fill, server.client)
        yield
        await asyncio.to_thread(server.client.config_set, "maxmemory", 0)

    def poisoned(poison: Callable[[redis.Redis, random.Random], None]) -> Fault:
        rng = random.Random(options.seed)
        return lambda: _again_and_again(lambda: asyncio.to_thread(poison, server.client, rng))

    with _asking(options, server.port) as served:
        async with _load(served, asks, options, 1) as load:
            trial = Trial(served, load, findings, options.seconds)
            await trial.phase("well, and empty")
            await trial.phase("well, and full of answers")
            await trial.phase("killed", killed, up=False, counted=("error",))
            await trial.phase("restarted empty", emptied)
            await trial.phase("stopped (SIGSTOP)", stopped, up=False, counted=("timeout",))
            await trial.phase("full (noeviction)", full, counted=("error",))
            await trial.phase("poisoned with garbage", poisoned(_garbage), counted=("garbage",))
            await trial.phase("poisoned with other types", poisoned(_other_types))
            await trial.phase("poisoned with embeddings of others", poisoned(_exchanged), counted=("garbage",))
        _check_log(findings, served, "directly")


async def _through_a_proxy(
    options: argparse.Namespace, findings: Findings, server: RedisServer, asks: list[Ask]
) -> None:
    with Proxy(server.port, options.seed) as proxy:

        @asynccontextmanager
        async def slow(seconds: float) -> AsyncIterator[None]:
            proxy.delay(seconds)
            yield
            proxy.delay(0.0)

        @asynccontextmanager
        async def cut() -> AsyncIterator[None]:
            proxy.cut(5000)
            yield
            proxy.cut(0)

        with _asking(options, proxy.port) as served:
            async with _load(served, asks, options, 2) as load:
                trial = Trial(served, load, findings, options.seconds)
                await trial.phase("behind a proxy")
                allowed = options.redis_timeout_ms / 1000
                await trial.phase("late by a fifth of what is allowed", lambda: slow(allowed / 5))
                await trial.phase(
                    "late by four times what is allowed", lambda: slow(allowed * 4), up=False, counted=("timeout",)
                )
                # Short answers pass whole, so to the service it is up and down in turn.
                await trial.phase("resetting connections amid answers", cut, counted=("error",))
            _check_log(findings, served, "behind a proxy")


def _share(before: Metrics, during: Metrics) -> str:
    """Embeddings found in Redis, of those it was asked for."""
    hits, misses = (
        during.total(f"semblance_cache_{kind}_total", tier="redis")
        - before.total(f"semblance_cache_{kind}_total", tier="redis")
        for kind in ("hits", "misses")
    )
    return f"{hits / (hits + misses):.0%}" if hits + misses else "-"


def _asking(options: argparse.Namespace, port: int) -> Served:
    url = f"redis://127.0.0.1:{port}/0"
    return Served(options.service_cpus, **ONLY_REDIS, redis_url=url, redis_timeout_ms=options.redis_timeout_ms)


def _load(served: Served, asks: Sequence[Ask], options: argparse.Namespace, stream: int) -> Load:
    order = in_random_order(asks, options.seed + stream)
    return Load(served.url, order, callers=options.callers, rate=options.rate)


def _check_log(findings: Findings, served: Served, where: str) -> None:
    complaints = served.complaints()
    findings.promise(f"Redis {where}: no error in the service's log", not complaints, complaints[:3] or "none")


@asynccontextmanager
async def _again_and_again(deed: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    async def repeat() -> None:
        while True:
            await deed()
            await asyncio.sleep(_POISON_EVERY)

    await deed()
    task = asyncio.create_task(repeat())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _fill(client: redis.Redis) -> None:
    """Half of the entries are gone, and nothing new is taken."""
    keys = client.keys()
    client.delete(*keys[::2])
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)


def _strings(client: redis.Redis) -> dict[bytes, bytes]:
    keys = [key for key in client.keys("*") if isinstance(key, bytes)]  # the client decodes nothing
    values = client.mget(keys) if keys else []
    return {key: value for key, value in zip(keys, values, strict=True) if isinstance(value, bytes) and value}


def _garbage(client: redis.Redis, rng: random.Random) -> None:
    """Every value: random bytes of its own length, cut short, longer, one bit wrong, empty, or not even binary."""
    spoiled: dict[bytes, bytes] = {}
    for key, value in _strings(client).items():
        bit = bytearray(value)
        bit[rng.randrange(len(bit))] ^= 1 << rng.randrange(8)
        worse = [rng.randbytes(len(value)), value[: len(value) // 2], value + b"\0", bytes(bit), b"", b"garbage"]
        spoiled[key] = rng.choice(worse)
    if spoiled:
        client.mset(spoiled)


def _other_types(client: redis.Redis, rng: random.Random) -> None:
    """Every key is a list, a hash or a set."""
    pipeline = client.pipeline()
    for key in client.keys("*"):
        pipeline.delete(key)
        become = rng.choice(
            [
                partial(pipeline.rpush, key, "a", "b"),
                partial(pipeline.hset, key, "a", "b"),
                partial(pipeline.sadd, key, "a"),
            ]
        )
        become()
    pipeline.execute()


def _exchanged(client: redis.Redis, rng: random.Random) -> None:
    """Every value is that of another sentence or another model, whole and well formed."""
    found = _strings(client)
    values = list(found.values())
    rng.shuffle(values)
    if found:
        client.mset(dict(zip(found, values, strict=True)))
