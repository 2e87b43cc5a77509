"""A traced network as an SVG: boxes in rows by how many steps lead to them, arrows between."""

import textwrap
from dataclasses import dataclass, field
from itertools import pairwise
from xml.sax.saxutils import escape

from papers.pictures.trace import Box, Trace

WIDTH = 880
MARGIN, GAP, LANE = 16, 18, 16  # around all, between boxes, and the place that an arrow past a row takes
BETWEEN = 40  # rows
WIDEST = 340  # of one box
TITLE, LINE = 18, 15  # heights of lines
LETTER = 6.5  # of the words' size, as wide as the widest usual font
STYLE = """\
text { font-family: system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; fill: #1c2430 }
.title { font-size: 14px; font-weight: 600 }
.words { font-size: 12px }
.small { font-size: 11px; fill: #4a5565 }
.card { fill: #fcfcfd; stroke: #c9d0da }
.input { fill: #e8ecf1; stroke: #7b8798 }
.learnt { fill: #e3e9fb; stroke: #3949ab }
.fixed { fill: #ffffff; stroke: #7b8798 }
.arrow { fill: none; stroke: #4a5565; stroke-width: 1.5 }"""


@dataclass
class _Place:
    """Of a box, or of an arrow on its way past a row (box None)."""

    box: Box | None
    row: int
    lines: list[str] = field(default_factory=list)
    x: float = 0.0  # of the middle
    top: float = 0.0
    width: float = LANE
    height: float = 0.0
    leads_to: list["_Place"] = field(default_factory=list)
    comes_from: list["_Place"] = field(default_factory=list)


def svg(trace: Trace, title: str, description: str) -> str:
    """The picture.

    Args:
        trace: of a run.
        title: of the picture; read out in its place.
        description: one line below it.
    """
    rows = _rows(trace)
    y = float(MARGIN)
    for row in rows:
        lanes = sum(place.box is None for place in row)
        room = WIDTH - 2 * MARGIN - lanes * LANE - GAP * (len(row) - 1)
        for place in row:
            _fit(place, min(WIDEST, room / max(len(row) - lanes, 1)))
        height = max(place.height for place in row)
        _spread(row)
        for place in row:
            place.top = y + (height - place.height) / 2 if place.box else y
            place.height = place.height if place.box else height
        y += height + BETWEEN
    height = y - BETWEEN + 34 + MARGIN
    arrows = [_arrow(place, target) for row in rows for place in row for target in place.leads_to]
    boxes = [_drawn(place) for row in rows for place in row if place.box]
    legend = "Blue boxes have weights, white ones compute without any."
    return (
        "\n".join(
            [
                *opened(title, height),
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#4a5565"/></marker></defs>',
                *arrows,
                *boxes,
                f'<text class="small" x="{MARGIN}" y="{height - 28:.0f}">{escape(description)}</text>',
                f'<text class="small" x="{MARGIN}" y="{height - 12:.0f}">{legend}</text>',
                "</svg>",
            ]
        )
        + "\n"
    )


def opened(title: str, height: float) -> list[str]:
    """The beginning of a picture of that height: its title, read out in its place, styles and background."""
    said = escape(title, {'"': "&quot;"})
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{said}">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>',
    ]


def _rows(trace: Trace) -> list[list[_Place]]:
    """Every box below those that it reads and right above the first that reads it, ordered by where its sources stand.

    Arrows of one box past a row have one place there.
    """
    depth: list[int] = []
    for box in trace.boxes:
        depth.append(1 + max((depth[source] for source in box.sources), default=-1))
    for number in reversed(range(len(depth))):
        readers = [depth[other] for other, box in enumerate(trace.boxes) if number in box.sources]
        if trace.boxes[number].sources and readers:  # inputs stay in the first row
            depth[number] = min(readers) - 1
    rows: list[list[_Place]] = [[] for _ in range(max(depth) + 1)]
    places = [_Place(box, row) for box, row in zip(trace.boxes, depth, strict=True)]
    for place in places:
        rows[place.row].append(place)
    lanes: dict[tuple[int, int], _Place] = {}
    for place, box in zip(places, trace.boxes, strict=True):
        for source in sorted(box.sources):
            above = places[source]
            for row in range(above.row + 1, place.row):
                if (source, row) not in lanes:
                    lanes[source, row] = _Place(None, row)
                    rows[row].append(lanes[source, row])
                    _join(above, lanes[source, row])
                above = lanes[source, row]
            _join(above, place)
    for above_row, below_row in pairwise(rows):
        order = {id(place): number for number, place in enumerate(above_row)}
        below_row.sort(key=lambda place: sum(order[id(p)] for p in place.comes_from) / len(place.comes_from))
    return rows


def _join(above: _Place, below: _Place) -> None:
    above.leads_to.append(below)
    below.comes_from.append(above)


def _fit(place: _Place, width: float) -> None:
    """Width, lines and height of a box."""
    if place.box is None:
        return
    place.width = width
    letters = int((width - 20) / LETTER)
    words = place.box.step.words if place.box.step else ""
    place.lines = textwrap.wrap(words, letters)
    place.height = 12 + TITLE + LINE * (len(place.lines) + len(_footer(place.box, letters)))


def _footer(box: Box, letters: int) -> list[str]:
    """Shape and weights."""
    shape = " x ".join(map(str, box.shape)) or "one number"
    if box.step is None:
        return [f"{shape} words"]
    if not box.step.weights:
        return [f"gives {shape}"]
    number = f"{box.step.weights:,} weights"
    if box.step.each:
        number = f"{box.step.each} weights a vector"
    return textwrap.wrap(f"gives {shape}; {'the same weights' if box.again else number}", letters)


def _spread(row: list[_Place]) -> None:
    """Places from left to right, the row in the middle."""
    x = (WIDTH - sum(place.width for place in row) - GAP * (len(row) - 1)) / 2
    for place in row:
        place.x = x + place.width / 2
        x += place.width + GAP


def _port(place: _Place, others: list[_Place], other: _Place) -> float:
    """Where an arrow meets a box: in the order of what is at its other end."""
    if place.box is None:
        return place.x
    order = sorted(others, key=lambda each: each.x).index(other)
    return place.x + place.width * 0.5 * ((order + 1) / (len(others) + 1) - 0.5)


def _arrow(above: _Place, below: _Place) -> str:
    x, y = _port(above, above.leads_to, below), above.top + above.height
    to, end = _port(below, below.comes_from, above), below.top
    middle = (y + end) / 2
    head = ' marker-end="url(#head)"' if below.box else ""
    start = above.top if above.box is None else y
    straight = f"M{x:.1f} {start:.1f} L{x:.1f} {y:.1f} " if above.box is None else f"M{x:.1f} {y:.1f} "
    return f'<path class="arrow" d="{straight}C{x:.1f} {middle:.1f} {to:.1f} {middle:.1f} {to:.1f} {end:.1f}"{head}/>'


def _drawn(place: _Place) -> str:
    box = place.box
    assert box is not None
    kind = "input" if box.step is None else "learnt" if box.step.weights else "fixed"
    left = place.x - place.width / 2
    lines = [
        f'<rect class="{kind}" x="{left:.1f}" y="{place.top:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="5"/>'
    ]
    y = place.top + 19
    texts = [("title", box.title), *(("words", line) for line in place.lines)]
    texts += [("small", line) for line in _footer(box, int((place.width - 20) / LETTER))]
    for number, (style, text) in enumerate(texts):
        y += LINE if number else 0
        y += 2 if number == 1 else 0
        lines.append(f'<text class="{style}" x="{place.x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>')
    return "\n".join(lines)
