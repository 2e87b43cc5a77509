"""Processes that end under load: workers replaced, workers killed, a service that stops.

1. SIGTERM to a service of one process, whose callers stop when it is no longer ready, like a load balancer: it
   becomes unready before it stops listening, and answers every request, including slow ones, or says 503 in our format.
2. SIGTERM to one worker after another: no request fails, and every answer is counted.
3. SIGKILL to one worker after another: at most the requests that it was answering are lost, one per caller.
"""

import argparse
import asyncio
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

import httpx

from benchmarks.faults.bodies import of_vectors
from benchmarks.faults.load import Ask, Load, answered, client_of, with_answers
from benchmarks.faults.trial import Trial, models_of, until
from benchmarks.servers import Service

HEAD = ["what", "processes gone", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "replaced within s"]
WAYS = {"stopped (SIGTERM)": signal.SIGTERM, "killed (SIGKILL)": signal.SIGKILL}
REPLACED_SECONDS, PAUSE_SECONDS, PAGE_SECONDS, ENDED_SECONDS = 120.0, 1.0, 3.0, 30.0
TEXT = "Two dogs are running through the snow while a man plays the guitar in the park. "
LONG = {"query": TEXT, "candidates": [TEXT * 2 + str(i) for i in range(200)], "model": "pwim-qa"}


async def run(options: argparse.Namespace) -> Trial:
    """Run all three."""
    trial = Trial(
        options,
        "Processes that end under load",
        f"`/similarity`, `/entailment`, `/embed` and `/rank` of all models by {options.callers} callers over kept "
        f"connections, {options.rate:g} requests a second together; httpx, without retries. "
        f"`SEMBLANCE_WORKERS={options.workers}`; one of them ends {options.times} times, each when all serve "
        "again. Lost: no answer; wrong: another status or answer (1e-6) than before.",
        HEAD,
    )
    with trial.service() as single:
        asks = await with_answers(single.url, of_vectors(models_of(single), 100, options.seed))
    for drain in (0.0, 1.0):
        with trial.service(drain_seconds=drain) as served:
            await _stop(trial, served, asks, drain)
    for name, number in WAYS.items():
        with trial.service(workers=options.workers) as served:
            async with trial.load(served, asks) as load:
                await _replace(trial, served, load, f"workers {name}", number)
            if number != signal.SIGKILL:
                trial.quiet(f"workers {name}: no error in the log", served.complaints())
    return trial


async def _replace(trial: Trial, served: Service, load: Load, name: str, number: signal.Signals) -> None:
    """End workers, one after another."""
    rng, times = random.Random(trial.options.seed), trial.options.times

    async def all_serve(gone: int = 0) -> float:
        def true() -> bool:
            now = served.workers()
            return len(now) >= trial.options.workers and gone not in now

        return await until(true, REPLACED_SECONDS)

    async def counted() -> float:
        """The 200s of scoring routes in the metrics, which workers write each second; nothing is in flight then."""
        await load.rest()
        await asyncio.sleep(PAGE_SECONDS)
        metrics = await asyncio.to_thread(served.metrics)
        routes = ("/similarity", "/entailment", "/embed", "/rank")
        return sum(metrics.total("semblance_requests_total", route=route, status="200") for route in routes)

    await all_serve()
    earlier = await counted()
    load.take()
    load.go_on()
    await asyncio.sleep(1)
    waits: list[float] = []
    for _ in range(times):
        gone = rng.choice(await asyncio.to_thread(served.workers))
        os.kill(gone, number)
        waits.append(await all_serve(gone))
        await asyncio.sleep(PAUSE_SECONDS)
    new = await counted() - earlier
    tally = load.take()
    trial.row(name, times, tally.asked, tally.lost, tally.wrong, *tally.times, round(max(waits), 1))
    trial.promise(f"{name}: each replaced", max(waits) < REPLACED_SECONDS, f"within {max(waits):.1f} s")
    if number == signal.SIGKILL:
        most = times * trial.options.callers
        few = tally.lost <= most and tally.wrong == 0 and tally.asked > 0
        trial.promise(
            f"{name}: at most the requests that they were answering are lost", few, f"{tally.failures}; at most {most}"
        )
        load.go_on()
        trial.answered(f"{name}, after that", await load.run(2.0))
    else:
        trial.answered(name, tally)
        found = f"{new:.0f} of {tally.statuses[200]}"
        trial.promise(f"{name}: every answer is counted in /metrics", new == tally.statuses[200], found)


async def _stop(trial: Trial, served: Service, asks: Sequence[Ask], drain: float) -> None:
    """Stop a service of one process, which is asked for something long."""
    name = f"a service that drains {drain:g} s" if drain else "a service that does not drain"
    since: dict[int | None, float] = {}  # readiness, None where nobody listens -> seconds until it was first so
    async with trial.load(served, asks) as load, client_of(served.url) as client:
        await asyncio.sleep(1)
        slow = asyncio.create_task(answered(client, Ask.post("/rank", LONG)))
        await asyncio.sleep(0.1)
        os.kill(served.pid, signal.SIGTERM)
        began = time.monotonic()
        while served.running() and time.monotonic() - began < ENDED_SECONDS:
            status = None
            with suppress(OSError):
                status = (await asyncio.to_thread(served.readiness))[0]
            since.setdefault(status, time.monotonic() - began)
            if status != 200:
                load.hold()
            await asyncio.sleep(0.02)
        ended = time.monotonic() - began
        response = (await asyncio.gather(slow, return_exceptions=True))[0]
        tally = load.take()
    trial.row(name, 1, tally.asked, tally.lost, tally.wrong, *tally.times, "-")
    code: object = repr(response)
    if isinstance(response, httpx.Response):
        code = f"{response.status_code} {response.json().get('error', {}).get('code', '')}".strip()
    kept = code in ("200", "503 shutting_down")
    trial.promise(f"{name}: a request in progress is answered, or told within the grace to ask again", kept, code)
    ending = served.stop()
    found = f"{ending} after {ended:.1f} s"
    trial.promise(f"{name}: ends by itself with a clean exit code", ending in (0, -signal.SIGTERM), found)
    if drain:
        unready, closed = since.get(503, float("inf")), since.get(None, float("inf"))
        trial.promise(
            f"{name}: readiness fails before it stops listening",
            unready < closed,
            f"unready after {unready:.2f} s, closed after {closed:.2f} s",
        )
        trial.answered(name, tally)
    # uvicorn says so of those whom it gives up.
    others = [line for line in served.complaints() if "timeout graceful shutdown exceeded" not in line]
    trial.quiet(f"{name}: no error in the log", others)
