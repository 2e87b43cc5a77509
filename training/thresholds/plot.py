"""A picture of precision, recall and F1 by threshold, and of the scores under both labels."""

from pathlib import Path

import numpy as np

from training.analyses.analysis import COLOURS, drawing
from training.thresholds.choice import Labels, Scores, Sureness, quality


def plot(path: Path, scores: Scores, labels: Labels, chosen: float, sure: Sureness, title: str) -> None:
    """Write the picture; its suffix says the format, as .png or .svg.

    Raises:
        ValueError: a format that matplotlib does not know.
        OSError: the file cannot be written.
    """
    grid = np.linspace(0.0, 1.0, 101)
    found = [quality(scores, labels, float(threshold)) for threshold in grid]
    with drawing(path, height=6.0, rows=2) as (above, below):
        for name, colour in zip(("precision", "recall", "f1"), COLOURS, strict=False):
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
        below.hist([scores[~labels], scores[labels]], bins=bins, color=[COLOURS[1], COLOURS[0]], label=["0", "1"])
        below.set_xlabel("score")
        below.set_ylabel("pairs")
        below.legend(fontsize=8)
