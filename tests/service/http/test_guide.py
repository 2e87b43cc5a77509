"""The documentation at /guide: a folder's pages, with a policy of their own, and none where it was not built."""

import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.service import Client, Serve, let_in

pytestmark = pytest.mark.anyio
SCRIPT = "document.title = 'a'"
PAGE = f"<html><body>{'x' * 200_000}<script>{SCRIPT}</script></body></html>"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is served."""
    folder = tmp_path / "site"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "assets" / "a.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr("service.http.pages.GUIDE_FOLDER", folder)
    return folder


@pytest.fixture
async def client(serve: Serve, site: Path) -> AsyncIterator[Client]:
    """A service that shows the site."""
    async with serve() as client:
        yield client


async def test_a_page_comes_whole_with_its_policy(client: Client) -> None:
    page = await client.get("/guide/index.html")
    again = await client.get("/guide/", headers={"if-none-match": page.headers["etag"]})
    asset = await client.get("/guide/assets/a.js")
    assert (page.status_code, page.text, asset.text) == (200, PAGE, "1")
    # A script at the end of a long page has its hash, too: the page is one message.
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in page.headers["content-security-policy"]
    assert "content-security-policy" not in asset.headers
    assert again.status_code == 304


async def test_the_address_without_a_slash_leads_there_under_any_prefix(client: Client) -> None:
    moved = await client.get("/guide")
    assert (moved.status_code, moved.headers["location"]) == (307, "guide/")


@pytest.mark.parametrize("path", ["nowhere.html", "..%2fsecret.txt", "link.txt", "assets"])
async def test_what_is_not_in_the_folder_is_not_found(client: Client, path: str) -> None:
    answer = await client.get(f"/guide/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


async def test_where_it_was_not_built_there_is_no_guide(serve: Serve, site: Path) -> None:
    (site / "index.html").unlink()
    async with serve() as client:
        assert [(await client.get(path)).status_code for path in ("/guide", "/guide/")] == [404, 404]


async def test_a_browser_needs_no_key_for_the_guide_and_one_for_all_else(serve: Serve, site: Path) -> None:
    async with serve(api_keys=let_in("correct horse")) as client:
        assert (await client.get("/guide/")).status_code == 200
        assert (await client.get("/guides")).status_code == 401
        assert (await client.get("/openapi.json")).status_code == 401
    (site / "index.html").unlink()
    async with serve(api_keys=let_in("correct horse")) as client:
        assert (await client.get("/guide/")).status_code == 401
