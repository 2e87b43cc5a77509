"""Where a Redis is named, and nothing else is set, the vectors of README's own questions go there."""

import re
from pathlib import Path

import httpx

from tests.harness.process import ROOT, running, until
from tests.harness.service import RedisServer

ASKED = re.compile(r"curl 127\.0\.0\.1:8000(/\S+) -H 'content-type: application/json' -d '(.+?)'", re.DOTALL)


def test_the_questions_of_the_readme_leave_vectors_in_redis(redis_server: RedisServer) -> None:
    questions = ASKED.findall(Path(ROOT, "README.md").read_text("utf-8"))
    assert {path for path, _ in questions} == {"/rank", "/claims"}
    with running(ROOT / "models", redis_url=redis_server.url) as (_, url), redis_server.client() as kept:
        for path, body in questions:
            before = kept.dbsize()
            asked = httpx.post(f"{url}{path}", content=body, headers={"content-type": "application/json"}, timeout=None)
            assert asked.status_code == 200, asked.text
            # Vectors are written after the answer.
            until(lambda before=before: kept.dbsize() > before, f"there are those of {path}")  # type: ignore[misc]
