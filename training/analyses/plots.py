"""One look for all plots: matplotlib without a window, colours that colour-blind readers tell apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

# Okabe & Ito (2008), without yellow, which is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@contextmanager
def drawing(
    path: Path, *, width: float = 7.0, height: float = 4.2, rows: int = 1, dpi: int = 110
) -> Iterator[list[Axes]]:
    """Axes to draw on, one above the other; the picture is written when the block ends. Sizes in inches."""
    figure, axes = plt.subplots(rows, 1, figsize=(width, height), squeeze=False, layout="constrained")
    try:
        for each in axes[:, 0]:
            each.spines[["top", "right"]].set_visible(False)
            each.set_axisbelow(True)
        yield list(axes[:, 0])
        # No date and no version of the library inside: the same data give the same file.
        figure.savefig(path, dpi=dpi, metadata={"Software": None})
    finally:
        plt.close(figure)
