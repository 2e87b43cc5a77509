"""The page at /docs in a browser: under a path prefix that a proxy takes away, and with an API key."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from service.settings import hash_key
from tests.harness.process import ROOT, running
from tests.service.playground.conftest import MODELS, PATIENCE_MS

PREFIX = "/some/where"
KEY = "correct horse battery staple"


@pytest.fixture(scope="module")
def behind_a_prefix(chromium: str) -> Iterator[str]:
    """A service with a key, behind a proxy that serves it below a prefix."""
    setting = {"models": ",".join(MODELS[:1]), "api_keys": hash_key("alice", KEY)}
    with running(ROOT / "models", **setting) as (_, address):

        class Proxy(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.startswith(f"{PREFIX}/"):
                    self.send_error(404)
                    return
                passed = {"x-api-key": key} if (key := self.headers.get("x-api-key")) else {}
                answer = httpx.get(address + self.path.removeprefix(PREFIX), headers=passed, timeout=60)
                self.send_response(answer.status_code)
                for name in ("content-type", "content-security-policy"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_: Any) -> None:
                pass

        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}{PREFIX}"
        finally:
            proxy.shutdown()
            proxy.server_close()


def test_the_routes_are_shown_to_who_gives_the_key_and_a_wrong_key_is_told(
    browser: Any,
    behind_a_prefix: str,
) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{behind_a_prefix}/docs")
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
    page.click(".opblock:has([data-path='/models']) .opblock-summary-control")
    page.click(".opblock:has([data-path='/models']) .try-out__btn")
    page.click(".opblock:has([data-path='/models']) .execute")
    page.wait_for_selector(
        ".opblock:has([data-path='/models']) .live-responses-table .response-col_status:has-text('200')"
    )
    page.close()
