"""Redis faults under load (killed, stopped, slow, full, read-only, corrupted, emptied, resets): no failed request.

The expected answers are those of a service without Redis and without a cache, to 1e-6. The service under trial has no
cache in memory, so that every request uses Redis: first directly, then through a proxy that delays and resets.
"""

import argparse
import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import redis

from benchmarks.faults.bodies import of_vectors
from benchmarks.faults.load import Load, with_answers
from benchmarks.faults.proxy import Faults, standing_before
from benchmarks.faults.trial import Trial, models_of, until
from benchmarks.servers import Metrics, RedisServer, Service, free_port

HEAD = [
    "Redis is", "asked", "failed", "p50 ms", "p99 ms", "max ms", "read", "written", "readiness", "found there",
    "failures counted",
]  # fmt: skip
DISTINCT = 200  # requests
BACK_SECONDS, NOTICED_SECONDS = 10.0, 5.0  # the service probes every 2
ONLY_REDIS = {"cache": "redis", "cache_bytes": 0}  # for all models, also where the graph would be cheaper
_AGAIN_SECONDS = 0.2


@dataclass
class Rig:
    """What faults are made with."""

    server: RedisServer
    rng: random.Random
    timeout: float  # seconds that the service waits for Redis
    proxy: Faults = field(default_factory=Faults)


@dataclass(frozen=True)
class Fault:
    """A state of Redis. Functions run in a thread."""

    name: str
    begin: Callable[[Rig], object] | None = None
    end: Callable[[Rig], object] | None = None
    says: tuple[bool, bool] | None = None  # what metrics say then: read, written; None where a busy machine decides it
    counted: str = ""  # the kind of failure that must be counted
    again: bool = False  # whether it is begun again and again


def _fill(rig: Rig) -> None:
    """Delete half of the entries, and refuse new ones."""
    client = rig.server.client
    client.delete(*client.keys()[::2])
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)


def _restart(rig: Rig) -> None:
    rig.server.kill()
    rig.server.start()
    time.sleep(3.0)  # for a probe


def _strings(client: redis.Redis) -> dict[bytes, bytes]:
    keys = [key for key in client.keys("*") if isinstance(key, bytes)]  # the client decodes nothing
    values = client.mget(keys) if keys else []
    return {key: value for key, value in zip(keys, values, strict=True) if isinstance(value, bytes) and value}


def _garbage(rig: Rig) -> None:
    """Replace every value: random bytes of the same length, cut short, longer, one bit flipped, empty, or text."""
    rng, spoiled = rig.rng, {}
    for key, value in _strings(rig.server.client).items():
        bit = bytearray(value)
        bit[rng.randrange(len(bit))] ^= 1 << rng.randrange(8)
        worse = [rng.randbytes(len(value)), value[: len(value) // 2], value + b"\0", bytes(bit), b"", b"garbage"]
        spoiled[key] = rng.choice(worse)
    if spoiled:
        rig.server.client.mset(spoiled)


def _other_types(rig: Rig) -> None:
    """Make every key a list, a hash or a set."""
    pipeline = rig.server.client.pipeline()
    for key in rig.server.client.keys("*"):
        pipeline.delete(key)
        rig.rng.choice([partial(pipeline.rpush, key, "a", "b"), partial(pipeline.hset, key, "a", "b"),
                        partial(pipeline.sadd, key, "a")])()  # fmt: skip
    pipeline.execute()


def _exchanged(rig: Rig) -> None:
    """Exchange the values: each key gets the valid value of another sentence or model."""
    found = _strings(rig.server.client)
    values = list(found.values())
    rig.rng.shuffle(values)
    if found:
        rig.server.client.mset(dict(zip(found, values, strict=True)))


def _signal(number: int) -> Callable[[Rig], object]:
    return lambda rig: os.kill(rig.server.pid, number)


def _replica(*of: str) -> Callable[[Rig], object]:
    return lambda rig: rig.server.client.replicaof(*of)


def _proxy(**faults: float) -> Callable[[Rig], object]:
    """Set the proxy's faults; a delay is in time limits."""

    def change(rig: Rig) -> None:
        rig.proxy.delay, rig.proxy.cut = faults.get("delay", 0.0) * rig.timeout, int(faults.get("cut", 0))

    return change


DIRECTLY = (
    Fault("available and empty"),
    Fault("available and filled"),
    Fault("killed", lambda rig: rig.server.kill(), lambda rig: rig.server.start(), (False, False), "error"),
    Fault("restarted empty", _restart, lambda _: None),
    Fault("stopped (SIGSTOP)", _signal(signal.SIGSTOP), _signal(signal.SIGCONT), (False, False), "timeout"),
    Fault("full (noeviction)", _fill, lambda rig: rig.server.client.config_set("maxmemory", 0), (True, False), "error"),
    # Of a server that is not there, so that it keeps its data.
    Fault("a read-only replica", _replica("127.0.0.1", "1"), _replica("no", "one"), (True, False), "error"),
    Fault("values replaced by garbage", _garbage, lambda _: None, counted="garbage", again=True),
    Fault("values replaced by other types", _other_types, lambda _: None, again=True),
    Fault("values exchanged between keys", _exchanged, lambda _: None, counted="garbage", again=True),
)
BEHIND_A_PROXY = (
    Fault("behind a proxy"),
    Fault("slow: a fifth of the time limit", _proxy(delay=0.2), _proxy()),
    Fault("slow: four times the time limit", _proxy(delay=4), _proxy(), (False, False), "timeout"),
    # Short answers pass, so for the service Redis is alternately up and down.
    Fault("connections reset within answers", _proxy(cut=5000), _proxy(), counted="error"),
)


async def run(options: argparse.Namespace) -> Trial:
    """Run all of them."""
    trial = Trial(
        options,
        "Redis failing under load",
        f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models, {DISTINCT} distinct requests of up to 60 "
        f"texts in random order by {options.callers} callers, {options.rate:g} a second together, {options.seconds:g} "
        "s of each fault. The service keeps nothing in memory, asks Redis for every model, and waits "
        f"{options.redis_timeout_ms} ms for it. Failed: lost, another status, or another answer (1e-6) than a service "
        "without Redis gives.",
        HEAD,
    )
    with RedisServer() as server:
        rig = Rig(server, random.Random(options.seed), options.redis_timeout_ms / 1000)
        with trial.service(cache="off") as plain:
            asks = await with_answers(plain.url, of_vectors(models_of(plain), DISTINCT, options.seed))
            async with trial.load(plain, asks) as load:
                tally = await load.run(options.seconds)
        trial.row("absent", tally.asked, tally.failed, *tally.times, "-", "-", "ready", "-", "-")
        trial.answered("without Redis, under the same load", tally)
        async with standing_before(server.port, rig.proxy, rig.rng) as port:
            for stream, (at, faults) in enumerate(((server.port, DIRECTLY), (port, BEHIND_A_PROXY)), 1):
                with _asking(trial, at) as served:
                    async with trial.load(served, asks, stream) as load:
                        for fault in faults:
                            await _phase(trial, served, load, rig, fault)
                    trial.quiet(f"after {fault.name}: no error in the service's log", served.complaints())
        await _unasked(trial, server)
    return trial


def _asking(trial: Trial, port: int) -> Service:
    url = f"redis://127.0.0.1:{port}/0"
    return trial.service(**ONLY_REDIS, redis_url=url, redis_timeout_ms=trial.options.redis_timeout_ms)


async def _phase(trial: Trial, served: Service, load: Load, rig: Rig, fault: Fault) -> None:
    """Run the load with a fault, then without it until Redis is used again."""
    before = await asyncio.to_thread(served.metrics)
    load.take()
    if fault.begin is not None:
        await asyncio.to_thread(fault.begin, rig)
    until_then = time.monotonic() + trial.options.seconds
    while (left := until_then - time.monotonic()) > 0:
        await asyncio.sleep(min(left, _AGAIN_SECONDS))
        if fault.again and fault.begin is not None:
            await asyncio.to_thread(fault.begin, rig)
    during, readiness = await asyncio.to_thread(served.metrics), await asyncio.to_thread(_readiness, served)
    if fault.end is not None:
        await asyncio.to_thread(fault.end, rig)
    tally = load.take()
    was = before.by("semblance_redis_failures_total", "kind")
    now = during.by("semblance_redis_failures_total", "kind")
    new = {kind: int(value - was[kind]) for kind, value in now.items() if value > was[kind]}
    told = (during.total("semblance_redis_up") > 0, during.total("semblance_redis_writable") > 0)
    counts = ", ".join(f"{kind} {count}" for kind, count in new.items()) or "none"
    found = _share(before, during)
    trial.row(fault.name, tally.asked, tally.failed, *tally.times, *map(int, told), readiness, found, counts)
    trial.answered(fault.name, tally)
    if fault.says is not None:
        trial.promise(
            f"{fault.name}: readiness says `degraded`, and metrics whether it is read and written",
            (told, readiness) == (fault.says, "degraded"),
            f"{readiness}, read {told[0]}, written {told[1]}",
        )
    if fault.counted:
        trial.promise(f"{fault.name}: {fault.counted} counted", fault.counted in new, counts)
    if fault.end is not None:
        seconds = await until(lambda: _readiness(served) == "ready", BACK_SECONDS)
        tally = load.take()
        trial.promise(
            f"{fault.name}, then recovered: in use within {BACK_SECONDS:g} s, nothing failed",
            seconds < BACK_SECONDS and tally.failed == 0,
            f"after {seconds:.1f} s, {tally.failures}",
        )


async def _unasked(trial: Trial, server: RedisServer) -> None:
    """Redis stops and returns while there are no requests; then Redis in cluster mode."""
    with _asking(trial, server.port) as served:
        for status, change in (("degraded", server.kill), ("ready", server.start)):
            await asyncio.to_thread(change)
            seconds = await until(lambda status=status: _readiness(served) == status, BACK_SECONDS)  # type: ignore[misc]
            what = f"without requests, Redis {'is back' if status == 'ready' else 'stops'}: readiness says `{status}`"
            trial.promise(f"{what} within {NOTICED_SECONDS:g} s", seconds < NOTICED_SECONDS, f"after {seconds:.1f} s")
    server.kill()
    await asyncio.to_thread(server.start, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    await asyncio.to_thread(server.client.execute_command, "CLUSTER ADDSLOTSRANGE", 0, 16383)
    with _asking(trial, server.port) as served:
        await asyncio.sleep(NOTICED_SECONDS)
        reasons = str(served.readiness()[1]["reasons"])
        trial.promise("in cluster mode: readiness says so", "cluster mode" in reasons, reasons)


def _readiness(served: Service) -> str:
    status, body = served.readiness()
    return str(body["status"]) if status == 200 else f"{body['status']} ({status})"


def _share(before: Metrics, during: Metrics) -> str:
    """The hit rate of Redis between two scrapes."""
    hits, misses = (
        during.total(f"semblance_cache_{kind}_total", tier="redis")
        - before.total(f"semblance_cache_{kind}_total", tier="redis")
        for kind in ("hits", "misses")
    )
    return f"{hits / (hits + misses):.0%}" if hits + misses else "-"
