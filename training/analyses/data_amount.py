"""Score against the amount of training data (Wieting et al. 2016, section 5.2.1, Figure 1).

The paper halves PPDB XL repeatedly and scores on its 22 test sets. Here scores are of STS 2016, the development sets,
for samples of 1,000 to 160,000 pairs of the mixture. In the paper each smaller set is a subset of the larger one; here
the samples are independent.
"""

import json
from dataclasses import replace
from pathlib import Path

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.recipes import find
from training.recipes.recipe import Recipe
from training.results.report.markdown import number, table
from training.runs.folder import run_folder
from training.runs.run import run
from training.sources.transfer import ParaphrasePairs

SIZES = (1_000, 5_000, 20_000, 80_000, 160_000)


def smaller(recipe: Recipe, pairs: int) -> Recipe:
    """The recipe on fewer pairs; itself for the number it has.

    Raises:
        AnalysisError: it does not train on paraphrase pairs, or on fewer than that.
    """
    data = recipe.data
    if not isinstance(data, ParaphrasePairs) or (data.limit is not None and data.limit < pairs):
        raise AnalysisError(f"recipe {recipe.name!r} does not train on {pairs} paraphrase pairs or more")
    if data.limit == pairs:
        return recipe
    return replace(recipe, name=f"{recipe.name}-{pairs}-pairs", data=replace(data, limit=pairs), publication=None)


def scores(folder: Path) -> tuple[float, float]:
    """(before training, at the best epoch): mean Pearson r of the development sets, from a run's `metrics.jsonl`."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    selections = [float(json.loads(line)["selection"]) for line in lines]
    return selections[0], max(selections)


def compute(options: Options) -> Data:
    """Train missing runs and read the scores of all."""
    recipe = find(options.recipes[0])
    points = []
    untrained = 0.0
    for pairs in SIZES:
        each = smaller(recipe, pairs)
        folder = run_folder(options.runs, each, options.seed)
        if not (folder / "result.json").is_file():
            run(each, options.runs, None, options.seed)
        untrained, best = scores(folder)
        points.append({"pairs": pairs, "pearson": best})
    return {"untrained": untrained, "points": points, "epochs": recipe.schedule.epochs}


def draw(data: Data, folder: Path) -> None:
    """The curve on a logarithmic axis, with the untrained vectors as a line."""
    with drawing(folder / "score-by-pairs.png") as [axes]:
        x = [point["pairs"] for point in data["points"]]
        axes.plot(x, [100 * p["pearson"] for p in data["points"]], "o-", color=COLOURS[0], label=data["recipes"][0])
        axes.axhline(100 * data["untrained"], color=COLOURS[7], linestyle="--", label="before training")
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{each:,}" for each in x], minor=False)
        axes.minorticks_off()
        axes.set(xlabel="training pairs (logarithmic)", ylabel="mean Pearson r of STS 2016, x 100")
        axes.set_title("Score against the amount of training data")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")


def page(data: Data) -> str:
    """The points."""
    first = [("0", number(100 * data["untrained"], 1), "")]
    rows = [
        (f"{p['pairs']:,}", number(100 * p["pearson"], 1), f"{100 * (p['pearson'] - data['untrained']):+.1f}")
        for p in data["points"]
    ]
    return (
        f"Each point is a run of its own ({data['epochs']} epochs, the best one kept); mean Pearson r x 100 over the "
        "five sets of STS 2016, on which the epoch is chosen too.\n\n"
        + table(("pairs", "STS 2016", "over no training"), first + rows)
    )


ANALYSIS = Analysis(
    name="data-amount",
    title="Score against the amount of training data",
    source="Wieting et al. 2016, section 5.2.1, Figure 1",
    recipes=("gran-avg",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"score-by-pairs.png": "mean Pearson r of STS 2016 over the number of training pairs"},
    most=1,
)
