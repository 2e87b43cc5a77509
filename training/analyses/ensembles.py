"""Mean ratings of several published models on SICK (ensembles)."""

from itertools import combinations
from pathlib import Path

import numpy as np

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.trained import Floats, gold, published
from training.corpora.readers import sick
from training.objectives.metrics import graded
from training.results.report.markdown import table


def compute(options: Options) -> Data:
    """r, rho and MSE on trial and test, of every model and of the mean of every set of them."""
    parts = {split: sick.read(split) for split in ("dev", "test")}
    ratings: dict[str, dict[str, Floats]] = {name: {} for name in options.recipes}
    for name in options.recipes:
        model = published(name)
        for split, pairs in parts.items():
            rating = model.similarity([p.a for p in pairs], [p.b for p in pairs]).rating
            if rating is None or model.manifest.similarity is None or model.manifest.similarity.label_scale != (1, 5):
                raise AnalysisError(f"{name} does not rate on SICK's scale")
            ratings[name][split] = rating
    rows = []
    for count in range(1, len(options.recipes) + 1):
        for chosen in combinations(options.recipes, count):
            measured = {
                split: graded(np.mean([ratings[name][split] for name in chosen], axis=0), gold(pairs))
                for split, pairs in parts.items()
            }
            rows.append({"models": list(chosen), **measured})
    return {"ensembles": rows}


def draw(data: Data, folder: Path) -> None:
    """Test r over the number of models."""
    with drawing(folder / "ensembles.png") as [axes]:
        points = [(len(row["models"]), row["test"]["pearson"]) for row in data["ensembles"]]
        axes.plot(*zip(*points, strict=True), "o", color=COLOURS[0])
        for row in data["ensembles"]:
            if len(row["models"]) == 1:
                axes.annotate(row["models"][0], (1, row["test"]["pearson"]), xytext=(6, -3), textcoords="offset points")
        axes.set(xlabel="models whose ratings are averaged", ylabel="Pearson r, SICK test")
        axes.set_xticks(range(1, max(count for count, _ in points) + 1))
        axes.grid(alpha=0.3)


def page(data: Data) -> str:
    """Every set, best on trial first."""
    rows = [
        (
            " + ".join(row["models"]),
            *(f"{row[split][metric]:.4f}" for split in ("dev", "test") for metric in ("pearson", "spearman", "mse")),
        )
        for row in sorted(data["ensembles"], key=lambda row: -row["dev"]["pearson"])
    ]
    head = ("models", "trial r", "rho", "MSE", "test r", "rho", "MSE")
    return (
        f"Best on trial first; the service answers with one model, never with a mean of several.\n\n{table(head, rows)}"
    )


ANALYSIS = Analysis(
    name="ensembles",
    title="Means of several models' ratings",
    source="Ours, in no paper",
    recipes=("pwim-sick", "mgim-sick", "avg-sick-tuned", "malstm-sick"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"ensembles.png": "SICK test r over how many models are averaged"},
)
