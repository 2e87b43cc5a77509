"""`analyses/RESULTS.md` as pages: one for each section, one for each paper."""

import re
from collections.abc import Iterator

_TABLES = "The papers' tables, and ours beside them"
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


def result_pages(report: str) -> dict[str, str]:
    """The pages by name, of the text of RESULTS.md: `index.md` with its head and a list of the others."""
    head, *sections = re.split(r"^## ", report, flags=re.MULTILINE)
    pages: dict[str, str] = {}
    links: list[str] = []
    for section in sections:
        title, _, text = section.partition("\n")
        found = _by_paper(text) if title == _TABLES else [(_slug(title), title, text)]
        for name, heading, content in found:
            pages[f"{name}.md"] = f"# {heading}\n\n{content.strip()}\n"
            links.append(f"- [{heading}]({name}.md)")
    return {"index.md": f"{head.strip()}\n\n" + "\n".join(links) + "\n", **pages}


def _by_paper(text: str) -> Iterator[tuple[str, str, str]]:
    before, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
    grouped: dict[str, list[str]] = {start: [] for start in _PAPERS}
    for part in parts:
        start = next(start for start in _PAPERS if part.startswith(start))
        grouped[start].append(f"## {part}")
    for start, (name, title) in _PAPERS.items():
        yield name, title, before + "\n".join(grouped[start])


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
