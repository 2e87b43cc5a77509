"""Scrapes: one rendering at a time, kept for a second; the format that was asked for."""

import asyncio

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as families

from service.observe.metrics import wants_openmetrics
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/plain; version=1.0.0", False),
        ("application/openmetrics-text", True),
        (OPENMETRICS, True),
        (PROMETHEUS_3, True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=abc", False),
        ("application/openmetrics-text; version=1.0.0; escaping=nonsense", True),
    ],
)
def test_what_a_header_asks_for(accept: str, expected: bool) -> None:
    assert wants_openmetrics(accept) is expected


async def test_a_service_that_many_scrape_renders_once(client: Client) -> None:
    telemetry = client.app.service.telemetry
    client.app.service.exposition._clock = lambda: 0.0  # a busy machine may need longer than a page is kept
    refresh, times = telemetry.refresh, []
    client.app.service.exposition._refresh = lambda: times.append(1) or refresh()
    answers = await asyncio.gather(*(client.get("/metrics") for _ in range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len(times) == 1
    accepts = ("text/plain", "application/openmetrics-text; version=abc", PROMETHEUS_3)
    plain, odd, other = [await client.get("/metrics", headers={"accept": accept}) for accept in accepts]
    assert plain.headers["content-type"] == odd.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert other.headers["content-type"].startswith(OPENMETRICS)
    names = {family.name for family in families(plain.text)}
    assert "semblance_redis_writable" in names & {family.name for family in openmetrics_families(other.text)}
