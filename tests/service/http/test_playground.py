"""The playground as the service sends it: to whom, with which policy, and whether at all."""

import re
from pathlib import Path

import pytest

from tests.harness.service import Client, Serve, let_in

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "service" / "playground"
FILES = sorted(path.relative_to(FOLDER / "files").as_posix() for path in (FOLDER / "files").rglob("*.*"))


async def test_the_page_runs_and_styles_from_its_files_only(client: Client) -> None:
    page = await client.get("/", params={"a": "a man", "b": "a dog"})
    head = await client.head("/")
    wrong = await client.put("/")
    assert page.status_code == head.status_code == 200
    assert head.content == b""
    assert wrong.status_code == 405
    assert {method.strip() for method in wrong.headers["allow"].split(",")} == {"GET", "HEAD"}
    policy = page.headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-cache"
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", page.text)
    assert re.findall(r'(?:href|src)="(/|\w+:)', page.text) == []  # all relative: a path prefix is kept


async def test_every_file_that_is_named_is_there(client: Client) -> None:
    page = (await client.get("/")).text
    named = {name.removeprefix("playground/") for name in re.findall(r'"(playground/[^"]+)"', page)}
    for name in FILES:
        answer = await client.get(f"/playground/{name}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-cache"
        kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        assert answer.headers["content-type"].partition(";")[0] == kinds[name.rpartition(".")[2]]
        again = await client.get(f"/playground/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
        folder = Path(name).parent
        for imported in re.findall(r'from "(\.[^"]+)"', answer.text):
            path = (FOLDER / "files" / folder / imported).resolve()
            named.add(path.relative_to(FOLDER / "files").as_posix())
    assert named == set(FILES)
    for outside in ("/playground/../page.html", "/playground/%2e%2e/page.html", "/playground/", "/playground/x.js"):
        assert (await client.get(outside)).status_code == 404


@pytest.mark.parametrize("name", FILES)
def test_no_file_needs_another_host_or_runs_text(name: str) -> None:
    content = (FOLDER / "files" / name).read_text()
    content = content.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://|\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", content) == []
    assert re.findall(r"localStorage|sessionStorage|document\.cookie", content) == []


async def test_the_page_needs_no_key_and_its_questions_do(serve: Serve) -> None:
    async with serve(api_keys=let_in("correct horse"), rate_limit="2/minute") as client:
        for _ in range(3):
            assert (await client.get("/")).status_code == 200
            assert (await client.get("/playground/app.js")).status_code == 200
        assert (await client.post("/tei", json={"inputs": "a man"})).status_code == 401
        assert (await client.get("/models")).status_code == 401
        assert (await client.get("/openapi.json")).status_code == 429  # what was refused counts, the page did not


async def test_it_can_be_switched_off(serve: Serve) -> None:
    async with serve(playground=False, api_keys=let_in("correct horse")) as client:
        assert (await client.get("/")).status_code == 401
        key = {"x-api-key": "correct horse"}
        assert (await client.get("/", headers=key)).status_code == 404
        assert (await client.get("/playground/app.js", headers=key)).status_code == 404
        assert (await client.post("/tei", json={"inputs": "a man"}, headers=key)).status_code == 200
