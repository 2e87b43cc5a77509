"""What a trial promised and what it found; what was measured is told either way."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.report import machine, table, write


@dataclass(frozen=True)
class Promise:
    """One sentence that holds or does not."""

    text: str
    kept: bool
    found: str


@dataclass
class Findings:
    """Of one trial."""

    name: str
    title: str
    command: str
    about: str
    promises: list[Promise] = field(default_factory=list)
    head: Sequence[str] = ()
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)  # with all digits

    def promise(self, text: str, kept: bool, found: object) -> None:
        """Note whether it was kept, and say so at once."""
        self.promises.append(Promise(text, kept, str(found)))
        print(f"{'kept  ' if kept else 'BROKEN'} {text}: {found}", file=sys.stderr, flush=True)

    def row(self, *cells: object) -> None:
        """A row of figures, said at once as well."""
        self.rows.append([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells])
        print("       " + " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

    @property
    def kept(self) -> bool:
        """Whether all promises were."""
        return all(promise.kept for promise in self.promises)

    def write(self, out: Path) -> None:
        """Print and write the dated result."""
        lines = []
        if self.rows:
            lines += [*table(self.head, self.rows), ""]
        judged = [[p.text, "yes" if p.kept else "**no**", p.found.replace("|", "/")] for p in self.promises]
        lines += table(["promise", "kept", "found"], judged)
        lines += ["", *self.notes] if self.notes else []
        about = f"`{self.command}`: {self.about} {machine('onnxruntime', 'uvicorn', 'httpx', 'redis')}."
        result: Mapping[str, object] = {
            "command": self.command,
            "head": list(self.head),
            "rows": self.rows,
            "promises": [asdict(promise) for promise in self.promises],
            **self.values,
        }
        write(out, f"faults-{self.name}", self.title, about, lines, dict(result))
