"""Dated results with machine and versions, as Markdown and as JSON with all digits; and the promises of a trial."""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def cpu_model() -> str:
    """The processor's name."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


def machine(*packages: str) -> str:
    """Processor, Python and versions of packages, in one line."""
    versions = "".join(f", {package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} cores ({cpu_model()}), Python {platform.python_version()}{versions}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def write(out: Path, name: str, title: str, about: str, lines: Sequence[str], result: Mapping[str, object]) -> None:
    """Print a result, and write it as `<date>-<name>.md`, and as `.json` with all digits."""
    date = datetime.now(UTC).date()
    text = "\n".join([f"# {title}, {date}", "", about, "", *lines]) + "\n"
    print(text)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{date}-{name}.md").write_text(text, encoding="utf-8")
    (out / f"{date}-{name}.json").write_text(json.dumps({"about": about, **result}, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Promise:
    """A promise of the service, and the finding of a trial."""

    text: str
    kept: bool
    found: str


@dataclass
class Findings:
    """The figures and promises of one trial."""

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
        """Record whether it was kept, and print it."""
        self.promises.append(Promise(text, kept, str(found)))
        print(f"{'kept  ' if kept else 'BROKEN'} {text}: {found}", file=sys.stderr, flush=True)

    def row(self, *cells: object) -> None:
        """Record a row of figures, and print it."""
        self.rows.append([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells])
        print("       " + " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

    def quiet(self, text: str, complaints: Sequence[str]) -> None:
        """Promise that a log has no error; `complaints` are its errors."""
        self.promise(text, not complaints, complaints[:3] or "none")

    @property
    def kept(self) -> bool:
        """Whether all promises were kept."""
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
