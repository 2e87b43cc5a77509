"""Redis faults under load: no request fails, and Redis is in use again soon after.

The expected answers are those of a service without Redis and without a cache, to 3e-6. The service under trial has no
cache in memory, so that every request uses Redis: first directly, then through a proxy that delays and resets. What
needs no load is a test: values that are no vectors or those of others, replicas, cluster mode (`test_redis_*.py`).
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.faults.bodies import of_vectors
from benchmarks.faults.load import Load, with_answers
from benchmarks.faults.proxy import Faults, standing_before
from benchmarks.faults.trial import Kind, Trial, models_of, until
from benchmarks.servers import RedisServer, Service

DISTINCT = 200  # requests
BACK_SECONDS, NOTICED_SECONDS = 10.0, 5.0  # the service probes every 2
ONLY_REDIS = {"cache": "redis", "cache_bytes": 0}  # for all models, also where the graph would be cheaper


@dataclass
class Rig:
    """What faults are made with."""

    server: RedisServer
    timeout: float  # seconds that the service waits for Redis
    proxy: Faults = field(default_factory=Faults)

    def signal(self, number: int) -> None:
        """Send a signal to the server."""
        os.kill(self.server.pid, number)

    def memory(self, limit: int) -> None:
        """Set the server's limit; 0: none."""
        self.server.client.config_set("maxmemory-policy", "noeviction")
        self.server.client.config_set("maxmemory", limit)

    def behave(self, delay: float = 0.0, cut: int = 0) -> None:
        """Set the proxy's faults; a delay is in time limits."""
        self.proxy.delay, self.proxy.cut = delay * self.timeout, cut


@dataclass(frozen=True)
class Fault:
    """A state of Redis. Functions run in a thread."""

    name: str
    begin: Callable[[Rig], object] = lambda _: None
    end: Callable[[Rig], object] | None = None
    says: tuple[bool, bool] | None = None  # what metrics say then: read, written; None where a busy machine decides it
    counted: str = ""  # the kind of failure that must be counted


DIRECTLY = (
    Fault("available"),
    Fault("killed", lambda rig: rig.server.kill(), lambda rig: rig.server.start(), (False, False), "error"),
    Fault("emptied", lambda rig: rig.server.client.flushall()),
    Fault("stopped (SIGSTOP)", lambda rig: rig.signal(signal.SIGSTOP), lambda rig: rig.signal(signal.SIGCONT),
          (False, False), "timeout"),
    Fault("full (noeviction)", lambda rig: rig.memory(1), lambda rig: rig.memory(0), (True, False), "error"),
)  # fmt: skip
BEHIND_A_PROXY = (
    Fault("slow: a fifth of the time limit", lambda rig: rig.behave(0.2), lambda rig: rig.behave()),
    Fault("slow: four times the time limit", lambda rig: rig.behave(4), lambda rig: rig.behave(),
          (False, False), "timeout"),
    # Short answers pass, so for the service Redis is alternately up and down.
    Fault("connections reset within answers", lambda rig: rig.behave(cut=5000), lambda rig: rig.behave(),
          counted="error"),
)  # fmt: skip


async def run(trial: Trial) -> None:
    """Run all of them."""
    options = trial.options
    with RedisServer() as server:
        rig = Rig(server, options.redis_timeout_ms / 1000)
        with trial.service(cache="off") as plain:
            asks = await with_answers(plain.url, of_vectors(models_of(plain), DISTINCT, options.seed))
        async with standing_before(server.port, rig.proxy, random.Random(options.seed)) as port:
            for stream, (at, faults) in enumerate(((server.port, DIRECTLY), (port, BEHIND_A_PROXY))):
                url = f"redis://127.0.0.1:{at}/0"
                with trial.service(**ONLY_REDIS, redis_url=url, redis_timeout_ms=options.redis_timeout_ms) as served:
                    async with trial.load(served, asks, stream) as load:
                        for fault in faults:
                            await _phase(trial, served, load, rig, fault)
                    if faults is DIRECTLY:
                        await _unasked(trial, served, server)
                    trial.quiet(f"after {fault.name}", served.complaints())


async def _phase(trial: Trial, served: Service, load: Load, rig: Rig, fault: Fault) -> None:
    """Run the load with a fault, then without it until Redis is used again."""
    was = (await asyncio.to_thread(served.metrics)).by("semblance_redis_failures_total", "kind")
    load.take()
    await asyncio.to_thread(fault.begin, rig)
    await asyncio.sleep(trial.options.seconds)
    during = await asyncio.to_thread(served.metrics)
    readiness = (await asyncio.to_thread(served.readiness))[1]["status"]
    if fault.end is not None:
        await asyncio.to_thread(fault.end, rig)
    tally = load.take()
    now = during.by("semblance_redis_failures_total", "kind")
    new = {kind: int(value - was[kind]) for kind, value in now.items() if value > was[kind]}
    told = (during.total("semblance_redis_up") > 0, during.total("semblance_redis_writable") > 0)
    counts = ", ".join(f"{kind} {count}" for kind, count in new.items()) or "none"
    trial.row(fault.name, tally.asked, tally.failed, *tally.times, *map(int, told), readiness, counts)
    trial.answered(fault.name, tally)
    if fault.says is not None:
        what = "readiness says `degraded`, and metrics whether it is read and written"
        kept = (told, readiness) == (fault.says, "degraded")
        trial.promise(f"{fault.name}: {what}", kept, f"{readiness}, read {told[0]}, written {told[1]}")
    if fault.counted:
        trial.promise(f"{fault.name}: {fault.counted} counted", fault.counted in new, counts)
    if fault.end is not None:
        seconds = await until(lambda: served.readiness()[1]["status"] == "ready", BACK_SECONDS)
        tally = load.take()
        what = f"in use within {BACK_SECONDS:g} s, nothing failed"
        kept = seconds < BACK_SECONDS and tally.failed == 0
        trial.promise(f"{fault.name}, then recovered: {what}", kept, f"after {seconds:.1f} s, {tally.failures}")


async def _unasked(trial: Trial, served: Service, server: RedisServer) -> None:
    """Redis stops and returns while there are no requests."""
    for status, change in (("degraded", server.kill), ("ready", server.start)):
        await asyncio.to_thread(change)
        seconds = await until(lambda status=status: served.readiness()[1]["status"] == status, BACK_SECONDS)  # type: ignore[misc]
        what = f"without requests, Redis {'is back' if status == 'ready' else 'stops'}: readiness says `{status}`"
        trial.promise(f"{what} within {NOTICED_SECONDS:g} s", seconds < NOTICED_SECONDS, f"after {seconds:.1f} s")


KIND = Kind(
    "Redis failing under load",
    f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models, {DISTINCT} distinct requests of up to 60 texts "
    "in random order by {callers} callers, {rate:g} a second together, {seconds:g} s of each fault. The service keeps "
    "nothing in memory, asks Redis for every model, and waits {redis_timeout_ms} ms for it. Failed: lost, another "
    "status, or another answer (3e-6) than a service without Redis gives.",
    ("Redis is", "asked", "failed", "p50 ms", "p99 ms", "max ms", "read", "written", "readiness", "failures counted"),
    {"rate": 100.0, "callers": 8, "seconds": 10.0, "redis_timeout_ms": 50},
    run,
)
