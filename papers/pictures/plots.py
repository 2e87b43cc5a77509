"""Plots by matplotlib (the extra `papers`), as SVG with text that stays text; the same figures give the same file."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.pictures.interactions import Met
from papers.verdicts import ALIKE, FAILS, HOLDS, OrderVerdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 8.8  # inches; a hundred points each in a browser
# Claims by the beginning of their tables' names: one plot each.
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "malstm": ("MaLSTM (2016)", ("malstm-",)),
    "pwim": ("PWIM (2016)", ("pwim-",)),
    "mgim": ("MGIM (2019)", ("mgim-",)),
    "paragram-transfer": ("PARAGRAM-PHRASE (2016), transfer", ("wieting2016-table2",)),
    "paragram-supervised": ("PARAGRAM-PHRASE (2016), supervised", ("wieting2016-table5", "wieting2016-table6")),
    "gran-transfer": ("GRAN (2017), transfer", tuple(f"gran-table{n}" for n in (1, 2, 3, 4))),
    "gran-supervised": ("GRAN (2017), supervised", tuple(f"gran-table{n}" for n in (5, 6, 8))),
}
_COLOURS = {HOLDS: "#2e7d32", FAILS: "#c62828", ALIKE: "#616161"}
_OPEN = "#8d6e00"  # not judged: too few seeds, or unequal epochs
_MARKS = {"our gap, holds": HOLDS, "does not hold": FAILS, "not told apart": ALIKE}


def claims(title: str, orders: Sequence[OrderVerdict], path: Path) -> None:
    """Every claim of a group: the paper's gap, and ours with its spread, in hundredths."""
    with drawing(path, 1.5 + 0.3 * len(orders)) as figure:
        axes = figure.subplots()
        columns = dict.fromkeys(each.column.name for each in orders)
        labels = []
        for at, each in enumerate(orders):
            assert each.paper is not None
            assert each.ours is not None
            points = 100 / each.column.scale
            colour = _COLOURS.get(each.verdict, _OPEN)
            filled = colour if each.verdict in _COLOURS else "none"
            spread = None if each.spread is None else each.spread * points
            style: dict[str, Any] = {
                "fmt": "o",
                "color": colour,
                "markerfacecolor": filled,
                "markersize": 6,
                "capsize": 3,
            }
            axes.errorbar(each.ours * points, at + 0.1, xerr=spread, **style)
            axes.plot(each.paper * points, at - 0.18, "D", color="#1a237e", markersize=4.5)
            label = each.claim if len(columns) == 1 else f"{each.claim} ({each.column.name})"
            labels.append("\n".join(textwrap.wrap(label, 58)))
        axes.axvline(0, color="#1c2430", linewidth=1)
        axes.set_yticks(range(len(orders)), labels, fontsize=8)
        axes.set_ylim(len(orders) - 0.5, -0.5)
        axes.set_xlabel("ahead by, in hundredths", fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(axis="x", color="#e0e3e8", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        _legend(figure, f"{title}: {', '.join(columns)}")


def _legend(figure: "Figure", title: str) -> None:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 6}
    marks = [Line2D([], [], marker="D", linestyle="none", color="#1a237e", markersize=4.5, label="the paper's gap")]
    marks += [Line2D([], [], color=_COLOURS[kind], label=label, **dot) for label, kind in _MARKS.items()]
    marks.append(Line2D([], [], color=_OPEN, markerfacecolor="none", label="not judged", **dot))
    figure.suptitle(title, fontsize=11, fontweight="bold")
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), fontsize=8, frameon=False)


def interactions(title: str, met: Sequence[Met], path: Path) -> None:
    """Heat maps of word pairs, two in a row."""
    rows = (len(met) + 1) // 2
    with drawing(path, 0.5 + 3.9 * rows) as figure:
        panels = figure.subplots(rows, 2, squeeze=False).flat
        for axes, each in zip(panels, met, strict=False):
            _heat(axes, each)
        for axes in list(panels)[len(met) :]:
            axes.set_visible(False)
        figure.suptitle(title, fontsize=11, fontweight="bold")


def _heat(axes: "Axes", met: Met) -> None:
    """One pair: words of a downwards, words of b to the right, darker for more."""
    axes.pcolormesh(met.values, cmap="Blues", vmin=0.0, vmax=1.0, edgecolors="#d5dae2", linewidth=0.5)
    axes.invert_yaxis()
    axes.set_xticks([at + 0.5 for at in range(len(met.b))], met.b, rotation=60, ha="right", fontsize=8)
    axes.set_yticks([at + 0.5 for at in range(len(met.a))], met.a, fontsize=8)
    axes.tick_params(length=0)
    for y, row in enumerate(met.values):
        for x, value in enumerate(row):
            if value >= 0.095:
                shade = "#ffffff" if value > 0.6 else "#1c2430"
                shown = f"{value:.1f}".lstrip("0") or "0"
                axes.text(x + 0.5, y + 0.5, shown, ha="center", va="center", fontsize=7, color=shade)
    axes.set_title(f"score {met.score:.2f}", fontsize=9)


@contextmanager
def drawing(path: Path, height: float) -> Iterator["Figure"]:
    """A figure that is written when all is drawn.

    Raises:
        ModuleNotFoundError: the extra `papers` is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    fixed: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "semblance", "font.family": "sans-serif"}
    with matplotlib.rc_context(fixed):
        figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="#fcfcfd")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
