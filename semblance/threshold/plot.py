"""A picture of precision, recall and F1 by threshold, and of the scores under both labels."""

from pathlib import Path

import numpy as np

from semblance.extras import needs
from semblance.threshold.choice import Labels, Scores, Sureness, quality

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
