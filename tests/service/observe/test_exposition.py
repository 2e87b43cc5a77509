"""Scrapes: one rendering at a time, kept for a second; the format that was asked for."""

import asyncio
import threading

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as families

from service.observe.exposition import KEPT_SECONDS, Exposition, wants_openmetrics
from tests.service.conftest import Serve

pytestmark = pytest.mark.anyio
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


class Scraped:
    """Metrics that count how often they were looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.times = 0
        self.let_go = threading.Event()
        self.let_go.set()
        self._registry = CollectorRegistry()
        self._counter = Counter("looked", "what", registry=self._registry)
        self.exposition = Exposition(self.scrape, lambda: self.now)

    def scrape(self):
        self.times += 1
        self._counter.inc()
        found = list(self._registry.collect())

        def one_by_one():
            self.let_go.wait(60)
            yield from found

        return one_by_one()


async def test_who_asks_at_the_same_time_or_within_a_second_gets_the_same_page() -> None:
    scraped = Scraped()
    pages = await asyncio.gather(*(scraped.exposition.page("") for _ in range(8)))
    assert scraped.times == 1
    assert len({id(page) for page in pages}) == 1
    assert b"looked_total 1.0\n" in pages[0][0]
    scraped.now += KEPT_SECONDS * 0.9
    assert await scraped.exposition.page("") is pages[0]
    scraped.now += KEPT_SECONDS * 0.2
    assert b"looked_total 2.0\n" in (await scraped.exposition.page(""))[0]


async def test_formats_are_rendered_one_after_another_whatever_versions_are_named() -> None:
    scraped = Scraped()
    accepts = ["", *(f"application/openmetrics-text; version=1.0.{i}" for i in range(20)), "text/plain", PROMETHEUS_3]
    pages = await asyncio.gather(*(scraped.exposition.page(accept) for accept in accepts))
    assert scraped.times == 2
    assert len({content_type for _, content_type in pages}) == 2
    assert len(scraped.exposition._pages) == 2


async def test_who_leaves_does_not_make_room_for_another_rendering() -> None:
    scraped = Scraped()
    scraped.let_go.clear()
    leaving = asyncio.create_task(scraped.exposition.page(""))
    while not scraped.times:
        await asyncio.sleep(0.001)
    leaving.cancel()
    staying = asyncio.create_task(scraped.exposition.page(""))
    await asyncio.sleep(0.02)
    assert scraped.times == 1
    scraped.let_go.set()
    assert b"looked_total 1.0\n" in (await staying)[0]
    assert scraped.times == 1


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


async def test_a_service_that_many_scrape_renders_once(serve: Serve) -> None:
    async with serve() as client:
        telemetry = client.app.service.telemetry
        client.app.service.exposition._clock = lambda: 0.0  # a busy machine may need longer than a page is kept
        scrape, times = telemetry.scrape, []
        telemetry.scrape = lambda: times.append(1) or scrape()
        answers = await asyncio.gather(*(client.get("/metrics") for _ in range(8)))
        assert [answer.status_code for answer in answers] == [200] * 8
        assert len(times) == 1
        accepts = ("text/plain", "application/openmetrics-text; version=abc", PROMETHEUS_3)
        plain, odd, other = [await client.get("/metrics", headers={"accept": accept}) for accept in accepts]
    assert plain.headers["content-type"] == odd.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert other.headers["content-type"].startswith(OPENMETRICS)
    names = {family.name for family in families(plain.text)}
    assert "semblance_redis_writable" in names & {family.name for family in openmetrics_families(other.text)}
