"""What holds for the whole page: keys, dead servers, prefixes, themes, small screens, keyboards, screen readers."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.process import running
from tests.harness.service import let_in
from tests.service.playground.conftest import Open

expect = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install .[dev]").expect

pytestmark = pytest.mark.artifacts

KEY = "a key that nobody guesses"
TABS = {
    "compare": "#panel-compare[aria-busy=false]",
    "rank": "#rank-results table",
    "claims": "#claims-results table",
    "entailment": ".directions",
    "duplicates": "#duplicates-results table",
    "batch": "a[download]",
    "faq": "#faq-results table",
}


def shown(page: Any, tab: str) -> None:
    """Wait until a tab has its results."""
    if tab == "batch":
        page.click("#batch-sample")
    page.wait_for_selector(TABS[tab])


def test_a_key_is_asked_for_and_kept_in_memory_only(open_page: Open, models: Path) -> None:
    keys = ",".join(f"{name}:{digest}" for name, digest in let_in(KEY).items())
    with running(models, api_keys=keys) as (_, url):
        watched = open_page(url)
        watched.refusals_expected = True
        page = watched.open("?a=a+man&b=a+dog")
        page.wait_for_selector("#start-alert .alert")
        assert "give the API key as" in page.inner_text(".alert")
        page.click("#compare-form .main")  # without the models there is nothing to ask
        page.fill("#key-input", "a wrong one")
        page.press("#key-input", "Enter")
        page.wait_for_selector("#key-panel:visible")
        page.wait_for_selector("#start-alert .alert")
        page.fill("#key-input", KEY)
        page.press("#key-input", "Enter")
        page.wait_for_selector("#panel-compare[aria-busy=false]")
        assert page.locator(".alert").count() == 0
        assert page.inner_text("#score")
        page.click(".copy button:text-is('curl')")
        places = "document.cookie, {...localStorage}, {...sessionStorage}, location.href, document.body.outerHTML"
        kept = page.evaluate(f"[{places}]")
        assert kept[:3] == ["", {}, {}]
        assert KEY not in str(kept)
        expect(page.locator(".copy pre")).to_contain_text("X-API-Key: $SEMBLANCE_API_KEY")
        page.reload()
        page.wait_for_selector("#start-alert .alert")


def test_a_dead_server_is_said_and_asked_again(open_page: Open, models: Path) -> None:
    with running(models) as (process, url):
        watched = open_page(url)
        watched.refusals_expected = True
        page = watched.open("?a=a+man&b=a+dog")
        page.wait_for_selector("#panel-compare[aria-busy=false]")
        process.kill()
        process.wait()
        page.click("#compare-swap")
        page.wait_for_selector(".alert")
        assert f"No answer from {url}" in page.inner_text(".alert")
        page.click("#tab-rank")
        page.wait_for_selector("#panel-rank .alert")
        port = url.rpartition(":")[2]
    with running(models, port=port):
        page.click("#panel-rank .alert >> text=Try again")
        page.wait_for_selector("#rank-results table")
        assert page.locator("#panel-rank .alert").count() == 0


def test_a_path_prefix_is_kept(open_page: Open, service: str) -> None:
    """As behind a proxy that takes the prefix away."""
    watched = open_page()
    page = watched.page
    watched.anything_asked = True
    asked: list[str] = []

    def pass_on(route: Any) -> None:
        asked.append(route.request.url.removeprefix(service))
        route.fulfill(response=route.fetch(url=route.request.url.replace("/team/texts/", "/", 1)))

    page.route("**/*", pass_on)
    page.goto(f"{service}/team/texts/?a=A+dog+runs.&b=A+cat+sleeps.")
    page.wait_for_selector("#panel-compare[aria-busy=false]")
    assert page.inner_text("#score")
    page.click(".copy button:text-is('curl')")
    expect(page.locator(".copy pre")).to_contain_text(f"{service}/team/texts/similarity")
    page.click("#tab-entailment")
    page.wait_for_selector(".directions")
    assert "/team/texts/?tab=entailment&premise=" in page.url
    assert [path for path in asked if not path.startswith("/team/texts/")] == []


def test_both_themes(open_page: Open) -> None:
    def lightness(page: Any) -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return float(sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))))

    light, dark = (open_page(color_scheme=scheme).open("?tab=batch") for scheme in ("light", "dark"))
    assert lightness(light) > 600 > 150 > lightness(dark)
    dark.click("text=Light")
    assert lightness(dark) == lightness(light)
    dark.click("text=Dark")
    assert lightness(dark) < 150


@pytest.mark.parametrize("tab", TABS)
def test_axe_finds_nothing_and_a_narrow_screen_has_no_horizontal_scroll(open_page: Open, tab: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: pip install .[dev]").Axe()
    page = open_page(color_scheme="light").open(f"?tab={tab}")
    shown(page, tab)
    wide = page.viewport_size
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.click("#key-button")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.set_viewport_size(wide)
    if tab == "compare":
        page.click("summary")
        page.click("text=pwim-sick")
        page.wait_for_selector(".picked")
    light = axe.run(page).response
    assert len(light["passes"]) > 15
    page.click("#theme-button")
    dark = axe.run(page, options={"runOnly": ["color-contrast"]}).response
    assert [rule["id"] for rule in dark["passes"]] == ["color-contrast"]
    found = [*light["violations"], *dark["violations"]]
    assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found] == []


def test_the_keyboard_is_enough(open_page: Open) -> None:
    page = open_page().open("?a=A+dog+runs.&b=A+cat+sleeps.")
    page.wait_for_selector("#panel-compare[aria-busy=false]")

    def tab_to(selector: str, most: int = 60) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"nothing shows that {selector} has the focus"
                return
        raise AssertionError(f"the keyboard does not come to {selector}")

    tab_to("#tab-compare")
    tab_to("#compare-b")
    page.keyboard.press("Control+A")
    page.keyboard.type("Two dogs are running.")
    page.keyboard.press("Enter")
    page.wait_for_selector(".heat th:has-text('two')")
    page.wait_for_selector("#panel-compare[aria-busy=false]")
    tab_to("[id='model-pwim-sick']")
    page.keyboard.press("Enter")
    page.wait_for_selector(".picked")
    assert page.evaluate("document.activeElement.id") == "model-pwim-sick"
    tab_to("[data-place='0,0']")
    page.keyboard.press("ArrowDown")
    assert "dog \u00d7 two" in page.inner_text(".reading")
    page.focus("#tab-compare")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#rank-results table")
    assert page.evaluate("document.activeElement.id") == "tab-rank"
    tab_to("#rank-threshold")


def test_the_page_says_which_language_models_read(open_page: Open) -> None:
    page = open_page().open("?a=A+card.&b=A+dog.")
    page.wait_for_selector("#languages:visible")
    assert page.inner_text("#languages") == "The models here read English."
