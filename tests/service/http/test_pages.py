"""What a browser is told: of the pages, how little they may do; of other sites' pages, whether they may ask."""

import base64
import hashlib
import re
from typing import Any

import pytest

from service.http.loop_time import LoopTime
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve, let_in

pytestmark = pytest.mark.anyio
ORIGIN = "https://app.example"


async def test_a_page_runs_its_own_scripts_and_no_others(lasting: Client) -> None:
    response = await lasting.get("/docs")
    scripts = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    assert len(scripts) == 1
    policy = response.headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none';" in policy
    assert policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["referrer-policy"] == "no-referrer"


async def test_no_answer_is_taken_for_something_else(serve: Serve) -> None:
    async with serve(max_body_bytes=50) as client:
        answers = [
            await client.get("/docs"),
            await client.get("/metrics"),
            await client.get("/nowhere"),
            await client.get("/static-offline-docs/swagger-ui.css"),
            await client.post("/embed", json=GOOD["/embed"]),
            await client.post("/embed", content=b" " * 51),
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 200, 413]
    assert {answer.headers["x-content-type-options"] for answer in answers} == {"nosniff"}
    assert ["content-security-policy" in answer.headers for answer in answers] == [True] + [False] * 5


async def test_other_sites_may_not_ask_unless_told(lasting: Client) -> None:
    asking = {"origin": ORIGIN, "access-control-request-method": "POST"}
    answer = await lasting.post("/similarity", json=GOOD["/similarity"], headers={"origin": ORIGIN})
    preflight = await lasting.options("/similarity", headers=asking)
    assert (answer.status_code, preflight.status_code) == (200, 405)
    assert not [name for name in (*answer.headers, *preflight.headers) if name.startswith("access-control")]


async def test_a_preflight_takes_its_turn_in_the_loops_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, share = [], LoopTime.share

    def noted(self: LoopTime, caller: str, work: Any) -> Any:
        shared.append(caller)
        return share(self, caller, work)

    monkeypatch.setattr(LoopTime, "share", noted)
    async with serve(cors_origins=[ORIGIN]) as client:
        answer = await client.options("/rank", headers={"origin": ORIGIN, "access-control-request-method": "POST"})
        assert (answer.status_code, len(shared)) == (200, 1)


async def test_sites_that_are_named_may_ask(serve: Serve) -> None:
    key = {"authorization": "Bearer correct horse"}
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    async with serve(cors_origins=[ORIGIN], api_keys=let_in("correct horse")) as client:
        for origin, allowed in ((ORIGIN, ORIGIN), ("https://other.example", None)):
            preflight = await client.options("/similarity", headers=asking | {"origin": origin})
            assert preflight.status_code == (200 if allowed else 400)
            for headers, status in ((key, 200), ({}, 401)):
                answer = await client.post(
                    "/similarity", json=GOOD["/similarity"], headers=headers | {"origin": origin}
                )
                assert answer.status_code == status
                assert answer.headers.get("access-control-allow-origin") == allowed
                assert "access-control-allow-credentials" not in answer.headers
            assert preflight.headers.get("access-control-allow-origin") == allowed
        assert "retry-after-ms" in answer.headers["access-control-expose-headers"]
