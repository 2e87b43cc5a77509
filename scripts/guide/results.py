"""`analyses/RESULTS.md` as pages: one for each section, one for each paper, with a plot above each table of a paper."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.guide.figures import beside_the_paper

_TABLES = "The papers' tables, and ours beside them"
_REPRODUCED = re.compile(r"^`python -m training reproduce ([\w-]+)`", re.MULTILINE)
_PLOT = re.compile(r"^<!-- plot: ([\w-]+) -->$", re.MULTILINE)
_PAPERS = {  # how a heading begins -> the page that it is on, and that page's title
    "Wieting et al. (2016)": ("wieting-2016", "Wieting et al. (2016), ours beside the paper's"),
    "Wieting & Gimpel (2017)": ("wieting-gimpel-2017", "Wieting & Gimpel (2017), ours beside the paper's"),
    "Mueller & Thyagarajan (2016)": (
        "mueller-thyagarajan-2016",
        "Mueller & Thyagarajan (2016), ours beside the paper's",
    ),
    "He & Lin (2016)": ("he-lin-2016", "He & Lin (2016), ours beside the paper's"),
    "Li et al. (2019)": ("li-2019", "Li et al. (2019), ours beside the paper's"),
    "": ("ours", "Tables that are in no paper"),
}


def result_pages(report: str, tables: Path) -> dict[str, str]:
    """The pages by name: `index.md` with the report's head and a list of the others.

    Args:
        report: the text of RESULTS.md.
        tables: `analyses/tables`.
    """
    head, *sections = re.split(r"^## ", report, flags=re.MULTILINE)
    pages: dict[str, str] = {}
    links: list[str] = []
    for section in sections:
        title, _, text = section.partition("\n")
        found = _by_paper(text, tables) if title == _TABLES else [(_slug(title), title, text)]
        for name, heading, content in found:
            pages[f"{name}.md"] = f"# {heading}\n\n{content.strip()}\n"
            links.append(f"- [{heading}]({name}.md)")
    return {"index.md": f"{head.strip()}\n\n" + "\n".join(links) + "\n", **pages}


def _by_paper(text: str, tables: Path) -> Iterator[tuple[str, str, str]]:
    before, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
    grouped: dict[str, list[str]] = {start: [] for start in _PAPERS}
    for part in parts:
        start = next(start for start in _PAPERS if part.startswith(start))
        shown = part
        if (found := _REPRODUCED.search(part)) and (svg := plot(found[1], tables)):
            heading, _, rest = part.partition("\n")
            shown = f"{heading}\n\n{svg}\n{rest}"
        grouped[start].append(f"## {shown}")
    for start, (name, title) in _PAPERS.items():
        yield name, title, before + "\n".join(grouped[start])


def plot(name: str, tables: Path) -> str | None:
    """The plot of a reproduced table, if there is something to show."""
    path = tables / f"{name}.json"
    if not path.is_file():
        return None
    svg = beside_the_paper(json.loads(path.read_text(encoding="utf-8")))
    # A block of HTML in Markdown ends at an empty line, and has none.
    return None if svg is None else f'<figure markdown="0">\n{svg}\n</figure>\n'


def with_plots(markdown: str, tables: Path) -> str:
    """A page with its lines `<!-- plot: TABLE -->` replaced by plots.

    Raises:
        ValueError: there is no such table, or nothing in it to show.
    """

    def drawn(found: re.Match[str]) -> str:
        if (svg := plot(found[1], tables)) is None:
            raise ValueError(f"no plot of {found[1]}: the table is missing, or the paper has no figures that we have")
        return svg

    return _PLOT.sub(drawn, markdown)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
