"""What all trials share: options, services, the load, and the findings."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.faults.bodies import models_by_task
from benchmarks.faults.load import Ask, Load, Tally, in_random_order
from benchmarks.report import Findings
from benchmarks.servers import Service

LOOK_SECONDS = 0.05


class Trial(Findings):
    """One trial: findings, and what makes them."""

    def __init__(self, options: argparse.Namespace, title: str, about: str, head: Sequence[str]) -> None:
        """Start without findings; `options` are those of the command line."""
        command = " ".join(["python -m benchmarks.faults", *sys.argv[1:]])
        super().__init__(options.trial, title, command, about, head=head)
        self.options = options

    def service(self, **settings: object) -> Service:
        """A service with these settings, on the cores that the options name."""
        return Service(self.options.service_cpus, **settings)

    def load(self, served: Service, asks: Sequence[Ask], stream: int = 0) -> Load:
        """The options' callers and rate, who ask these in a random order; each `stream` is another one."""
        order = in_random_order(asks, self.options.seed + stream)
        return Load(served.url, order, callers=self.options.callers, rate=self.options.rate)

    def only(self, name: str) -> bool:
        """Whether the options ask for what has this name."""
        return self.options.only in name

    def answered(self, name: str, tally: Tally) -> None:
        """Promise that every request got its answer."""
        self.promise(f"{name}: every request answered, and right", tally.right, tally.failures)


def models_of(served: Service) -> Mapping[str, Sequence[str]]:
    """The ids of its models, by task and by family."""
    return models_by_task(json.loads(served.get("/models")[1])["models"])


async def until(true: Callable[[], bool], seconds: float) -> float:
    """Wait until it is true, at most so long; returns the seconds that this took. `true` is called in a thread."""
    began = time.monotonic()
    while not await asyncio.to_thread(true) and time.monotonic() - began < seconds:
        await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic() - began
