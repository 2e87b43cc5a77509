"""The learning curve of one run of each paper: what it scored on development data after each epoch."""

from collections.abc import Mapping
from pathlib import Path

from papers.pictures.plots import drawing
from training.publish.figures import REPEATS, RunFigures
from training.records import read_records

# Of each page the recipe and seed of its run, and what chooses its epoch, in words.
CURVES: Mapping[str, tuple[str, int, str]] = {
    "malstm": ("malstm-adam-alone", 1, "r on SICK's trial pairs"),
    "pwim": ("pwim-msrvid-alone", 1, "r on pairs held out of MSRvid's training part"),
    "mgim": ("mgim-msrp-overlaps", 3, "accuracy on pairs held out of MSRP's training part"),
    "paragram_phrase": ("pp-sick-avg-similarity", 1, "r on SICK's trial pairs"),
    "gran": ("sts-avg-dropout", 1, "r on the STS split's development pairs"),
}


def draw_curve(page: str, path: Path, repeats: Path = REPEATS) -> None:
    """Draw the curve of a page, without the untrained model; a ring marks the epoch that was kept, unless that is it.

    Raises:
        KeyError: no such page, or the file of repeated runs has none with this recipe and seed and its epochs.
    """
    recipe, seed, score = CURVES[page]
    runs = [run for run in read_records(repeats, RunFigures) if (run.recipe, run.seed) == (recipe, seed)]
    if not runs or not runs[0].training or len(runs[0].curve) < 2:
        raise KeyError(f"{repeats} has no learning curve of {recipe}, seed {seed}")
    untrained, *trained = runs[0].curve
    kept = runs[0].training.best_epoch
    with drawing(path, 2.5) as figure:
        axes = figure.subplots()
        axes.plot(range(1, len(trained) + 1), trained, "o-", color="#3949ab", markersize=3.5)
        if kept:
            axes.plot(kept, trained[kept - 1], "o", color="#c62828", markersize=10, markerfacecolor="none")
        axes.set_title(f"{recipe}, seed {seed}: {score}", fontsize=11, fontweight="bold")
        axes.set_xlabel(f"epochs of training (untrained: {untrained:.4f}; the best: epoch {kept})", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y", color="#e0e3e8", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
