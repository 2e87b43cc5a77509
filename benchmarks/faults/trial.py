"""What all trials share: the record of a trial, its options and findings."""

import argparse
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import machine, write
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

    def promise(self, text: str, kept: bool, found: object) -> None:
        """Record whether it was kept, and print it."""
        self.promises.append({"text": text, "kept": bool(kept), "found": str(found)})
        print(f"{'kept  ' if kept else 'BROKEN'} {text}: {found}", file=sys.stderr, flush=True)

    def row(self, *cells: object) -> None:
        """Record a row of figures, and print it."""
        self.rows.append([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells])
        print("       " + " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

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
