"""What all trials share: the record of a trial, its options, services, load and findings."""

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.bodies import models_by_task
from benchmarks.faults.load import Ask, Load, Tally
from benchmarks.report import machine, write
from benchmarks.servers import Service
from training.markdown import table


@dataclass(frozen=True)
class Kind:
    """A trial: what it is called and tells, the options that it has, and what runs it."""

    title: str
    about: str  # with options in braces, such as {seconds:g}
    head: Sequence[str]  # of the table of figures
    options: Mapping[str, float | str]  # with their defaults
    run: Callable[["Trial"], Coroutine[Any, Any, None]]


class Trial:
    """One run of a trial: its options, figures and promises."""

    def __init__(self, kind: Kind, options: argparse.Namespace) -> None:
        """Start without findings; `options` are those of the command line."""
        self.kind = kind
        self.options = options
        self.promises: list[dict[str, object]] = []  # text, kept, found
        self.rows: list[list[str]] = []
        self.values: dict[str, object] = {}  # with all digits

    def service(self, **settings: object) -> Service:
        """A service with these settings, on the cores that the options name."""
        return Service(self.options.service_cpus, **settings)

    def load(self, served: Service, asks: Sequence[Ask], stream: int = 0) -> AbstractAsyncContextManager[Load]:
        """The options' callers and rate, who ask these in a random order; each `stream` is another one."""
        choose = random.Random(self.options.seed + stream).choice
        return Load(served.url, (choose(asks) for _ in itertools.count())).by(self.options.callers, self.options.rate)

    def promise(self, text: str, kept: bool, found: object) -> None:
        """Record whether it was kept, and print it."""
        self.promises.append({"text": text, "kept": bool(kept), "found": str(found)})
        print(f"{'kept  ' if kept else 'BROKEN'} {text}: {found}", file=sys.stderr, flush=True)

    def row(self, *cells: object) -> None:
        """Record a row of figures, and print it."""
        self.rows.append([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells])
        print("       " + " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

    def answered(self, name: str, tally: Tally) -> None:
        """Promise that every request got its answer."""
        self.promise(f"{name}: every request answered, and right", tally.failed == 0 < tally.asked, tally.failures)

    def quiet(self, name: str, complaints: Sequence[str]) -> None:
        """Promise that a log has no error; `complaints` are its errors."""
        self.promise(f"{name}: no error in the log", not complaints, complaints[:3] or "none")

    @property
    def kept(self) -> bool:
        """Whether all promises were kept."""
        return all(promise["kept"] for promise in self.promises)

    def write(self, out: Path) -> None:
        """Print and write the dated result."""
        command = " ".join(["python -m benchmarks.faults", *sys.argv[1:]])
        lines = [table(self.kind.head, self.rows), ""] if self.rows else []
        judged = [[str(p["text"]), "yes" if p["kept"] else "**no**", str(p["found"])] for p in self.promises]
        lines.append(table(["promise", "kept", "found"], judged))
        told = self.kind.about.format(**vars(self.options))
        about = f"`{command}`: {told} {machine('onnxruntime', 'uvicorn', 'httpx', 'redis')}."
        result = {"command": command, "head": [*self.kind.head], "rows": self.rows, "promises": self.promises}
        write(out, f"faults-{self.options.trial}", self.kind.title, about, lines, result | self.values)


def models_of(served: Service) -> Mapping[str, Sequence[str]]:
    """The ids of its models, by task and by family."""
    return models_by_task(json.loads(served.get("/models")[1])["models"])


async def until(true: Callable[[], bool], seconds: float) -> float:
    """Wait until it is true, at most so long; returns the seconds that this took. `true` is called in a thread."""
    began = time.monotonic()
    while not await asyncio.to_thread(true) and time.monotonic() - began < seconds:
        await asyncio.sleep(0.05)
    return time.monotonic() - began
