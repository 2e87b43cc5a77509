"""Processes that end under load: workers replaced, workers killed, a service that stops.

1. SIGTERM to one worker after another: no request fails, and every answer is counted.
2. SIGKILL to one worker after another: at most the requests that it was answering are lost, one per caller.
3. SIGTERM to a service of one process, whose callers stop when it is no longer ready, like a load balancer: it
   becomes unready before it stops listening, and answers every request, including slow ones.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

import httpx

from benchmarks.faults.bodies import models_by_task, of_vectors
from benchmarks.faults.load import Ask, Load, answered, client_of, in_random_order, with_answers
from benchmarks.report import Findings
from benchmarks.servers import Service

HEAD = ["what", "processes gone", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "replaced within s"]
WAYS = {"stopped (SIGTERM)": signal.SIGTERM, "killed (SIGKILL)": signal.SIGKILL}
REPLACED_SECONDS = 120.0
DRAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.02


async def run(options: argparse.Namespace) -> Findings:
    """Run all three."""
    findings = Findings(
        "replace",
        "Processes that end under load",
        f"python -m benchmarks.faults replace --times {options.times} --rate {options.rate:g}",
        f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models by {options.callers} callers over kept "
        f"connections, {options.rate:g} requests a second together; httpx, without retries. "
        f"`SEMBLANCE_WORKERS={options.workers}`; one of them ends {options.times} times, each when all serve "
        "again. Lost: no answer; wrong: another status or answer (1e-6) than before.",
        head=HEAD,
    )
    with Service(options.service_cpus) as single:
        models = models_by_task(json.loads(single.get("/models")[1])["models"])
        asks = await with_answers(single.url, of_vectors(models, 100, options.seed))
        await _stop(single, asks, findings, options)  # ends without draining
    for name, number in WAYS.items():
        with Service(options.service_cpus, workers=options.workers) as served:
            order = in_random_order(asks, options.seed)
            async with Load(served.url, order, callers=options.callers, rate=options.rate) as load:
                await _replace(served, load, name, number, findings, options)
            if number == signal.SIGKILL:
                continue
            findings.quiet(f"workers {name}: no error in the log", served.complaints())
    return findings


async def _replace(
    served: Service, load: Load, name: str, number: signal.Signals, findings: Findings, options: argparse.Namespace
) -> None:
    """End workers, one after another."""
    rng = random.Random(options.seed)
    await _until_all_serve(served, 0, options.workers)
    load.hold()
    await asyncio.sleep(1)  # until nothing is in flight, which would make the counts differ
    load.take()
    earlier = await _counted(served)
    load.go_on()
    await asyncio.sleep(1)
    waits: list[float] = []
    for _ in range(options.times):
        gone = rng.choice(await asyncio.to_thread(served.workers))
        os.kill(gone, number)
        waits.append(await _until_all_serve(served, gone, options.workers))
        await asyncio.sleep(options.pause)
    load.hold()
    await asyncio.sleep(1)
    tally = load.take()
    later = await _counted(served)
    findings.row(
        f"workers {name}", options.times, tally.asked, tally.lost, tally.wrong, *tally.times, round(max(waits), 1)
    )
    says = findings.promise
    says(f"workers {name}: each replaced", max(waits) < REPLACED_SECONDS, f"within {max(waits):.1f} s")
    if number == signal.SIGKILL:
        most = options.times * options.callers
        says(
            f"workers {name}: at most the requests that they were answering are lost",
            tally.lost <= most and tally.wrong == 0 and tally.asked > 0,
            f"{tally.failures}; at most {most} lost",
        )
        load.go_on()
        after = await load.run(2.0)
        says(f"workers {name}: nothing fails after that", after.failed == 0 and after.asked > 0, after.asked)
    else:
        says(
            f"workers {name}: no request failed",
            tally.right,
            tally.failures,
        )
        says(
            f"workers {name}: every answer is counted in /metrics",
            later - earlier == tally.statuses[200],
            f"{later - earlier:.0f} of {tally.statuses[200]}",
        )


async def _until_all_serve(served: Service, gone: int, workers: int) -> float:
    """Wait until `workers` workers serve, without the one that is `gone`; returns seconds."""
    began = time.monotonic()
    while time.monotonic() - began < REPLACED_SECONDS:
        await asyncio.sleep(_LOOK_SECONDS)
        now = await asyncio.to_thread(served.workers)
        if len(now) >= workers and gone not in now:
            break
    return time.monotonic() - began


async def _stop(stopped_plainly: Service, asks: Sequence[Ask], findings: Findings, options: argparse.Namespace) -> None:
    """Stop two services of one process: one without draining, one with."""
    await _stop_one(stopped_plainly, asks, findings, options, 0.0)
    with Service(options.service_cpus, drain_seconds=DRAIN_SECONDS) as served:
        await _stop_one(served, asks, findings, options, DRAIN_SECONDS)


async def _stop_one(
    served: Service, asks: Sequence[Ask], findings: Findings, options: argparse.Namespace, drain: float
) -> None:
    name = f"a service that drains {drain:g} s" if drain else "a service that does not drain"
    order = in_random_order(asks, options.seed)
    text = "Two dogs are running through the snow while a man plays the guitar in the park. "
    long = Ask.post("/rank", {"query": text, "candidates": [text * 2 + str(i) for i in range(options.slow_candidates)],
                              "model": options.heavy})  # fmt: skip
    unready_after = closed_after = float("nan")
    async with Load(served.url, order, callers=options.callers, rate=options.rate) as load:
        await asyncio.sleep(1)
        async with client_of(served.url) as client:
            slow = asyncio.create_task(answered(client, long))
            await asyncio.sleep(0.1)
            os.kill(served.pid, signal.SIGTERM)
            began = time.monotonic()
            while served.running():
                status = await asyncio.to_thread(_readiness, served)
                since = time.monotonic() - began
                if status == 503 and unready_after != unready_after:
                    unready_after = since
                    load.hold()
                if status is None and closed_after != closed_after:
                    closed_after = since
                    load.hold()
                if since > 30:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            ended_after = time.monotonic() - began
            response = (await asyncio.gather(slow, return_exceptions=True))[0]
        tally = load.take()
        load.hold()
    findings.row(name, 1, tally.asked, tally.lost, tally.wrong, *tally.times, "-")
    says = findings.promise
    code_or_error = response.status_code if isinstance(response, httpx.Response) else repr(response)
    says(f"{name}: a request in progress is answered", code_or_error == 200, code_or_error)
    code = served.stop()
    says(
        f"{name}: ends by itself with a clean exit code",
        code in (0, -signal.SIGTERM),
        f"{code} after {ended_after:.1f} s",
    )
    if drain:
        says(
            f"{name}: readiness fails before it stops listening",
            unready_after < closed_after,
            f"unready after {unready_after:.2f} s, closed after {closed_after:.2f} s",
        )
        says(
            f"{name}: no request failed",
            tally.right,
            tally.failures,
        )
    findings.quiet(f"{name}: no error in the log", served.complaints())


def _readiness(served: Service) -> int | None:
    """The status of `/health/ready`; None if nobody listens."""
    with suppress(OSError):
        return served.readiness()[0]
    return None


async def _counted(served: Service) -> float:
    """The count of 200s of scoring routes in the metrics."""
    metrics = await asyncio.to_thread(served.metrics)
    routes = ("/similarity", "/entailment", "/embed", "/rank")
    return sum(metrics.total("semblance_requests_total", route=route, status="200") for route in routes)
