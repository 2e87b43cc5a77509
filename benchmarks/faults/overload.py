"""Overload at five times the saturation rate: the excess is refused at once, the rest is answered in time.

For each of three kinds of request (a cheap model with warm caches, a heavy one without caches, large requests) a closed
loop measures the saturation rate, and an open loop then sends five times that. Every refusal must have Retry-After.
Then many bodies of the largest size that stop before their last byte: their memory is bounded.
"""

import argparse
import asyncio
import json
import socket
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.closed_loop import Measured
from benchmarks.closed_loop import load as closed_loop
from benchmarks.open_loop import BARE, NOT_SENT, Plan, start
from benchmarks.report import Findings
from benchmarks.sentences import sentences
from benchmarks.servers import Service, pinned

TIMES = 5.0
CONNECTIONS = 1.5  # of the load, per request that the service admits; fewer could not overload it
PATIENCE_SECONDS = 0.2  # that a request waits for a free connection
LEAST_TIMES = 4.5  # of the rate that was sent, as the generator may be late
LEAST_ANSWERED = 0.4
MEMORY_MB = 256.0  # growth that is allowed for a full queue
STALLED = 256
STALLED_MB = 512.0  # half of the size of all bodies together
# Factors on the time of a full queue: the queue's length is based on an estimated rate, its order is not first come,
# first served, and with this many busy connections a request costs a third more than with 64.
SLACK, SLACK_OF_CHEAP = 2.0, 3.0
HEAD = [
    "load", "most answered/s", "due/s", "times", "sent, times", "200", "429", "others", "200/s", "p50 ms", "p99 ms",
    "max ms", "bound ms", "last answer after ms", "MB before", "MB peak", "generator late p99 ms",
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
    """Run all kinds, and the stalled bodies."""
    findings = Findings(
        "overload",
        "Five times the saturation rate",
        f"python -m benchmarks.faults overload --seconds {options.seconds:g}",
        f"{TIMES:g} times what a closed loop (wrk) gets answered, sent in an open loop with Poisson arrivals over "
        f"{CONNECTIONS:g} times as many connections as requests are let in, for {options.seconds:g} s; a request that "
        f"finds none free for {PATIENCE_SECONDS:g} s is not sent: a refusal takes its time too. Latencies of the 200s "
        f"count from when a request left. Bound, in times that a full queue takes: for cheap ones {SLACK_OF_CHEAP:g}, "
        f"of one on each connection (`SEMBLANCE_MAX_IN_FLIGHT`, {options.max_in_flight}) at the measured rate; for "
        f"others {SLACK:g}, of the work let in (`SEMBLANCE_MAX_QUEUE_SECONDS`, {options.max_queue_seconds:g}). "
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
            await asyncio.to_thread(_overload, served, kind, closed.rate, findings, options)
            findings.quiet(f"{kind.name}: no error in the log", served.complaints())
    if not options.only or "stalled" in options.only:
        with Service(options.service_cpus, request_timeout=60) as served:
            await asyncio.to_thread(_stall, served, findings)
    return findings


def _stall(served: Service, findings: Findings) -> None:
    """Send bodies that stop before their last byte, on more and more connections."""
    name = f"stalled: {STALLED} bodies of 4 MiB that do not end"
    size = 4 * 1024 * 1024
    head = f"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode()
    before = served.resources().resident_mb
    with ExitStack() as stack:
        refused = 0
        for _ in range(STALLED):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=10))
            try:
                connection.sendall(head + b" " * (size - 1))
            except OSError:  # refused before it was all sent
                refused += 1
        held = served.resources().peak_mb
        began = time.monotonic()
        status, _ = served.get("/health/ready")
        took_ms = (time.monotonic() - began) * 1000
        time.sleep(0.5)
    findings.promise(
        f"{name}: memory is bounded",
        held - before <= STALLED_MB,
        f"{before:.0f} MB before, {held:.0f} at most; {refused} refused while they were sent",
    )
    findings.promise(f"{name}: readiness answers meanwhile", status == 200, f"{status} after {took_ms:.0f} ms")


def _closed(served: Service, kind: Kind, seconds: float, options: argparse.Namespace) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.jsonl"
        bodies.write_bytes(b"\n".join(kind.bodies) + b"\n")
        return closed_loop(served.port, kind.path, bodies, 0, kind.connections, seconds, options.client_cpus)


def _overload(served: Service, kind: Kind, most: float, findings: Findings, options: argparse.Namespace) -> None:
    before = served.resources()
    plan = Plan(
        port=served.port,
        bodies=kind.bodies,
        rate=TIMES * most,
        seconds=options.seconds,
        connections=round(CONNECTIONS * options.max_in_flight),
        path=kind.path,
        timeout=30.0,
        patience=PATIENCE_SECONDS,
        seed=options.seed,
        refusals_need=("retry-after", "retry-after-ms"),
    )
    outcome = start(plan, pinned(options.client_cpus)).result()
    ended = time.monotonic()
    after = served.resources()
    time.sleep(max(0.0, 1.0 - (time.monotonic() - ended)))
    metrics = served.metrics()

    statuses = dict(outcome["statuses"])
    answered, refused = statuses.pop("200", 0), statuses.pop("429", 0)
    not_sent = statuses.pop(NOT_SENT, 0)
    late_ms = outcome["lag_ms"]["max"]
    due = outcome["requests"] / (options.seconds + late_ms / 1000)  # late requests lower the rate
    sent = (outcome["requests"] - not_sent) / (options.seconds + late_ms / 1000)
    latency = outcome["from_sent_ms"] or dict.fromkeys(("p50", "p95", "p99", "max"), float("nan"))
    took = answered / outcome["answered_per_second"] if answered else options.seconds  # to the last answer
    last_ms = max(0.0, took - options.seconds) * 1000
    bound_ms = 1000 * (SLACK_OF_CHEAP * plan.connections / most if kind.warm else SLACK * options.max_queue_seconds)
    others = ", ".join(f"{count} {status}" for status, count in statuses.items()) or "0"
    findings.row(
        kind.name,
        round(most),
        round(due),
        round(due / most, 2),
        round(sent / most, 2),
        answered,
        refused,
        others,
        round(answered / took),
        *(latency[name] for name in ("p50", "p99", "max")),
        round(bound_ms),
        round(last_ms),
        round(before.resident_mb),
        round(after.peak_mb),
        outcome["lag_ms"]["p99"],
    )
    findings.values[kind.name] = {"closed_loop_rate": most, **outcome}
    says = findings.promise
    says(f"{kind.name}: the load was {TIMES:g} times", due >= LEAST_TIMES * most, f"{due / most:.2f}")
    says(f"{kind.name}: only 200 and 429", not statuses and refused > 0, others)
    says(f"{kind.name}: 429 says Retry-After and retry-after-ms", BARE not in outcome["statuses"], f"{refused} do")
    says(f"{kind.name}: p99 of the 200s", latency["p99"] <= bound_ms, f"{latency['p99']:.0f} of {bound_ms:.0f} ms")
    says(
        f"{kind.name}: at least {LEAST_ANSWERED:.0%} of the measured rate is still answered",
        answered / took >= LEAST_ANSWERED * most,
        f"{answered / took:.0f}/s, {answered / took / most:.0%}",
    )
    says(
        f"{kind.name}: memory is bounded",
        after.peak_mb - before.resident_mb <= MEMORY_MB,
        f"{before.resident_mb:.0f} MB before, {after.peak_mb:.0f} at most",
    )
    says(f"{kind.name}: all answered a second after the last was due", last_ms <= 1000, f"{last_ms:.0f} ms")
    gauges = {name: metrics.total(f"semblance_{name}") for name in ("requests_in_flight", "workers_busy")}
    says(
        f"{kind.name}: an empty queue then",
        # The scrape itself is one in flight.
        gauges["requests_in_flight"] <= 1 and gauges["workers_busy"] == 0,
        gauges,
    )
