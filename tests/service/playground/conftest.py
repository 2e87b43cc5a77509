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


class Watched:
    """A page, with everything that a person must never find in the browser's console."""

    def __init__(self, page: Any, base: str) -> None:
        self.page = page
        self.base = base
        self.problems: list[str] = []
        self.asked: list[str] = []  # paths, in order
        self.refusals_expected = False
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("request", self._requested)

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
        if f"{url.scheme}://{url.netloc}" != self.base or not PUBLIC.fullmatch(url.path):
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


@pytest.fixture
def open_page(browser: Any, service: str) -> Iterator[Open]:
    """`open_page(color_scheme="dark")` is a new page, which must have had no problem when the test ends."""
    contexts, pages = [], []

    def opened(base: str = service, **settings: Any) -> Watched:
        context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | settings)
        )
        contexts.append(context)
        pages.append(Watched(context.new_page(), base))
        return pages[-1]

    yield opened
    for page in pages:
        page.page.unroute_all(behavior="ignoreErrors")  # requests may be under way when the page closes
    for context in contexts:
        context.close()
    assert [problem for page in pages for problem in page.problems] == []
