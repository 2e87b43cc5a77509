"""Workers that end under load, one after another.

With SIGTERM no request fails, and every answer is counted. With SIGKILL at most the requests that a worker was
answering are lost, one per caller, and none after that. How a whole service stops is a test (`test_process.py`,
`test_fleet.py`, `test_callers.py`).
"""

import asyncio
import os
import random
import signal
from collections.abc import Sequence

from benchmarks.faults.bodies import of_vectors
from benchmarks.faults.load import Ask, with_answers
from benchmarks.faults.trial import Kind, Trial, models_of, until
from benchmarks.servers import Service

WAYS = {"stopped (SIGTERM)": signal.SIGTERM, "killed (SIGKILL)": signal.SIGKILL}
REPLACED_SECONDS, PAUSE_SECONDS, PAGE_SECONDS = 120.0, 1.0, 3.0


async def run(trial: Trial) -> None:
    """End workers in both ways."""
    with trial.service() as single:
        asks = await with_answers(single.url, of_vectors(models_of(single), 100, trial.options.seed))
    for way, number in WAYS.items():
        with trial.service(workers=trial.options.workers) as served:
            await _replace(trial, served, asks, f"workers {way}", number)
            if number != signal.SIGKILL:
                trial.quiet(f"workers {way}", served.complaints())


async def _replace(trial: Trial, served: Service, asks: Sequence[Ask], name: str, number: signal.Signals) -> None:
    """End workers, one after another."""
    rng, times = random.Random(trial.options.seed), trial.options.times

    async def all_serve(gone: int = 0) -> float:
        def true() -> bool:
            now = served.workers()
            return len(now) >= trial.options.workers and gone not in now

        return await until(true, REPLACED_SECONDS)

    async def counted() -> float:
        """The 200s of scoring routes in the metrics, which workers write each second; nothing is in flight then."""
        await asyncio.sleep(PAGE_SECONDS)
        metrics = await asyncio.to_thread(served.metrics)
        routes = ("/similarity", "/entailment", "/embed", "/rank")
        return sum(metrics.total("semblance_requests_total", route=route, status="200") for route in routes)

    await all_serve()
    async with trial.load(served, asks):
        await asyncio.sleep(1)  # so that there are counters
    earlier = await counted()
    waits: list[float] = []
    async with trial.load(served, asks) as load:
        await asyncio.sleep(1)
        for _ in range(times):
            gone = rng.choice(await asyncio.to_thread(served.workers))
            os.kill(gone, number)
            waits.append(await all_serve(gone))
            await asyncio.sleep(PAUSE_SECONDS)
    tally = load.take()
    trial.row(name, times, tally.asked, tally.lost, tally.wrong, *tally.times, round(max(waits), 1))
    trial.promise(f"{name}: each replaced", max(waits) < REPLACED_SECONDS, f"within {max(waits):.1f} s")
    if number == signal.SIGKILL:
        most = times * trial.options.callers
        few = tally.lost <= most and tally.wrong == 0 and tally.asked > 0
        what = "at most the requests that they were answering are lost"
        trial.promise(f"{name}: {what}", few, f"{tally.failures}; at most {most}")
        async with trial.load(served, asks) as load:
            await asyncio.sleep(2)
        trial.answered(f"{name}, after that", load.take())
    else:
        trial.answered(name, tally)
        new = await counted() - earlier
        found = f"{new:.0f} of {tally.statuses[200]}"
        trial.promise(f"{name}: every answer is counted in /metrics", new == tally.statuses[200], found)


KIND = Kind(
    "Workers that end under load",
    "`/similarity`, `/entailment`, `/embed` and `/rank` of all models by {callers} callers over kept connections, "
    "{rate:g} requests a second together; httpx, without retries. `SEMBLANCE_WORKERS={workers}`; one of them ends "
    "{times} times, each when all serve again. Lost: no answer; wrong: another status or answer (3e-6) than before.",
    ("what", "processes gone", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "replaced within s"),
    {"rate": 100.0, "callers": 16, "times": 10, "workers": 2},
    run,
)
