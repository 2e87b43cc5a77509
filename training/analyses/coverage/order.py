"""Score against the amount of training data in two orders (Wieting et al. 2016, section 5.2.1, Figure 1).

The paper takes the first 3,033,753 / 2^k pairs of PPDB XL, in the database's order (the surest first) and shuffled.
Here they are the first 50,000 / 4^k pairs of words of PPDB 2.0 XXL, and the score is that of STS 2016, the development
sets, where the paper's is the mean of its 22 test sets. Each smaller set is a part of the larger one, in both.
"""

from dataclasses import replace
from pathlib import Path

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.data_amount import scores
from training.recipes import find
from training.recipes.recipe import Recipe
from training.results.report.markdown import number, table
from training.runs.folder import run_folder
from training.runs.run import run
from training.sources.transfer import LexicalPairs

SIZES = (48, 195, 781, 3_125, 12_500, 50_000)
ORDERS = {"ordered": False, "random": True}


def variant(recipe: Recipe, pairs: int, *, shuffled: bool) -> Recipe:
    """The recipe on the first pairs of an order; a batch is never larger than a tenth of them.

    Raises:
        AnalysisError: it does not train on pairs of words.
    """
    if not isinstance(recipe.data, LexicalPairs):
        raise AnalysisError(f"recipe {recipe.name!r} does not train on pairs of words of PPDB")
    order = "random" if shuffled else "ordered"
    return replace(
        recipe,
        name=f"{recipe.name}-{pairs}-{order}",
        data=replace(recipe.data, limit=pairs, shuffled=shuffled),
        schedule=replace(recipe.schedule, batch_size=min(recipe.schedule.batch_size, max(pairs // 10, 2))),
    )


def compute(options: Options) -> Data:
    """Train missing runs and read the scores of all."""
    recipe = find(options.recipes[0])
    points = []
    untrained = 0.0
    for order, shuffled in ORDERS.items():
        for pairs in SIZES:
            each = variant(recipe, pairs, shuffled=shuffled)
            folder = run_folder(options.runs, each, options.seed)
            if not (folder / "result.json").is_file():
                run(each, options.runs, None, options.seed)
            untrained, best = scores(folder)
            points.append({"order": order, "pairs": pairs, "pearson": best})
    return {"untrained": untrained, "points": points, "epochs": recipe.schedule.epochs}


def draw(data: Data, folder: Path) -> None:
    """A curve an order, on a logarithmic axis, with the untrained vectors as a line."""
    with drawing(folder / "score-by-order.png") as [axes]:
        for colour, order in zip(COLOURS, ORDERS, strict=False):
            chosen = [point for point in data["points"] if point["order"] == order]
            x, y = [p["pairs"] for p in chosen], [100 * p["pearson"] for p in chosen]
            axes.plot(x, y, "o-", color=colour, label=order)
        axes.axhline(100 * data["untrained"], color=COLOURS[7], linestyle="--", label="before training")
        axes.set_xscale("log")
        axes.set(xlabel="pairs of words (logarithmic)", ylabel="mean Pearson r of STS 2016, x 100")
        axes.set_title("Score against the amount of training data, in two orders")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")


def page(data: Data) -> str:
    """The points, and which order is ahead."""
    of = {(point["order"], point["pairs"]): 100 * point["pearson"] for point in data["points"]}
    sizes = sorted({pairs for _, pairs in of})
    rows = [
        (
            f"{pairs:,}",
            *(number(of[order, pairs], 2) for order in ORDERS),
            f"{of['random', pairs] - of['ordered', pairs]:+.2f}",
        )
        for pairs in sizes
    ]
    ahead = sum(of["random", pairs] > of["ordered", pairs] for pairs in sizes)
    return (
        f"{data['epochs']} epochs a point, the best one kept; mean Pearson r x 100 over the five sets of STS 2016, "
        f"{number(100 * data['untrained'], 2)} before training. In the paper the shuffled pairs are usually slightly "
        f"ahead, until half of all are used; here they are at {ahead} of {len(sizes)} sizes.\n\n"
        + table(("pairs", "ordered", "random", "random over ordered"), rows)
    )


ANALYSIS = Analysis(
    name="data-order",
    title="Score against the amount of training data, in two orders",
    source="Wieting et al. 2016, section 5.2.1, Figure 1",
    recipes=("pp-avg-lexical",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"score-by-order.png": "mean Pearson r of STS 2016 over the number of pairs of words, in two orders"},
    most=1,
)
