"""Training curves: development score after each epoch, for the teacher's loss and the papers' margin loss."""

import json
from pathlib import Path

from matplotlib.ticker import MaxNLocator

from training.analyses.analysis import COLOURS, MARKERS, Analysis, Data, Options, drawing
from training.recipes import find
from training.results.report.markdown import number, table
from training.runs.folder import RunMissing, run_folder


def read(path: Path) -> list[float]:
    """Development score by epoch, the start first, from a run's `metrics.jsonl`."""
    return [float(json.loads(line)["selection"]) for line in path.read_text(encoding="utf-8").splitlines()]


def compute(options: Options) -> Data:
    """The curve of every recipe.

    Raises:
        RunMissing: a run was not begun.
    """
    curves = {}
    for name in options.recipes:
        path = run_folder(options.runs, find(name), options.seed) / "metrics.jsonl"
        if not path.is_file():
            raise RunMissing(f"{path} is not there: run `python -m training train {name} --seed {options.seed}` first")
        curves[name] = {"objective": type(find(name).objective).__name__.removesuffix("Config"), "scores": read(path)}
    return {"curves": curves}


def draw(data: Data, folder: Path) -> None:
    """One line a recipe, its best epoch ringed."""
    with drawing(folder / "development.png", width=8) as [axes]:
        for i, (name, curve) in enumerate(data["curves"].items()):
            y = [100 * score for score in curve["scores"]]
            best = max(range(len(y)), key=y.__getitem__)
            label = f"{name} ({curve['objective']})"
            axes.plot(y, color=COLOURS[i % 8], marker=MARKERS[i % 8], markersize=4, label=label)
            axes.plot([best], [y[best]], "o", color=COLOURS[i % 8], markersize=11, markerfacecolor="none")
        axes.set(xlabel="epoch (0: before training; ring: the one kept)", ylabel="mean Pearson r of STS 2016, x 100")
        axes.set_title("Development score during training")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")


def page(data: Data) -> str:
    """Start, best and last."""
    rows = []
    for name, curve in data["curves"].items():
        scores = [100 * score for score in curve["scores"]]
        best = max(range(len(scores)), key=scores.__getitem__)
        figures = (scores[0], scores[best], scores[-1])
        rows.append((name, curve["objective"], *(number(f, 1) for f in figures), f"{best} of {len(scores) - 1}"))
    return "Mean Pearson r x 100 over the five sets of STS 2016.\n\n" + table(
        ("recipe", "objective", "start", "best", "last", "best epoch"), rows
    )


ANALYSIS = Analysis(
    name="curves",
    title="Development score during training",
    source="The teacher's recipe, in no paper, beside the papers' margin loss",
    recipes=("avg-paraphrase", "avg-margin", "avg-margin-random"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"development.png": "development score over epochs"},
)
