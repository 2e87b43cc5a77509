"""What keeps GRAN behind averaging: negatives chosen with dropout, gates that start half shut, or their rate.

Wieting & Gimpel (2017), section 4.2 and Table 3. One epoch on the same few pairs for every row; the score is that of
STS 2016, the development sets, as everywhere where settings are chosen.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.data_amount import scores, smaller
from training.architectures import GRANConfig
from training.objectives.transfer import MarginConfig
from training.recipes import find
from training.recipes.recipe import Recipe
from training.results.report.markdown import number, table
from training.runs.folder import run_folder
from training.runs.run import run

PAIRS = 16_000
OPEN = 3.0  # a gate starts at .95
AVERAGE = "averaging"
ROWS: dict[str, dict[str, Any]] = {
    "GRAN as released: dropout .4, scrambling .5": {"quiet": False},
    "the same, negatives chosen without dropout": {},
    "no dropout, no scrambling": {"noise": False},
    "no dropout, no scrambling, gates start at .95": {"noise": False, "bias": OPEN},
    "the same, gates and LSTM at a fifth of the rate": {"noise": False, "bias": OPEN, "rate": 2e-4},
}


def variant(recipe: Recipe, number: int, settings: Mapping[str, Any]) -> Recipe:
    """`gran-1` on `PAIRS` pairs for an epoch; `settings`: those of `ROWS`.

    Raises:
        AnalysisError: the recipe is no GRAN under the margin loss.
    """
    if not isinstance(recipe.architecture, GRANConfig) or not isinstance(recipe.objective, MarginConfig):
        raise AnalysisError(f"recipe {recipe.name!r} is no GRAN under the margin loss")
    noisy = settings.get("noise", True)
    return replace(
        smaller(recipe, PAIRS),
        name=f"{recipe.name}-gates-{number}",
        architecture=replace(
            recipe.architecture,
            gate_bias=settings.get("bias", 0.0),
            dropout=recipe.architecture.dropout if noisy else 0.0,
        ),
        objective=replace(
            recipe.objective,
            quiet_negatives=noisy and settings.get("quiet", True),
            scramble=recipe.objective.scramble if noisy else 0.0,
        ),
        optimiser=replace(recipe.optimiser, learning_rate=settings.get("rate", recipe.optimiser.learning_rate)),
        schedule=replace(recipe.schedule, epochs=1),
    )


def compute(options: Options) -> Data:
    """Train missing runs and read the scores of all."""
    gran, average = map(find, options.recipes)
    plain = smaller(average, PAIRS)
    made = {AVERAGE: replace(plain, name=f"{average.name}-gates", schedule=replace(plain.schedule, epochs=1))}
    made |= {label: variant(gran, i, settings) for i, (label, settings) in enumerate(ROWS.items())}
    rows = {}
    for label, recipe in made.items():
        folder = run_folder(options.runs, recipe, options.seed)
        if not (folder / "result.json").is_file():
            run(recipe, options.runs, None, options.seed)
        before, best = scores(folder)
        rows[label] = {"before": before, "after": best}
    return {"pairs": PAIRS, "rows": rows}


def draw(data: Data, folder: Path) -> None:
    """Before and after the epoch, for every row."""
    with drawing(folder / "development.png", width=9.0, height=1.2 + 0.45 * len(data["rows"])) as [axes]:
        for y, row in enumerate(data["rows"].values()):
            axes.plot([100 * row["before"], 100 * row["after"]], [y, y], color=COLOURS[0], alpha=0.4, linewidth=4)
            axes.plot([100 * row["after"]], [y], "o", color=COLOURS[1])
        axes.set_yticks(range(len(data["rows"])), list(data["rows"]))
        axes.set_ylim(len(data["rows"]) - 0.5, -0.5)  # the first at the top
        axes.set(xlabel="mean Pearson r of STS 2016, x 100 (bar: from before training, dot: best of both)")
        axes.grid(axis="x", alpha=0.3)


def page(data: Data) -> str:
    """The rows, and what each is over averaging."""
    average = data["rows"][AVERAGE]["after"]
    rows = [
        (label, number(100 * row["before"], 2), number(100 * row["after"], 2), f"{100 * (row['after'] - average):+.2f}")
        for label, row in data["rows"].items()
    ]
    return (
        f"One epoch on the same {data['pairs']:,} pairs, margin .4 (averaging .6), one seed; mean Pearson r x 100 over "
        "the five sets of STS 2016. A row that training lowers is kept as it started.\n\n"
        + table(("row", "before training", "after", "over averaging"), rows)
    )


ANALYSIS = Analysis(
    name="gran-gates",
    title="What keeps GRAN behind averaging",
    source="Wieting & Gimpel 2017, section 4.2, Table 3",
    recipes=("gran-1", "gran-avg"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"development.png": "STS 2016 before and after an epoch, for averaging and settings of GRAN"},
    least=2,
    most=2,
)
