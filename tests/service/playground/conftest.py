"""The playground in a real browser, before a real service with a few of the published models."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.process import running

ROOT = Path(__file__).parents[3]
# Exact shares, labels and ratings, matches one to one, attention.
MODELS = ("avg-paraphrase", "avg-sick", "pwim-sick", "mgim-sick")
PUBLIC = re.compile(r"/(?:playground/[\w./-]+|models|similarity|rank|entailment|claims|dedupe|explain)?")
PATIENCE_MS = 120_000  # of a busy machine
VIEWPORT = {"width": 1280, "height": 900}


class Watched:
    """A page, with everything that a person must never find in the browser's console."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.begin("")
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("request", self._requested)

    def begin(self, base: str) -> None:
        """Forget what was before, of another test."""
        self.base = base
        self.problems: list[str] = []
        self.asked: list[str] = []  # paths, in order
        self.refusals_expected = False
        self.anything_asked = False  # also of other paths

    def _said(self, message: Any) -> None:
        # The browser itself notes every answer of 4xx and 5xx, and every one that did not come.
        if message.text.startswith("Failed to load resource:") and self.refusals_expected:
            return
        self.problems.append(f"{message.type}: {message.text}")

    def _requested(self, request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme == "blob":
            return
        self.asked.append(url.path)
        expected = f"{url.scheme}://{url.netloc}" == self.base and PUBLIC.fullmatch(url.path)
        if not expected and not self.anything_asked:
            self.problems.append(f"asked {request.url}")

    def open(self, search: str = "") -> Any:
        """Go to the page with this question in the address."""
        self.page.goto(f"{self.base}/{search}")
        return self.page


Open = Callable[..., Watched]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Debian's Chromium."""
    pytest.importorskip("playwright.sync_api", reason="no playwright: pip install .[dev]")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium on the PATH: apt-get install chromium")
    return found


@pytest.fixture(scope="module")  # no longer: its event loop would stay in the way of asynchronous tests
def browser(chromium: str) -> Iterator[Any]:
    """A browser, by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service(chromium: str) -> Iterator[str]:
    """The address of a service; without a browser none is started."""
    with running(ROOT / "models", models=",".join(MODELS)) as (_, url):
        yield url


@pytest.fixture(scope="module")
def kept_pages(browser: Any) -> dict[str, list[Watched]]:
    """Pages that no test uses now, by their settings: a new one takes longer than most tests."""
    return {}


@pytest.fixture
def open_page(browser: Any, service: str, kept_pages: dict[str, list[Watched]]) -> Iterator[Open]:
    """`open_page(color_scheme="dark")` is an empty page, which must have had no problem when the test ends."""
    pages: list[tuple[str, Watched]] = []

    def opened(base: str = service, **settings: Any) -> Watched:
        free = kept_pages.setdefault(repr(settings), [])
        if not free:
            context = browser.new_context(**({"viewport": VIEWPORT, "reduced_motion": "reduce"} | settings))
            free.append(Watched(context.new_page()))
        pages.append((repr(settings), free.pop()))
        pages[-1][1].begin(base)
        return pages[-1][1]

    yield opened
    problems: list[str] = []
    for settings, each in pages:
        each.page.unroute_all(behavior="ignoreErrors")  # requests may be under way
        problems += each.problems
        each.page.goto("about:blank")
        each.page.set_viewport_size(VIEWPORT)
        kept_pages[settings].append(each)
    assert problems == []
