"""The page at /docs in a browser: under a path prefix that a proxy takes away, and with an API key."""

from typing import Any

from service.settings import hash_key
from tests.harness.process import ROOT, running
from tests.service.playground.conftest import MODELS, PATIENCE_MS

PREFIX = "/some/where"
KEY = "correct horse battery staple"


def test_the_routes_are_shown_to_who_gives_the_key_and_a_wrong_key_is_told(browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked: list[str] = []

    def pass_on(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(response=route.fetch(url=route.request.url.replace(f"{PREFIX}/", "/", 1)))

    page.route("**/*", pass_on)
    with running(ROOT / "models", models=MODELS[0], api_keys=hash_key("alice", KEY)) as (_, url):
        page.goto(f"{url}{PREFIX}/docs")
        page.wait_for_selector("#key-form:not([hidden])")
        assert page.inner_text("#said") == ""
        page.fill("#key-input", "a wrong key")
        page.click("#key-form button")
        page.wait_for_selector("#said:has-text('this API key is not known here')")
        page.fill("#key-input", KEY)
        page.click("#key-form button")
        page.wait_for_selector("#swagger-ui .opblock")
        assert page.is_hidden("#key-form")
        # The question goes to the service below the prefix, with the key.
        models = ".opblock:has([data-path='/models'])"
        for part in (".opblock-summary-control", ".try-out__btn", ".execute"):
            page.click(f"{models} {part}")
        page.wait_for_selector(f"{models} .live-responses-table .response-col_status:has-text('200')")
        assert [each for each in asked if not each.startswith(f"{url}{PREFIX}/")] == []
        page.close()
