"""Processes that go while they are asked: workers replaced, workers killed, a service that stops.

1. A fleet under steady load, one worker after another told to go (SIGTERM): no request fails, and none goes uncounted.
2. One after another killed (SIGKILL): lost is at most what it was answering, one request of each caller.
3. A service of one process told to stop, with callers who stop asking once it says that it is not ready, as a load
   balancer does: it says so before it stops listening, and answers everything, also what takes long.
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
from benchmarks.faults.load import Ask, Load, Tally, answered, client_of, in_random_order, with_answers
from benchmarks.faults.promises import Findings
from benchmarks.faults.served import Served

HEAD = ["what", "processes gone", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "replaced within s"]
WAYS = {"told to go (SIGTERM)": signal.SIGTERM, "killed (SIGKILL)": signal.SIGKILL}
REPLACED_SECONDS = 120.0
DRAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.02


async def run(options: argparse.Namespace) -> Findings:
    """All three."""
    findings = Findings(
        "replace",
        "Processes that go under load",
        f"python -m benchmarks.faults replace --times {options.times} --rate {options.rate:g}",
        f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models by {options.callers} callers over kept "
        f"connections, {options.rate:g} requests a second together; httpx, without retries. "
        f"`SEMBLANCE_WORKERS={options.workers}`; one of them goes {options.times} times, each when all serve "
        "again. Lost: no answer; wrong: another status or answer (1e-6) than before.",
        head=HEAD,
    )
    with Served(options.service_cpus) as single:
        models = models_by_task(json.loads(single.get("/models")[1])["models"])
        asks = await with_answers(single.url, of_vectors(models, 100, options.seed))
        await _stop(single, asks, findings, options)  # which ends without draining
    for name, number in WAYS.items():
        with Served(options.service_cpus, workers=options.workers) as served:
            order = in_random_order(asks, options.seed)
            async with Load(served.url, order, callers=options.callers, rate=options.rate) as load:
                await _replace(served, load, name, number, findings, options)
            if number == signal.SIGKILL:
                continue
            complaints = served.complaints()
            findings.promise(f"workers {name}: no error in the log", not complaints, complaints[:3] or "none")
    return findings


async def _replace(
    served: Served, load: Load, name: str, number: signal.Signals, findings: Findings, options: argparse.Namespace
) -> None:
    """Workers go, one after another."""
    rng = random.Random(options.seed)
    await _until_all_serve(served, 0, options.workers)
    load.hold()
    await asyncio.sleep(1)  # for what is under way, which would be counted before or after
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
        f"workers {name}", options.times, tally.asked, tally.lost, tally.wrong, *_times(tally), round(max(waits), 1)
    )
    says = findings.promise
    says(f"workers {name}: each replaced", max(waits) < REPLACED_SECONDS, f"within {max(waits):.1f} s")
    if number == signal.SIGKILL:
        most = options.times * options.callers
        says(
            f"workers {name}: lost is at most what they were answering",
            tally.lost <= most and tally.wrong == 0 and tally.asked > 0,
            f"{tally.lost} lost of {tally.asked}, at most {most}; {tally.wrong} wrong{_examples(tally)}",
        )
        load.go_on()
        after = await load.run(2.0)
        says(f"workers {name}: nothing fails after that", after.failed == 0 and after.asked > 0, after.asked)
    else:
        says(
            f"workers {name}: no request failed",
            tally.failed == 0 and tally.asked > 0,
            f"{tally.lost} lost, {tally.wrong} wrong of {tally.asked}{_examples(tally)}",
        )
        says(
            f"workers {name}: every answer is counted in /metrics",
            later - earlier == tally.statuses[200],
            f"{later - earlier:.0f} of {tally.statuses[200]}",
        )


async def _until_all_serve(served: Served, gone: int, workers: int) -> float:
    """Wait until so many workers serve, and the one that goes is no longer there; the seconds it took."""
    began = time.monotonic()
    while time.monotonic() - began < REPLACED_SECONDS:
        await asyncio.sleep(_LOOK_SECONDS)
        now = await asyncio.to_thread(served.workers)
        if len(now) >= workers and gone not in now:
            break
    return time.monotonic() - began


async def _stop(stopped_plainly: Served, asks: Sequence[Ask], findings: Findings, options: argparse.Namespace) -> None:
    """Two services of one process stop: one drains, one was given no time for it."""
    await _stop_one(stopped_plainly, asks, findings, options, 0.0)
    with Served(options.service_cpus, drain_seconds=DRAIN_SECONDS) as served:
        await _stop_one(served, asks, findings, options, DRAIN_SECONDS)


async def _stop_one(
    served: Served, asks: Sequence[Ask], findings: Findings, options: argparse.Namespace, drain: float
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
    findings.row(name, 1, tally.asked, tally.lost, tally.wrong, *_times(tally), "-")
    says = findings.promise
    code_or_error = response.status_code if isinstance(response, httpx.Response) else repr(response)
    says(f"{name}: a request under way is answered", code_or_error == 200, code_or_error)
    code = served.stop()
    says(f"{name}: ends by itself, in order", code in (0, -signal.SIGTERM), f"{code} after {ended_after:.1f} s")
    if drain:
        says(
            f"{name}: readiness fails before it stops listening",
            unready_after < closed_after,
            f"unready after {unready_after:.2f} s, closed after {closed_after:.2f} s",
        )
        says(
            f"{name}: no request failed",
            tally.failed == 0 and tally.asked > 0,
            f"{tally.lost} lost, {tally.wrong} wrong of {tally.asked}{_examples(tally)}",
        )
    complaints = served.complaints()
    says(f"{name}: no error in the log", not complaints, complaints[:3] or "none")


def _readiness(served: Served) -> int | None:
    """The status of `/health/ready`; None where nobody listens any more."""
    with suppress(OSError):
        return served.readiness()[0]
    return None


async def _counted(served: Served) -> float:
    """Answers of 200 to scoring requests, in the metrics."""
    metrics = await asyncio.to_thread(served.metrics)
    routes = ("/similarity", "/entailment", "/embed", "/rank")
    return sum(metrics.total("semblance_requests_total", route=route, status="200") for route in routes)


def _times(tally: Tally) -> list[float]:
    return [tally.percentile(percent) for percent in (50, 99, 100)]


def _examples(tally: Tally) -> str:
    return "".join(f"; {example}" for example in tally.examples[:3])
