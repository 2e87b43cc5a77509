"""Soak test: half an hour of all routes, models and dialects, with texts of 1 to hundreds of words; memory stays flat.

Flat: the 95 % interval of the slope of resident memory over the second half, by least squares over the means of equal
stretches, reaches below a bound. Open files and threads must not grow. A share of the requests recurs, and must get the
same answers to the end.
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.faults.bodies import every_route, models_by_task
from benchmarks.faults.load import Load, with_answers
from benchmarks.faults.trial import Kind, Trial
from benchmarks.servers import MB, Resources, Service, total

LONGEST, CACHE_MIB = 400, 8  # words of a text; budget of the caches
FLAT_MB = 10.0  # an hour, that still count as flat
KNOWN = 40  # requests that recur
KNOWN_SHARE = 0.05
STRETCHES = 30  # of the second half, at most: single samples are autocorrelated, means of stretches hardly


def slope(seconds: Sequence[float], megabytes: Sequence[float]) -> tuple[float, float, float]:
    """MB an hour, by least squares over the means of equal stretches, and the bounds of the 95 % confidence interval.

    Args:
        seconds: times of at least three samples.
        megabytes: their memory.
    """
    parts = min(STRETCHES, len(seconds))
    hours = [float(part.mean()) / 3600 for part in np.array_split(np.asarray(seconds), parts)]
    means = [float(part.mean()) for part in np.array_split(np.asarray(megabytes), parts)]
    fit = stats.linregress(hours, means)
    half = float(stats.t.ppf(0.975, parts - 2) * fit.stderr)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half


@dataclass(frozen=True)
class Sample:
    """What the service held at one time."""

    seconds: float
    held: Resources
    kept_mb: float  # in caches


async def run(trial: Trial) -> None:
    """Run the load and sample the service's resources; report a row for each twelfth of the time."""
    options, rng = trial.options, random.Random(1)
    # Only the limit of the cache is tested here.
    settings: dict[str, Any] = {"cache_bytes": CACHE_MIB << 20, "request_timeout": 600, "workers": options.workers}
    with Service(**settings, max_queue_seconds=1000) as served:
        models = models_by_task(json.loads(served.get("/models")[1])["models"])
        everything = every_route(models, rng, LONGEST)
        # Some with JSON answers that do not change over time.
        first = itertools.islice((ask for ask in everything if ask.body is not None and ask.status == 200), KNOWN)
        known = await with_answers(served.url, list(first))
        samples: list[Sample] = []
        began, seconds = time.monotonic(), options.minutes * 60
        asked = failed = 0
        examples: list[str] = []
        mixed = (rng.choice(known) if rng.random() < KNOWN_SHARE else next(everything) for _ in itertools.count())
        async with Load(served.url, mixed).by(options.callers) as load:
            for part in range(1, 13):
                while time.monotonic() - began < seconds * part / 12:
                    await asyncio.sleep(min(2.0, seconds / 200))
                    scrape = (await asyncio.to_thread(served.get, "/metrics"))[1].decode()
                    kept = total(scrape, "semblance_cache_bytes") / MB
                    samples.append(Sample(time.monotonic() - began, served.resources(), kept))
                tally, last = load.take(), samples[-1]
                asked, failed = asked + tally.asked, failed + tally.failed
                examples += tally.examples
                held = last.held
                trial.row(
                    last.seconds / 60, tally.asked, tally.failed, *tally.times,
                    held.resident_mb, held.files, held.threads, last.kept_mb,
                )  # fmt: skip
        found = "; ".join([f"{failed} of {asked} failed", *examples[:3]])
        what = "every request answered as expected, the known ones the same until the end"
        trial.promise(what, failed == 0 and asked > 0, found)
        _judge(trial, samples)
        trial.quiet("all", served.complaints())


def _judge(trial: Trial, samples: Sequence[Sample]) -> None:
    second = [sample for sample in samples if sample.seconds >= samples[-1].seconds / 2]
    found, low, high = slope([s.seconds for s in second], [s.held.resident_mb for s in second])
    trial.promise(
        f"resident memory is flat over the second half: a slope of at most {FLAT_MB:g} MB an hour",
        low <= FLAT_MB,
        f"{found:+.1f} MB/hour, 95 % interval {low:+.1f} to {high:+.1f}; "
        f"{second[-1].held.resident_mb:.0f} MB resident, at most {max(s.held.peak_mb for s in samples):.0f}",
    )
    for what in ("files", "threads"):
        first, last = (max(half) for half in np.array_split([getattr(s.held, what) for s in second], 2))
        told = f"at most {first}, then at most {last}"
        trial.promise(f"{what} do not grow over the second half", last <= first, told)
    kept = max(sample.kept_mb for sample in samples)
    bound = CACHE_MIB * trial.options.workers
    trial.promise("the caches stay within their budget", kept <= bound, f"at most {kept:.1f} of {bound} MiB")
    trial.values["slope"] = [found, low, high]


KIND = Kind(
    "All routes for a long time",
    "{minutes:g} minutes, {callers} callers without pause: all routes and dialects, all models, "
    f"texts of 1 to {LONGEST} words, lists of 1 to 1,000, some requests refused; a tenth of the long texts are 490 "
    f"rare characters; caches of {CACHE_MIB} MiB. {KNOWN_SHARE:.0%} are {KNOWN} requests whose answers are known "
    "from the start (3e-6).",
    ("minutes", "asked", "failed", "p50 ms", "p99 ms", "resident MB", "files", "threads", "cached MB"),
    {"minutes": 30.0, "callers": 4, "workers": 1},
    run,
)
