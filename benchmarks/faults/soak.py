"""Soak test: half an hour of all routes, models and dialects, with texts of 1 to hundreds of words; memory stays flat.

Flat: the 95 % interval of the slope of resident memory over the second half, by least squares over the means of equal
stretches, reaches below a bound. Open files and threads must not grow. A share of the requests recurs, and must get the
same answers to the end.
"""

import argparse
import asyncio
import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.faults.bodies import every_route
from benchmarks.faults.load import Ask, Load, with_answers
from benchmarks.faults.trial import Trial, models_of
from benchmarks.servers import MB, Resources, Service

LONGEST, CACHE_MIB = 400, 8  # words of a text; budget of the caches
FLAT_MB = 10.0  # an hour, that still count as flat
KNOWN = 40  # requests that recur
KNOWN_SHARE = 0.05
STRETCHES = 30  # of the second half: single samples are autocorrelated, means of stretches hardly
HEAD = ["minutes", "asked", "failed", "p50 ms", "p99 ms", "resident MB", "files", "threads", "cached MB"]


@dataclass(frozen=True)
class Slope:
    """The slope of resident memory."""

    mb_an_hour: float
    low: float  # of the 95 % confidence interval
    high: float


def slope(seconds: Sequence[float], megabytes: Sequence[float], stretches: int = STRETCHES) -> Slope:
    """Least squares over the means of equal stretches.

    Args:
        seconds: times of at least three samples.
        megabytes: their memory.
        stretches: the most stretches; fewer if there are fewer samples.
    """
    parts = min(stretches, len(seconds))
    hours = [float(part.mean()) / 3600 for part in np.array_split(np.asarray(seconds), parts)]
    means = [float(part.mean()) for part in np.array_split(np.asarray(megabytes), parts)]
    fit = stats.linregress(hours, means)
    half = float(stats.t.ppf(0.975, parts - 2) * fit.stderr)
    return Slope(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half)


@dataclass(frozen=True)
class Sample:
    """What the service held at one time."""

    seconds: float
    held: Resources
    kept_mb: float  # in caches


async def run(options: argparse.Namespace) -> Trial:
    """Run the load and sample the service's resources."""
    trial = Trial(
        options,
        "All routes for a long time",
        f"{options.minutes:g} minutes, {options.callers} callers without pause: all routes and dialects, all models, "
        f"texts of 1 to {LONGEST} words, lists of 1 to 1,000, some requests refused; a tenth of the long texts are 490 "
        f"rare characters; caches of {CACHE_MIB} MiB. {KNOWN_SHARE:.0%} are {KNOWN} requests whose answers are known "
        "from the start (1e-6).",
        HEAD,
    )
    # Only the limit of the cache is tested here.
    settings: dict[str, object] = {"cache_bytes": CACHE_MIB << 20, "request_timeout": 60, "workers": options.workers}
    with trial.service(**settings, max_queue_seconds=1000, max_explained_tokens=2000) as served:
        rng = random.Random(options.seed)
        everything = every_route(models_of(served), rng, LONGEST)
        known = await with_answers(served.url, known_requests(everything))
        samples: list[Sample] = []
        began = time.monotonic()
        async with Load(served.url, with_known(everything, known, rng), callers=options.callers) as load:
            await _watch(trial, served, load, samples, began)
        await asyncio.sleep(1)
        idle_after = await _sample(served, began)
        _judge(trial, samples, idle_after)
        trial.quiet("no error in the service's log", served.complaints())
    return trial


def known_requests(everything: Iterator[Ask]) -> list[Ask]:
    """Some requests with JSON answers that do not change over time."""
    asks = (ask for ask in everything if ask.body is not None and ask.status == 200)
    return list(itertools.islice(asks, KNOWN))


def with_known(everything: Iterator[Ask], known: Sequence[Ask], rng: random.Random) -> Iterator[Ask]:
    """All requests, mixed with those whose answers are known."""
    while True:
        yield rng.choice(known) if rng.random() < KNOWN_SHARE else next(everything)


async def _watch(trial: Trial, served: Service, load: Load, samples: list[Sample], began: float) -> None:
    """Sample until the time is over; report a row for each twelfth of it."""
    seconds = trial.options.minutes * 60
    asked = failed = 0
    examples: list[str] = []
    for part in range(1, 13):
        while time.monotonic() - began < seconds * part / 12:
            await asyncio.sleep(min(2.0, seconds / 200))
            samples.append(await _sample(served, began))
        tally, last = load.take(), samples[-1]
        asked, failed = asked + tally.asked, failed + tally.failed
        examples += tally.examples
        held = last.held
        trial.row(
            last.seconds / 60, tally.asked, tally.failed, *tally.times[:2],
            held.resident_mb, held.files, held.threads, last.kept_mb,
        )  # fmt: skip
    trial.promise(
        "every request answered as expected, the known ones the same until the end",
        failed == 0 and asked > 0,
        f"{failed} of {asked} failed{''.join(f'; {example}' for example in examples[:3])}",
    )


async def _sample(served: Service, began: float) -> Sample:
    metrics = await asyncio.to_thread(served.metrics)
    return Sample(time.monotonic() - began, served.resources(), metrics.total("semblance_cache_bytes") / MB)


def _judge(trial: Trial, samples: Sequence[Sample], idle_after: Sample) -> None:
    second = [sample for sample in samples if sample.seconds >= samples[-1].seconds / 2]
    found = slope([s.seconds for s in second], [s.held.resident_mb for s in second])
    trial.promise(
        f"resident memory is flat over the second half: a slope of at most {FLAT_MB:g} MB an hour",
        found.low <= FLAT_MB,
        f"{found.mb_an_hour:+.1f} MB/hour, 95 % interval {found.low:+.1f} to {found.high:+.1f}; "
        f"{second[-1].held.resident_mb:.0f} MB resident, at most {max(s.held.peak_mb for s in samples):.0f}",
    )
    for what in ("files", "threads"):
        counts = [getattr(sample.held, what) for sample in second]
        first, last = (np.array_split(counts, 2)[i].max() for i in (0, 1))
        trial.promise(
            f"{what} do not grow over the second half", bool(last <= first), f"at most {first}, then at most {last}"
        )
    kept = max(sample.kept_mb for sample in samples)
    bound = CACHE_MIB * trial.options.workers
    trial.promise("the caches stay within their budget", kept <= bound, f"at most {kept:.1f} of {bound} MiB")
    trial.values |= {
        "slope": vars(found),
        "samples": [[s.seconds, s.held.resident_mb, s.held.files, s.held.threads, s.kept_mb] for s in samples],
        "idle_after": vars(idle_after.held),
    }
