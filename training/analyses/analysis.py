"""What every analysis is: a question, a computation that gives plain data, and drawings and tables of that data.

An analysis lives in `analyses/<name>/`: `data.json` is computed, everything else there is made from it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.report.markdown import table

Data = dict[str, Any]  # plain JSON values
DATA_NAME, PAGE_NAME = "data.json", "README.md"


class AnalysisError(ValueError):
    """An analysis cannot look at what it was asked to look at; one line for a person."""


@dataclass(frozen=True)
class Options:
    """What an analysis is asked to look at."""

    recipes: tuple[str, ...]
    seed: int
    runs: Path


@dataclass(frozen=True)
class Analysis:
    """One question; `pictures` maps a file name to its alternative text."""

    name: str
    title: str
    source: str  # where a paper asks it
    recipes: tuple[str, ...]  # looked at when no others are named
    compute: Callable[[Options], Data]
    draw: Callable[[Data, Path], None]
    page: Callable[[Data], str]  # Markdown below the title
    pictures: Mapping[str, str]
    least: int = 1  # how many recipes it needs
    most: int | None = None


def carry_out(analysis: Analysis, options: Options, folder: Path) -> Path:
    """Compute, write `data.json`, draw, write the page; returns the folder `<folder>/<name>`.

    Raises:
        AnalysisError: too few or too many recipes, or a model that the analysis cannot look at.
        RunMissing: a run was not trained.
        CorpusError: a corpus is missing or malformed.
    """
    count = len(options.recipes)
    if count < analysis.least or (analysis.most is not None and count > analysis.most):
        wanted = f"{analysis.least}" if analysis.least == analysis.most else f"at least {analysis.least}"
        raise AnalysisError(f"{analysis.name} looks at {wanted} recipe(s), got {count}: {', '.join(options.recipes)}")
    data = {"recipes": list(options.recipes), "seed": options.seed, **analysis.compute(options)}
    target = folder / analysis.name
    target.mkdir(parents=True, exist_ok=True)
    (target / DATA_NAME).write_text(as_text(rounded(data)), encoding="utf-8")
    render(analysis, folder)
    return target


def render(analysis: Analysis, folder: Path) -> None:
    """Draw and describe what `data.json` holds, without computing anything anew.

    Raises:
        AnalysisError: there is no `data.json`; names the command.
    """
    target = folder / analysis.name
    if not (target / DATA_NAME).is_file():
        raise AnalysisError(
            f"{target / DATA_NAME} is not there: run `python -m training analyse {analysis.name}` first"
        )
    data = json.loads((target / DATA_NAME).read_text(encoding="utf-8"))
    analysis.draw(data, target)
    command = f"python -m training analyse {analysis.name} --recipe {','.join(data['recipes'])} --seed {data['seed']}"
    pictures = "\n\n".join(f"![{text}]({name})" for name, text in analysis.pictures.items())
    parts = [f"# {analysis.title}", f"{analysis.source}. Made by `{command}` from `{DATA_NAME}`.", pictures]
    page = "\n\n".join(part for part in (*parts, analysis.page(data)) if part)
    (target / PAGE_NAME).write_text(page.rstrip() + "\n", encoding="utf-8")


def write_index(analyses: Iterable[Analysis], folder: Path) -> None:
    """`<folder>/README.md`: the analyses that have data, with their pages; `RESULTS.md` lies beside them."""
    rows = [
        (f"[{each.title}]({each.name}/{PAGE_NAME})", each.source, f"`python -m training analyse {each.name}`")
        for each in analyses
        if (folder / each.name / DATA_NAME).is_file()
    ]
    parts = (
        "# Analyses",
        "Scores are in [RESULTS.md](RESULTS.md). These pages look into trained models; each folder holds its data and "
        "what is drawn from them.",
        table(("question", "asked in", "made by"), rows),
    )
    (folder / PAGE_NAME).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def as_text(data: Data) -> str:
    """JSON, lists of numbers on one line each."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\[([-+\d.eE,\s]+)\]", lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def rounded(value: Any, digits: int = 5) -> Any:
    """JSON values with every float at so many digits behind the point."""
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: rounded(inner, digits) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, digits) for inner in value]
    return value
