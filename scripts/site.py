"""What mkdocs calls while it builds the site (`hooks` in mkdocs.yml): files from outside docs/, and the links to them.

The cards of models, the papers' results and the measurements are kept where they are made; the page of the command
lines is Typer's. References of Python are mkdocstrings', tables `scripts.figures` fills.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
# What a page would load by itself; links that a reader may follow are not meant.
_LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\s(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")


def imported_files(root: Path) -> dict[str, str]:
    """Path in the repository -> path in the site, of pages and images that are kept where they are made."""
    found = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "LICENSE": "LICENSE.txt"}
    found |= {"papers/RESULTS.md": "results/index.md", "papers/README.md": "analyses/index.md"}
    for path in sorted(root.glob("papers/*/README.md")):
        found[_of(path, root)] = f"analyses/{path.parent.name}.md"
    for path in sorted(root.glob("papers/*/*.svg")):
        found[_of(path, root)] = f"analyses/{path.parent.name}-{path.name}"
    for path in sorted(root.glob("benchmarks/results/*")):
        if path.suffix in (".md", ".png"):
            found[_of(path, root)] = f"measurements/{path.name}"
    for path in sorted(root.glob("models/*/README.md")):
        found[_of(path, root)] = f"reference/models/{path.parent.name}.md"
    return found


def _of(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


IMPORTED = imported_files(ROOT)
_ORIGINS = {place: path for path, place in IMPORTED.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are elsewhere in the repository, the list of measurements, and the command lines."""
    for path, place in IMPORTED.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_bytes()))
    files.append(File.generated(config, "measurements/index.md", content=_measurements()))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    return files


def _measurements() -> str:
    """A list of the dated measurements."""
    lines = ["# Measurements", "", "Speed, memory and faults, each with its command, machine and date.", ""]
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"), reverse=True):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """What every command says about itself, as Typer writes it in Markdown."""
    # Imported here: the command line of training brings torch along.
    from papers.__main__ import app as papers
    from semblance.cli.app import app as semblance
    from training.__main__ import app as training
    from workbench.__main__ import app as workbench

    programs = {
        "semblance": semblance,
        "python -m training": training,
        "python -m papers": papers,
        "python -m workbench": workbench,
    }
    parts = ["# Command lines\n\nExamples: [the client](../client.md), [reproducing](../reproducing.md).\n"]
    for program, app in programs.items():
        command = typer.main.get_command(app)
        parts.append(get_docs_for_click(obj=command, ctx=typer.Context(command), name=program, indent=1))
    return "\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the pages of the site."""
    place = page.file.src_uri
    origin = _ORIGINS.get(place, f"docs/{place}")
    known = [file.src_uri for file in files]
    return rewrite(markdown, here=place, origin=origin, pages=IMPORTED, known=known)


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


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads anything from another host: the site works without internet.

    Raises:
        PluginError: it does.
    """
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Remove what only a site at the root of a host can use: its links begin with /."""
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
        (Path(config.site_dir) / name).unlink(missing_ok=True)
