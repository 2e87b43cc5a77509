"""The parts of an analysis: a computation that gives JSON data, plots and a page of that data.

The folder of an analysis is `analyses/<name>/`: `data.json` is computed, all other files are generated from it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from training.results.report.markdown import table

matplotlib.use("Agg")  # no window

Data = dict[str, Any]  # plain JSON values
DATA_NAME, PAGE_NAME = "data.json", "README.md"
# Okabe & Ito (2008), without yellow, which is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


class AnalysisError(ValueError):
    """The options do not fit the analysis; a message of one line."""


@dataclass(frozen=True)
class Options:
    """Options of an analysis."""

    recipes: tuple[str, ...]
    seed: int
    runs: Path


@dataclass(frozen=True)
class Analysis:
    """One question; `pictures` maps a file name to its alternative text."""

    name: str
    title: str
    source: str  # section of a paper
    recipes: tuple[str, ...]  # the default
    compute: Callable[[Options], Data]
    draw: Callable[[Data, Path], None]
    page: Callable[[Data], str]  # Markdown below the title
    pictures: Mapping[str, str]
    most: int | None = None  # recipes that it looks at


def carry_out(analysis: Analysis, options: Options, folder: Path) -> Path:
    """Compute, write `data.json`, draw, write the page; returns the folder `<folder>/<name>`.

    Raises:
        AnalysisError: too many recipes, or a model that does not fit the analysis.
        RunMissing: a run was not trained.
        CorpusError: a corpus is missing or malformed.
    """
    if analysis.most is not None and (count := len(options.recipes)) > analysis.most:
        raise AnalysisError(
            f"{analysis.name} looks at {analysis.most} recipe, got {count}: {', '.join(options.recipes)}"
        )
    data = {"recipes": list(options.recipes), "seed": options.seed, **analysis.compute(options)}
    target = folder / analysis.name
    target.mkdir(parents=True, exist_ok=True)
    (target / DATA_NAME).write_text(as_text(rounded(data)), encoding="utf-8")
    render(analysis, folder)
    return target


def render(analysis: Analysis, folder: Path) -> None:
    """Write plots and page from `data.json`.

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
    """Write `<folder>/README.md`: the analyses that have data, with their pages."""
    rows = [
        (f"[{each.title}]({each.name}/{PAGE_NAME})", each.source, f"`python -m training analyse {each.name}`")
        for each in analyses
        if (folder / each.name / DATA_NAME).is_file()
    ]
    parts = (
        "# Analyses",
        "Scores are in [RESULTS.md](RESULTS.md). These pages analyse trained models; each folder has the data of its "
        "plots and tables.",
        table(("question", "asked in", "made by"), rows),
    )
    (folder / PAGE_NAME).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def as_text(data: Data) -> str:
    """JSON, lists of numbers on one line each."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\[([-+\d.eE,\s]+)\]", lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def rounded(value: Any, digits: int = 5) -> Any:
    """JSON values with floats rounded to `digits` decimals."""
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: rounded(inner, digits) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, digits) for inner in value]
    return value


@contextmanager
def drawing(
    path: Path, *, width: float = 7.0, height: float = 4.2, rows: int = 1, dpi: int = 110
) -> Iterator[list[Axes]]:
    """Axes, one above the other; the picture is written when the block ends. Sizes in inches."""
    figure, axes = plt.subplots(rows, 1, figsize=(width, height), squeeze=False, layout="constrained")
    try:
        for each in axes[:, 0]:
            each.spines[["top", "right"]].set_visible(False)
            each.set_axisbelow(True)
        yield list(axes[:, 0])
        # Without date and version of the library, so that the same data gives the same file.
        figure.savefig(path, dpi=dpi, metadata={"Software": None})
    finally:
        plt.close(figure)
