"""Plots for the site, as SVG in the colours of the page: our figures beside the paper's."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

_LABELS, _PANEL, _GAP, _ROW, _HEAD = 250, 260, 30, 22, 46  # pixels
_MOST_PANELS = 2
_FIRST = (
    "mean of 20",
    "SICK",
    "SICK r",
    "STS split",
    "SICK entailment",
)  # columns that are shown where a table has them


class Row(NamedTuple):
    """One model: its name, ours and the paper's value by column."""

    label: str
    ours: Mapping[str, float]
    paper: Mapping[str, float]


def beside_the_paper(table: Mapping[str, Any]) -> str | None:
    """A dot plot of a reproduced table; None if the paper has no figure that we have too.

    Args:
        table: as in `analyses/tables/`: columns, and rows with `mean` (ours, over the seeds) and `paper`.
    """
    rows = [
        Row(row["label"], row["mean"], {name: each["value"] for name, each in (row["paper"] or {}).items()})
        for row in table["rows"]
    ]
    shared = {
        column["name"]: count
        for column in table["columns"]
        if (count := sum(_has(row.ours, column["name"]) and _has(row.paper, column["name"]) for row in rows)) > 1
    }
    if not shared:
        return None
    most = [name for name in shared if shared[name] == max(shared.values())]
    columns = sorted(most, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))[:_MOST_PANELS]
    shown = [row for row in rows if any(_has(row.ours, c) or _has(row.paper, c) for c in columns)]
    return _draw(shown, columns, table["title"])


def _has(values: Mapping[str, float], column: str) -> bool:
    return values.get(column) is not None


def _draw(rows: Sequence[Row], columns: Sequence[str], title: str) -> str:
    width = _LABELS + len(columns) * (_PANEL + _GAP)
    height = _HEAD + len(rows) * _ROW + 30
    parts = [
        f'<svg class="beside" width="{width}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}: ours and the paper\'s" '
        'xmlns="http://www.w3.org/2000/svg" font-size="12" fill="currentColor">',
        f'<circle class="ours" cx="{_LABELS + 6}" cy="12" r="5"/><text x="{_LABELS + 16}" y="16">ours</text>',
        f'<path class="paper" d="{_diamond(_LABELS + 70, 12)}"/><text x="{_LABELS + 82}" y="16">the paper\'s</text>',
    ]
    for i, row in enumerate(rows):
        y = _HEAD + (i + 0.5) * _ROW
        parts.append(f'<text x="{_LABELS - 10}" y="{y + 4:.0f}" text-anchor="end">{escape(_fit(row.label))}</text>')
    for j, column in enumerate(columns):
        parts += _panel(rows, column, _LABELS + j * (_PANEL + _GAP), height)
    return "\n".join([*parts, "</svg>"])


def _panel(rows: Sequence[Row], column: str, left: float, height: float) -> list[str]:
    values = [value for row in rows for side in (row.ours, row.paper) if (value := side.get(column)) is not None]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.05 * abs(high) or 1.0
    low, high = low - margin, high + margin

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * _PANEL

    bottom = height - 24
    parts = [f'<text x="{left + _PANEL / 2:.0f}" y="{_HEAD - 10}" text-anchor="middle">{escape(column)}</text>']
    for tick in _ticks(low, high):
        at = x(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_HEAD - 4}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for i, row in enumerate(rows):
        y = _HEAD + (i + 0.5) * _ROW
        ours, paper = row.ours.get(column), row.paper.get(column)
        if ours is not None and paper is not None:
            parts.append(f'<line class="gap" x1="{x(ours):.1f}" y1="{y}" x2="{x(paper):.1f}" y2="{y}"/>')
        if paper is not None:
            said = escape(f"{row.label}, {column}: the paper {paper:g}")
            parts.append(f'<path class="paper" d="{_diamond(x(paper), y)}"><title>{said}</title></path>')
        if ours is not None:
            said = escape(f"{row.label}, {column}: ours {ours:.4g}")
            parts.append(f'<circle class="ours" cx="{x(ours):.1f}" cy="{y}" r="5"><title>{said}</title></circle>')
    return parts


def _diamond(x: float, y: float) -> str:
    return f"M{x - 6:.1f} {y:.1f}L{x:.1f} {y - 6:.1f}L{x + 6:.1f} {y:.1f}L{x:.1f} {y + 6:.1f}Z"


def _fit(label: str) -> str:
    return label if len(label) <= 38 else f"{label[:36]}..."


def _ticks(low: float, high: float) -> list[float]:
    """Two to five round numbers between two."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = min(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = int(low // step) + 1
    return [round(step * n, 10) for n in range(first, int(high // step) + 1)]
