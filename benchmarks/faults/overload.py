"""Overload by half as many callers again as are let in: the excess is refused at once, the rest is answered in time.

For each of three kinds of request (a cheap model with warm caches, a heavy one without caches, large requests) wrk
measures the saturation rate over few connections, and then floods: each of its connections asks again as soon as it was
answered or refused. A few callers beside it time their answers. Every refusal must have Retry-After.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.closed_loop import Measured
from benchmarks.closed_loop import load as closed_loop
from benchmarks.faults.load import Ask, Load, in_random_order
from benchmarks.report import Findings
from benchmarks.sentences import sentences
from benchmarks.servers import Service

CONNECTIONS = 1.5  # of the flood, per request that the service admits; fewer could not overload it
CALLERS, ASKED_EACH = 16, 10.0  # beside it, and their requests a second
LEAST_ANSWERED = 0.4
MEMORY_MB = 256.0  # growth that is allowed for a full queue
# Factors on the time of a full queue: the queue's length is based on an estimated rate, its order is not first come,
# first served, and with this many busy connections a request costs a third more than with 64.
SLACK, SLACK_OF_CHEAP = 2.0, 3.0
HEAD = [
    "load", "most answered/s", "asked/s", "times", "of them 200/s", "callers: 200", "429", "others", "p50 ms", "p99 ms",
    "max ms", "bound ms", "MB before", "MB peak",
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of request."""

    name: str
    path: str
    bodies: Sequence[bytes]
    warm: bool  # and so cheap that it is computed in the event loop, without the queue
    connections: int  # of the closed loop: enough to saturate the service, and few enough that it refuses none


def kinds(heavy: str) -> list[Kind]:
    """The three kinds; bodies are distinct, so that requests in flight do not share answers."""
    cheap, costly, many = (sentences(count, seed) for seed, count in enumerate((1000, 8000, 60 * 1001), 1))
    single = [json.dumps({"pairs": [{"a": a, "b": b}]}) for a, b in zip(cheap[::2], cheap[1::2], strict=True)]
    pairs = [
        json.dumps({"pairs": [{"a": a, "b": b}], "model": heavy})
        for a, b in zip(costly[::2], costly[1::2], strict=True)
    ]
    large = [
        json.dumps({"query": many[i], "candidates": many[i + 1 : i + 1001], "top_k": 10})
        for i in range(0, len(many), 1001)
    ]
    return [
        Kind("cheap: one pair, averaging, warm", "/similarity", [body.encode() for body in single], True, 64),
        Kind(f"heavy: one pair, {heavy}, cold", "/similarity", [body.encode() for body in pairs], False, 8),
        Kind("large: /rank of 1,000, averaging, cold", "/rank", [body.encode() for body in large], False, 4),
    ]


async def run(options: argparse.Namespace) -> Findings:
    """Run all kinds."""
    findings = Findings(
        "overload",
        "More callers than are let in",
        f"python -m benchmarks.faults overload --seconds {options.seconds:g}",
        f"{CONNECTIONS:g} times as many connections of wrk as requests are let in, for {options.seconds:g} s; "
        f"latencies are those of the 200s of {CALLERS} callers beside it. Bound, in times that a full queue takes: for "
        f"cheap ones {SLACK_OF_CHEAP:g}, of one on each connection (`SEMBLANCE_MAX_IN_FLIGHT`, "
        f"{options.max_in_flight}) at the measured rate; for others {SLACK:g}, of the work let in "
        f"(`SEMBLANCE_MAX_QUEUE_SECONDS`, "
        f"{options.max_queue_seconds:g}). "
        f"Service on cores {options.service_cpus or 'any'}, load on {options.client_cpus or 'any'}.",
        head=HEAD,
    )
    for kind in kinds(options.heavy):
        if options.only and not kind.name.startswith(tuple(options.only)):
            continue
        own = {} if kind.warm else {"cache_bytes": 0}
        with Service(
            options.service_cpus,
            max_in_flight=options.max_in_flight,
            max_queue_seconds=options.max_queue_seconds,
            **own,
        ) as served:
            if kind.warm:
                closed = await asyncio.to_thread(_closed, served, kind, 3.0, options)  # sends each body many times
            closed = await asyncio.to_thread(_closed, served, kind, options.saturation_seconds, options)
            findings.promise(
                f"{kind.name}: {kind.connections} connections at once are all answered",
                closed.refused == closed.broken == 0,
                f"{closed.requests} requests, {closed.refused} refused, {closed.broken} broken",
            )
            if not closed.requests:
                raise SystemExit(
                    f"{kind.name}: not one answer in {options.saturation_seconds:g} s: ask for more of them"
                )
            await asyncio.sleep(1)
            await _overload(served, kind, closed.rate, findings, options)
            findings.quiet(f"{kind.name}: no error in the log", served.complaints())
    return findings


def _closed(
    served: Service, kind: Kind, seconds: float, options: argparse.Namespace, connections: int | None = None
) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.jsonl"
        bodies.write_bytes(b"\n".join(kind.bodies) + b"\n")
        at_once = connections or kind.connections
        return closed_loop(served.port, kind.path, bodies, 0, at_once, seconds, options.client_cpus)


async def _overload(served: Service, kind: Kind, most: float, findings: Findings, options: argparse.Namespace) -> None:
    before = served.resources()
    connections = round(CONNECTIONS * options.max_in_flight)
    asks = [Ask(kind.path, body) for body in kind.bodies]
    async with Load(
        served.url, in_random_order(asks, options.seed), callers=CALLERS, rate=CALLERS * ASKED_EACH
    ) as load:
        await asyncio.sleep(0.2)
        offered = await asyncio.to_thread(_closed, served, kind, options.seconds, options, connections)
        tally = load.take()
        load.hold()
    after = served.resources()
    await asyncio.sleep(1.0)
    metrics = served.metrics()

    answered, refused = tally.statuses[200], tally.statuses[429]
    others = tally.lost + tally.statuses.total() - answered - refused
    good = offered.requests - offered.refused
    bound_ms = 1000 * (SLACK_OF_CHEAP * connections / most if kind.warm else SLACK * options.max_queue_seconds)
    p50, p99, largest = (tally.percentile(percent) for percent in (50, 99, 100))
    sent = offered.requests / offered.seconds
    findings.row(
        *(kind.name, round(most), round(sent), round(sent / most, 2), round(good / offered.seconds)),
        *(answered, refused, others, p50, p99, largest, round(bound_ms)),
        *(round(before.resident_mb), round(after.peak_mb)),
    )
    findings.values[kind.name] = {"closed_loop_rate": most, "flood": vars(offered), "callers": dict(tally.statuses)}
    says = findings.promise
    says(f"{kind.name}: the flood was refused in part", offered.refused > 0, f"{offered.refused} of {offered.requests}")
    says(f"{kind.name}: only 200 and 429", others == offered.broken == 0, f"{others}, {offered.broken} broken")
    says(f"{kind.name}: each 429 says Retry-After and retry-after-ms", tally.bare == 0, f"{refused - tally.bare} do")
    says(f"{kind.name}: p99 of the callers' 200s", p99 <= bound_ms, f"{p99:.0f} of {bound_ms:.0f} ms")
    says(
        f"{kind.name}: at least {LEAST_ANSWERED:.0%} of the measured rate is still answered",
        good / offered.seconds >= LEAST_ANSWERED * most,
        f"{good / offered.seconds:.0f}/s, {good / offered.seconds / most:.0%}",
    )
    says(
        f"{kind.name}: memory is bounded",
        after.peak_mb - before.resident_mb <= MEMORY_MB,
        f"{before.resident_mb:.0f} MB before, {after.peak_mb:.0f} at most",
    )
    gauges = {name: metrics.total(f"semblance_{name}") for name in ("requests_in_flight", "workers_busy")}
    says(
        f"{kind.name}: an empty queue a second later",
        # The scrape itself is one in flight.
        gauges["requests_in_flight"] <= 1 and gauges["workers_busy"] == 0,
        gauges,
    )
