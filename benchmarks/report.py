"""Dated results with machine and versions, as Markdown and as JSON with all digits."""

import json
import os
import platform
import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from training.markdown import table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def arguments(module: str, about: str | None) -> ArgumentParser:
    """The command line of a benchmark, with the folder of its results."""
    parser = ArgumentParser(prog=module, description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the dated result")
    return parser


def command(parser: ArgumentParser) -> str:
    """What was called, for a result to say."""
    return f"`{' '.join([parser.prog, *sys.argv[1:]])}`"


def machine(*packages: str) -> str:
    """Processor, Python and versions of packages, in one line."""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    name = processor[1] if processor else platform.processor()
    versions = "".join(f", {package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} cores ({name}), Python {platform.python_version()}{versions}"


def figures(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of what a result has: a column a name, of a mapping within a row one for each of its own."""
    flat = [_flat(row) for row in rows]
    head = list(dict.fromkeys(name for row in flat for name in row))
    return table(head, [[row.get(name, "") for name in head] for row in flat])


def _flat(row: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{name}: {each}": shown for each, shown in _flat(value).items()}
        elif isinstance(value, list | tuple):
            found[name] = ", ".join(map(str, value))
        else:
            found[name] = f"{value:.3f}" if isinstance(value, float) else str(value)
    return found


def write(out: Path, name: str, title: str, about: str, lines: Sequence[str], result: Mapping[str, object]) -> None:
    """Print a result, and write it as `<date>-<name>.md`, and as `.json` with all digits."""
    date = datetime.now(UTC).date()
    text = "\n".join([f"# {title}, {date}", "", about, "", *lines]) + "\n"
    print(text)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{date}-{name}.md").write_text(text, encoding="utf-8")
    (out / f"{date}-{name}.json").write_text(json.dumps({"about": about, **result}, indent=1) + "\n", encoding="utf-8")
