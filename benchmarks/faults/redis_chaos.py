"""Redis faults under load (killed, stopped, slow, full, read-only, corrupted, emptied, resets): no failed request.

The expected answers are those of a service without Redis and without a cache, to 1e-6. The service under trial has no
cache in memory, so that every request uses Redis: first directly, then through a proxy that delays and resets.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial

import redis

from benchmarks.faults.bodies import models_by_task, of_vectors
from benchmarks.faults.load import Ask, Load, in_random_order, with_answers
from benchmarks.faults.proxy import Proxy
from benchmarks.report import Findings
from benchmarks.servers import Metrics, RedisServer, Service, free_port

HEAD = [
    "Redis is",
    "asked",
    "failed",
    "p50 ms",
    "p99 ms",
    "max ms",
    "read",
    "written",
    "readiness",
    "found there",
    "failures counted",
]
BACK_SECONDS = 10.0  # the service probes every 2
NOTICED_SECONDS = 5.0
ONLY_REDIS = {"cache": "redis", "cache_bytes": 0}  # for all models, also where the graph would be cheaper
_POISON_EVERY = 0.2
Fault = Callable[[], AbstractAsyncContextManager[None]]


class Trial:
    """One service under load, and faults of its Redis."""

    def __init__(self, served: Service, load: Load, findings: Findings, seconds: float) -> None:
        self._served = served
        self._load = load
        self._findings = findings
        self._seconds = seconds

    async def phase(
        self,
        name: str,
        fault: Fault | None = None,
        *,
        says: tuple[bool, bool] | None = None,
        counted: tuple[str, ...] = (),
    ) -> None:
        """Run the load with a fault, then without it until Redis is used again.

        Args:
            name: the state of Redis.
            fault: a context manager; the fault lasts as long as its block.
            says: whether the metrics must report Redis as readable and as writable, with readiness `degraded`; None:
                not checked, because on a busy machine any Redis may miss its time limit.
            counted: kinds of failure that must be counted at least once.
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
        told = (during.total("semblance_redis_up") > 0, during.total("semblance_redis_writable") > 0)
        findings = self._findings
        findings.row(
            name,
            tally.asked,
            tally.failed,
            *tally.times,
            *map(int, told),
            readiness,
            _share(before, during),
            ", ".join(f"{kind} {count}" for kind, count in new.items()) or "none",
        )
        findings.promise(
            f"{name}: every request answered as without Redis",
            tally.right,
            tally.failures,
        )
        if fault is not None:
            if says is not None:
                findings.promise(
                    f"{name}: readiness says `degraded`, and metrics whether it is read and written",
                    (told, readiness) == (says, "degraded"),
                    f"{readiness}, read {told[0]}, written {told[1]}",
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
            f"{name}, then recovered: in use within {BACK_SECONDS:g} s, nothing failed",
            readiness == "ready" and tally.failed == 0,
            f"{readiness} after {time.monotonic() - began:.1f} s, {tally.failed} of {tally.asked} failed",
        )

    async def _metrics(self) -> Metrics:
        return await asyncio.to_thread(self._served.metrics)

    async def _readiness(self) -> str:
        status, body = await asyncio.to_thread(self._served.readiness)
        return str(body["status"]) if status == 200 else f"{body['status']} ({status})"


async def run(options: argparse.Namespace) -> Findings:
    """Run all phases."""
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
    with RedisServer() as server:
        with Service(options.service_cpus, cache="off") as plain:
            models = models_by_task(json.loads(plain.get("/models")[1])["models"])
            asks = await with_answers(plain.url, of_vectors(models, options.distinct, options.seed))
            async with _load(plain, asks, options, 0) as load:
                tally = await load.run(options.seconds)
        findings.row("absent", tally.asked, tally.failed, *tally.times, "-", "-", "ready", "-", "-")
        findings.promise(
            "without Redis, under the same load: the same answers",
            tally.right,
            tally.failures,
        )
        await _directly(options, findings, server, asks)
        await _through_a_proxy(options, findings, server, asks)
        await _unasked(options, findings, server)
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
        await asyncio.sleep(3.0)  # time for a probe
        yield

    @asynccontextmanager
    async def stopped() -> AsyncIterator[None]:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(server.pid, signal.SIGCONT)

    @asynccontextmanager
    async def full() -> AsyncIterator[None]:
        await asyncio.to_thread(_fill, server.client)
        yield
        await asyncio.to_thread(server.client.config_set, "maxmemory", 0)

    @asynccontextmanager
    async def replica() -> AsyncIterator[None]:
        await asyncio.to_thread(server.client.replicaof, "127.0.0.1", "1")  # without a server there, it keeps its data
        yield
        await asyncio.to_thread(server.client.replicaof, "no", "one")

    def poisoned(poison: Callable[[redis.Redis, random.Random], None]) -> Fault:
        rng = random.Random(options.seed)
        return lambda: _again_and_again(lambda: asyncio.to_thread(poison, server.client, rng))

    with _asking(options, server.port) as served:
        async with _load(served, asks, options, 1) as load:
            trial = Trial(served, load, findings, options.seconds)
            await trial.phase("available and empty")
            await trial.phase("available and filled")
            await trial.phase("killed", killed, says=(False, False), counted=("error",))
            await trial.phase("restarted empty", emptied)
            await trial.phase("stopped (SIGSTOP)", stopped, says=(False, False), counted=("timeout",))
            await trial.phase("full (noeviction)", full, says=(True, False), counted=("error",))
            await trial.phase("a read-only replica", replica, says=(True, False), counted=("error",))
            await trial.phase("values replaced by garbage", poisoned(_garbage), counted=("garbage",))
            await trial.phase("values replaced by other types", poisoned(_other_types))
            await trial.phase("values exchanged between keys", poisoned(_exchanged), counted=("garbage",))
        _check_log(findings, served, "directly")


async def _through_a_proxy(
    options: argparse.Namespace, findings: Findings, server: RedisServer, asks: list[Ask]
) -> None:
    with Proxy(server.port, options.seed) as proxy:

        @asynccontextmanager
        async def slow(seconds: float) -> AsyncIterator[None]:
            proxy.faults.delay = seconds
            yield
            proxy.faults.delay = 0.0

        @asynccontextmanager
        async def cut() -> AsyncIterator[None]:
            proxy.faults.cut = 5000
            yield
            proxy.faults.cut = 0

        with _asking(options, proxy.port) as served:
            async with _load(served, asks, options, 2) as load:
                trial = Trial(served, load, findings, options.seconds)
                await trial.phase("behind a proxy")
                allowed = options.redis_timeout_ms / 1000
                await trial.phase("slow: a fifth of the time limit", lambda: slow(allowed / 5))
                await trial.phase(
                    "slow: four times the time limit",
                    lambda: slow(allowed * 4),
                    says=(False, False),
                    counted=("timeout",),
                )
                # Short answers pass, so for the service Redis is alternately up and down.
                await trial.phase("connections reset within answers", cut, counted=("error",))
            _check_log(findings, served, "behind a proxy")


async def _unasked(options: argparse.Namespace, findings: Findings, server: RedisServer) -> None:
    """Redis stops and returns while there are no requests; then Redis in cluster mode."""

    async def says(served: Service, expected: str) -> None:
        began = time.monotonic()
        status, reasons = "", ""
        while status != expected and time.monotonic() - began < BACK_SECONDS:
            body = (await asyncio.to_thread(served.readiness))[1]
            status, reasons = str(body["status"]), str(body["reasons"])
            await asyncio.sleep(0.05)
        seconds = time.monotonic() - began
        findings.promise(
            f"without requests, Redis {'stops' if expected == 'degraded' else 'is back'}: readiness says `{expected}` "
            f"within {NOTICED_SECONDS:g} s",
            status == expected and seconds < NOTICED_SECONDS,
            f"{status} after {seconds:.1f} s: {reasons}",
        )

    with _asking(options, server.port) as served:
        server.kill()
        await says(served, "degraded")
        await asyncio.to_thread(server.start)
        await says(served, "ready")
    server.kill()
    await asyncio.to_thread(server.start, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    await asyncio.to_thread(server.client.execute_command, "CLUSTER ADDSLOTSRANGE", 0, 16383)
    with _asking(options, server.port) as served:
        await asyncio.sleep(NOTICED_SECONDS)
        body = (await asyncio.to_thread(served.readiness))[1]
        findings.promise(
            "in cluster mode: readiness says so", "cluster mode" in str(body["reasons"]), str(body["reasons"])
        )


def _share(before: Metrics, during: Metrics) -> str:
    """The hit rate of Redis between two scrapes."""
    hits, misses = (
        during.total(f"semblance_cache_{kind}_total", tier="redis")
        - before.total(f"semblance_cache_{kind}_total", tier="redis")
        for kind in ("hits", "misses")
    )
    return f"{hits / (hits + misses):.0%}" if hits + misses else "-"


def _asking(options: argparse.Namespace, port: int) -> Service:
    url = f"redis://127.0.0.1:{port}/0"
    return Service(options.service_cpus, **ONLY_REDIS, redis_url=url, redis_timeout_ms=options.redis_timeout_ms)


def _load(served: Service, asks: Sequence[Ask], options: argparse.Namespace, stream: int) -> Load:
    order = in_random_order(asks, options.seed + stream)
    return Load(served.url, order, callers=options.callers, rate=options.rate)


def _check_log(findings: Findings, served: Service, where: str) -> None:
    findings.quiet(f"Redis {where}: no error in the service's log", served.complaints())


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
    """Delete half of the entries, and refuse new ones."""
    keys = client.keys()
    client.delete(*keys[::2])
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)


def _strings(client: redis.Redis) -> dict[bytes, bytes]:
    keys = [key for key in client.keys("*") if isinstance(key, bytes)]  # the client decodes nothing
    values = client.mget(keys) if keys else []
    return {key: value for key, value in zip(keys, values, strict=True) if isinstance(value, bytes) and value}


def _garbage(client: redis.Redis, rng: random.Random) -> None:
    """Replace every value: random bytes of the same length, cut short, longer, one bit flipped, empty, or text."""
    spoiled: dict[bytes, bytes] = {}
    for key, value in _strings(client).items():
        bit = bytearray(value)
        bit[rng.randrange(len(bit))] ^= 1 << rng.randrange(8)
        worse = [rng.randbytes(len(value)), value[: len(value) // 2], value + b"\0", bytes(bit), b"", b"garbage"]
        spoiled[key] = rng.choice(worse)
    if spoiled:
        client.mset(spoiled)


def _other_types(client: redis.Redis, rng: random.Random) -> None:
    """Make every key a list, a hash or a set."""
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
    """Exchange the values: each key gets the valid value of another sentence or model."""
    found = _strings(client)
    values = list(found.values())
    rng.shuffle(values)
    if found:
        client.mset(dict(zip(found, values, strict=True)))
