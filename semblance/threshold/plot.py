"""Pictures: precision, recall and F1 by threshold with the scores under both labels; models by their AUC."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from semblance.extras import needs
from semblance.threshold.choice import Labels, Scores, Sureness, quality
from semblance.threshold.models import Compared

_COLOURS = ("#1F77B4", "#D95F02", "#1B9E77")


def plot(path: Path, scores: Scores, labels: Labels, chosen: float, sure: Sureness, title: str) -> None:
    """Write the picture; its suffix says the format, as .png or .svg.

    Raises:
        MissingExtra: matplotlib is not installed.
        ValueError: a format that matplotlib does not know.
        OSError: the file cannot be written.
    """
    with needs("a picture", extra="training"):
        import matplotlib.pyplot as plt
    grid = np.linspace(0.0, 1.0, 101)
    found = [quality(scores, labels, float(threshold)) for threshold in grid]
    figure, (above, below) = plt.subplots(2, 1, figsize=(7.0, 6.0), layout="constrained")
    try:
        for name, colour in zip(("precision", "recall", "f1"), _COLOURS, strict=False):
            # Where nothing passes, there is no precision to show.
            values = [getattr(each, name) if each.passing or name == "recall" else np.nan for each in found]
            above.plot(grid, values, color=colour, label=name.replace("f1", "F1"))
        for axes in (above, below):
            axes.axvspan(sure.threshold.low, sure.threshold.high, color="#7F7F7F", alpha=0.2, label="95 % of resamples")
            axes.axvline(chosen, color="#000000", linewidth=1.2, label=f"threshold {chosen:.4f}")
            axes.set_xlim(0.0, 1.0)
        above.set_ylim(0.0, 1.02)
        above.set_title(title)
        above.legend(fontsize=8)
        bins = np.linspace(0.0, 1.0, 26).tolist()
        below.hist([scores[~labels], scores[labels]], bins=bins, color=[_COLOURS[1], _COLOURS[0]], label=["0", "1"])
        below.set_xlabel("score")
        below.set_ylabel("pairs")
        below.legend(fontsize=8)
        figure.savefig(path, dpi=110)
    finally:
        plt.close(figure)


def plot_models(path: Path, compared: Sequence[Compared], taken: Compared, title: str) -> None:
    """Write the AUC of each model with its interval, the recommended one in another colour; raises as `plot`."""
    with needs("a picture", extra="training"):
        import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(7.0, 1.5 + 0.3 * len(compared)), layout="constrained")
    try:
        for place, each in enumerate(reversed(compared)):
            colour = _COLOURS[1] if each is taken else _COLOURS[0]
            axes.plot([each.low, each.high], [place, place], color=colour)
            axes.plot(each.auc, place, "o", color=colour)
        names = [
            f"{each.candidate.model}, {each.candidate.task}, {1000 * each.candidate.seconds:.2g} ms"
            for each in reversed(compared)
        ]
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.axvline(0.5, color="#7F7F7F", linewidth=0.8)
        axes.set_xlabel("AUC, and 95 % of resamples")
        axes.set_title(title)
        figure.savefig(path, dpi=110)
    finally:
        plt.close(figure)
