"""Plots quality against throughput, with the Pareto front; quality is that of the manifests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # without a display
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

SICK, STS = "SICK test, Pearson r", "STS 2012-2015, mean Pearson r of 19 sets"
STS_SETS = 19
OURS, PEER = "ours", "peer"
SPEED = "pairs/s, requests of 64 pairs, nothing cached"
STYLE = {  # (whose, trained on SICK) -> marker, face, legend
    (OURS, True): ("o", "tab:blue", "ours, trained on SICK"),
    (OURS, False): ("o", "white", "ours, not trained on SICK"),
    (PEER, False): ("s", "white", "peer, not trained on SICK"),
}
# Offsets of a label from its mark, in points; the first free one is used.
PLACES = [
    (8, -3),
    (-8, -3),
    (0, 9),
    (0, -15),
    (8, 10),
    (-8, 10),
    (8, -16),
    (-8, -16),
    (0, 22),
    (0, -28),
    (8, 24),
    (8, -30),
    (-8, 24),
    (-8, -30),
    (-30, 36),
    (-30, -42),
    (-60, 48),
    (-60, -54),
]
MANY = 12  # points, from which a panel is drawn larger


@dataclass(frozen=True)
class Point:
    """A model's throughput and quality."""

    name: str
    whose: str
    trained_on_sick: bool
    rate: float  # pairs a second
    quality: Mapping[str, float]


def quality(figures: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The values of the quality axes for which a model has figures.

    Args:
        figures: as in a manifest: corpus, split, metric, value.
    """
    values = {(f["corpus"], f["split"]): f["value"] for f in figures if f["metric"] == "pearson"}
    sets = [
        value for (corpus, split), value in values.items() if corpus.startswith("STS 20") and split != "mean of sets"
    ]
    found = {SICK: values.get(("SICK", "test")), STS: mean(sets) if len(sets) == STS_SETS else None}
    return {axis: value for axis, value in found.items() if value is not None}


def front(points: Sequence[Point], axis: str) -> list[Point]:
    """The Pareto front of throughput and quality, fastest first."""
    found: list[Point] = []
    for point in sorted((p for p in points if axis in p.quality), key=lambda p: (-p.rate, -p.quality[axis])):
        if not found or point.quality[axis] > found[-1].quality[axis]:
            found.append(point)
    return found


def draw(points: Sequence[Point], path: Path, title: str, speed: str = SPEED) -> None:
    """Draw one panel for each quality axis that more than one model has; `speed` names the other axis."""
    axes = [axis for axis in (SICK, STS) if sum(axis in p.quality for p in points) > 1]
    width, height = (7.5, 6.6) if len(points) > MANY else (6.5, 5.2)
    figure, panels = plt.subplots(1, max(1, len(axes)), figsize=(width * max(1, len(axes)), height), squeeze=False)
    for panel, axis in zip(panels[0], axes, strict=False):
        _panel(panel, [p for p in points if axis in p.quality], axis, speed)
    figure.suptitle(title, fontsize=10)
    legend = dict(zip(*reversed(panels[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(legend.values(), legend, loc="lower center", ncols=len(legend), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    for panel, axis in zip(panels[0], axes, strict=False):
        _label(panel, [p for p in points if axis in p.quality], axis)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(panel: Axes, points: Sequence[Point], axis: str, speed: str) -> None:
    best = front(points, axis)
    panel.set_xscale("log")
    rates, values = [p.rate for p in points], [p.quality[axis] for p in points]
    room = (max(values) - min(values)) * 0.18 or 0.01
    panel.set_xlim(min(rates) / 2.5, max(rates) * 2.5)
    panel.set_ylim(min(values) - room, max(values) + room)
    panel.plot(*_line(panel, best, axis), color="tab:orange", linewidth=1.2, zorder=1, label="Pareto front")
    for (whose, trained), (marker, face, legend) in STYLE.items():
        chosen = [p for p in points if (p.whose, p.trained_on_sick) == (whose, trained)]
        if chosen:
            colour = "tab:blue" if whose == OURS else "tab:red"
            at = ([p.rate for p in chosen], [p.quality[axis] for p in chosen])
            panel.scatter(
                *at, marker=marker, s=46, facecolor=face, edgecolor=colour, linewidth=1.6, zorder=3, label=legend
            )
    panel.set_xlabel(speed)
    panel.set_ylabel(axis)
    panel.grid(True, which="major", alpha=0.3)


def _line(panel: Axes, best: Sequence[Point], axis: str) -> tuple[list[float], list[float]]:
    """The corners of the front's staircase, from the fastest point to the slowest."""
    xs, ys = [best[0].rate], [panel.get_ylim()[0]]
    for point in best:
        xs += [point.rate, point.rate]
        ys += [ys[-1], point.quality[axis]]
    return [*xs, panel.get_xlim()[0]], [*ys, ys[-1]]


def _label(panel: Axes, points: Sequence[Point], axis: str) -> None:
    """Place names beside the marks, without overlap with names, marks and the line."""
    renderer = panel.figure.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg's canvas has one
    corners = panel.transData.transform(list(zip(*_line(panel, front(points, axis), axis), strict=True))).tolist()
    taken = [_around(*start, *end) for start, end in pairwise(corners)]
    for point in points:
        x, y = panel.transData.transform((point.rate, point.quality[axis]))
        taken.append(_around(x, y, x, y, 9))
    frame = panel.get_window_extent(renderer)
    for point in sorted(points, key=lambda p: p.rate):
        for i, (dx, dy) in enumerate(PLACES):
            label = panel.annotate(
                point.name,
                (point.rate, point.quality[axis]),
                (dx, dy),
                textcoords="offset points",
                fontsize=8.5,
                ha="left" if dx > 0 else "right" if dx < 0 else "center",
            )
            box = label.get_window_extent(renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if (inside and not any(box.overlaps(other) for other in taken)) or i == len(PLACES) - 1:
                taken.append(box)
                break
            label.remove()


def _around(x0: float, y0: float, x1: float, y1: float, room: float = 1) -> Bbox:
    return Bbox.from_extents(min(x0, x1) - room, min(y0, y1) - room, max(x0, x1) + room, max(y0, y1) + room)
