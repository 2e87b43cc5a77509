"""Files of the repository that the site has beside `docs/`, and the links to them."""

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def imported_files(root: Path) -> dict[str, str]:
    """Path in the repository -> path in the site, of pages and images that are kept where they are made."""
    found = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "LICENSE": "LICENSE.txt"}
    found |= {"papers/RESULTS.md": "results/index.md", "papers/README.md": "analyses/index.md"}
    for path in sorted(root.glob("papers/*/README.md")):
        found[_of(path, root)] = f"analyses/{path.parent.name}.md"
    for path in sorted(root.glob("papers/*/*.png")):
        found[_of(path, root)] = f"analyses/{path.parent.name}-{path.name}"
    for path in sorted(root.glob("benchmarks/results/*")):
        if path.suffix in (".md", ".png"):
            found[_of(path, root)] = f"measurements/{path.name}"
    for path in sorted(root.glob("models/*/README.md")):
        found[_of(path, root)] = f"reference/models/{path.parent.name}.md"
    return found


def _of(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def rewrite(markdown: str, *, here: str, origin: str, pages: Mapping[str, str], known: Iterable[str]) -> str:
    """The links of a page, as the site needs them.

    Args:
        markdown: the page.
        here: its path in the site.
        origin: its path in the repository; links are relative to that.
        pages: see `imported_files`.
        known: paths of all pages and files of the site. A link to anything else becomes its text, since the site has
            no copy of the code.
    """
    there = set(known)

    def link(found: re.Match[str]) -> str:
        target, _, anchor = found["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        place = pages.get(path)
        if place is None and path == "benchmarks/results":
            place = "measurements/index.md"
        if place is None and path.startswith("docs/"):
            place = path.removeprefix("docs/")
        if place not in there and posixpath.normpath(posixpath.join(posixpath.dirname(here), target)) in there:
            return found[0]  # a generated page that was written for the site
        if place not in there:
            # Within docs/ a missing page is a fault, which mkdocs reports; elsewhere it is code.
            return found[0] if path.startswith("docs/") else found["text"]
        relative = posixpath.relpath(place, posixpath.dirname(here) or ".")
        return f"{found['image']}[{found['text']}]({relative}{'#' + anchor if anchor else ''})"

    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in _FENCE.split(markdown))
