"""The learning curve of one run of each paper, as an SVG: what it scored on development data after each epoch."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path

from papers.pictures.layout import MARGIN, WIDTH, opened
from training.publish.figures import REPEATS, RunFigures
from training.records import read_records

HEIGHT, LEFT, TOP, BOTTOM = 250, 62, 48, 60  # of the picture; of the axes in it
WIDEST = 24  # epochs that are numbered, at most
LINES = 5  # across, at most


@dataclass(frozen=True)
class CurveOfPage:
    """The run whose curve a page shows.

    Attributes:
        recipe: of the run.
        seed: of the run.
        score: what chooses its epoch, in words.
    """

    recipe: str
    seed: int
    score: str


CURVES: Mapping[str, CurveOfPage] = {
    "malstm": CurveOfPage("malstm-adam-alone", 1, "r on SICK's trial pairs"),
    "pwim": CurveOfPage("pwim-msrvid-alone", 1, "r on pairs held out of MSRvid's training part"),
    "mgim": CurveOfPage("mgim-msrp-overlaps", 3, "accuracy on pairs held out of MSRP's training part"),
    "paragram_phrase": CurveOfPage("pp-sick-avg-similarity", 1, "r on SICK's trial pairs"),
    "gran": CurveOfPage("sts-avg-dropout", 1, "r on the STS split's development pairs"),
}


def draw_curve(page: str, repeats: Path = REPEATS) -> str:
    """The SVG of a page.

    Raises:
        KeyError: the file of repeated runs has none with this recipe and seed, or not its epochs.
    """
    wanted = CURVES[page]
    for run in read_records(repeats, RunFigures):
        if (run.recipe, run.seed) == (wanted.recipe, wanted.seed) and run.curve and run.training:
            return curve_svg(f"{run.recipe}, seed {run.seed}", wanted.score, run.curve, run.training.best_epoch)
    raise KeyError(f"{repeats} has no learning curve of {wanted.recipe}, seed {wanted.seed}")


def curve_svg(title: str, score: str, curve: tuple[float, ...], kept: int) -> str:
    """The picture of a curve whose first value is that of the untrained model; a ring marks the epoch that was kept.

    The untrained model is told in words where it is further below all epochs than these are apart.
    """
    trained = curve[1:] or curve
    first = int(kept > 0 and curve[0] < 2 * min(trained) - max(trained))
    ticks = _ticks(min(curve[first:]), max(curve))
    low, high = ticks[0], ticks[-1]
    across, down = WIDTH - LEFT - MARGIN - 8, HEIGHT - TOP - BOTTOM
    points = {
        epoch: (
            LEFT + across * (epoch - first) / max(len(curve) - 1 - first, 1),
            TOP + down * (high - curve[epoch]) / (high - low),
        )
        for epoch in range(first, len(curve))
    }
    lines = [*opened(title, HEIGHT), f'<text class="title" x="{MARGIN}" y="26">{title}: {score}</text>']
    for value in ticks:
        y = TOP + down * (high - value) / (high - low)
        lines.append(f'<path d="M{LEFT} {y:.1f} H{WIDTH - MARGIN}" stroke="#e0e3e8"/>')
        lines.append(f'<text class="small" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    for epoch in range(first, len(curve), ceil(len(curve) / WIDEST)):
        x = points[epoch][0]
        lines.append(f'<text class="small" x="{x:.1f}" y="{TOP + down + 18}" text-anchor="middle">{epoch}</text>')
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points.values())
    lines.append(f'<polyline points="{path}" fill="none" stroke="#3949ab" stroke-width="2"/>')
    lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#3949ab"/>' for x, y in points.values()]
    x, y = points[kept]
    lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none" stroke="#c62828" stroke-width="2"/>')
    untrained = f"the untrained model has {curve[0]:.2f}" if first else "0 is the untrained model"
    said = f"Epochs of training; {untrained}. The ring is the epoch that was kept: {kept}, {curve[kept]:.4f}."
    lines.append(f'<text class="small" x="{LEFT}" y="{HEIGHT - MARGIN}">{said}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _ticks(least: float, most: float) -> list[float]:
    """Round numbers around all values, `LINES` or fewer steps apart."""
    step = next(each for each in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if ceil(most / each) - floor(least / each) <= LINES)
    return [step * at for at in range(floor(least / step), max(ceil(most / step), floor(least / step) + 1) + 1)]
