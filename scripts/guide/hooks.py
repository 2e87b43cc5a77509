"""What mkdocs calls while it builds the site (`hooks` in mkdocs.yml): pages from code and from elsewhere.

Nothing of this is committed: the pages are made anew with each build.
"""

import logging
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from scripts.guide import pages_of_code, pages_of_service
from scripts.guide.imported import imported_files, rewrite

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = imported_files(ROOT)
_ORIGINS = {place: path for path, place in IMPORTED.items()}
# What a page would load by itself; links that a reader may follow are not meant.
_LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\s(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and those that are elsewhere in the repository."""
    for noisy in ("service", "httpx"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    for path, place in IMPORTED.items():
        if place.endswith(".md"):
            content: str | bytes = (ROOT / path).read_text(encoding="utf-8")
        else:
            content = (ROOT / path).read_bytes()
        files.append(File.generated(config, place, content=content))
    reference = {
        "errors.md": pages_of_code.errors_page(),
        "manifest.md": pages_of_code.manifest_page(),
        "commands.md": pages_of_code.commands_page(),
        "models.md": pages_of_service.models_page(ROOT / "models"),
        **pages_of_service.pages(ROOT / "models"),
    }
    for name, text in reference.items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    files.append(File.generated(config, "measurements/index.md", content=_measurements()))
    return files


def _measurements() -> str:
    """A list of the dated measurements."""
    lines = ["# Measurements", "", "Speed, memory and faults, each with its command, machine and date.", ""]
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"), reverse=True):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the pages of the site."""
    place = page.file.src_uri
    origin = _ORIGINS.get(place, f"docs/{place}")
    known = [file.src_uri for file in files]
    return rewrite(markdown, here=place, origin=origin, pages=IMPORTED, known=known)


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
