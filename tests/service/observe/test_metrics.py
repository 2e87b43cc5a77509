"""What is measured: complete from the first scrape, documented, and true of each request."""

import re
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.parser import text_string_to_metric_families as families

from service.observe.metrics import PHASES
from service.observe.telemetry import observe_all
from tests.harness.dialects import REQUESTS, slow
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "metrics.md").read_text()
_SUFFIXES = ("_bucket", "_sum", "_count", "_total", "_info", "")


def series(text: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Names and labels of all series of ours."""
    return {
        (sample.name, frozenset(sample.labels.items()))
        for family in families(text)
        for sample in family.samples
        if sample.name.startswith("semblance_")
    }


def timings(header: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"(\w+);dur=([0-9.]+)", header)}


async def test_the_reference_says_what_each_metric_is(client: Client) -> None:
    found = list(client.app.service.telemetry.registry.collect())
    lines = (DOCS / "reference" / "metrics.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `semblance_")]
    ours = [family for family in found if family.name.startswith("semblance_")]
    assert all(family.name.startswith(("process_", "python_")) for family in found if family not in ours)
    assert [row[0].strip("`").removesuffix("_total").removesuffix("_info") for row in rows] == [f.name for f in ours]
    assert ["`semblance_requests_total`", "counter", "`route`, `status`"] in [row[:3] for row in rows]
    assert ["`semblance_model_info`", "info"] in [row[:2] for row in rows]
    assert [row[0] for row in rows if len(row[3].split()) < 2] == []


async def test_the_page_asks_about_metrics_that_there_are(client: Client) -> None:
    asked = set(re.findall(r"\bsemblance_\w+", PAGE))
    there = {family.name + end for family in client.app.service.telemetry.registry.collect() for end in _SUFFIXES}
    assert asked
    assert asked <= there


async def test_only_an_answer_of_a_model_adds_series(serve: Serve) -> None:
    """All others are there from the first scrape on, so that rates include their first increase."""
    async with serve(rate_limit="1000/hour", max_body_bytes=2000) as client:
        before = series(await client.scrape())
        for path, body in [*GOOD.items(), *((each.path, each.body) for each in REQUESTS.values())]:
            for model in ("avg-paraphrase", "nope"):
                await client.post(path, json={**body, "model": model})
            await client.post(path, content=b"{")
            await client.post(path, content=b" " * 3000)
            await client.put(path)
        for path in ("/models", "/tei/info", "/v1/models/avg-sick", "/docs", "/nowhere"):
            await client.get(path)
        styles = await client.get("/static-offline-docs/swagger-ui.css")
        again = await client.get(styles.request.url.path, headers={"if-none-match": styles.headers["etag"]})
        assert again.status_code == 304
        assert await client.metric("semblance_requests_total", route="other", status="other") == 1
        new = {(name, frozenset(dict(labels))) for name, labels in series(await client.scrape()) - before}
    assert {labels for name, labels in new} <= {
        frozenset({"route", "model", "le"}),
        frozenset({"route", "model"}),
        frozenset({"phase", "model"}),
        frozenset({"route", "status"}),
    }
    assert "semblance_phase_seconds_sum" in {name for name, _ in new}


# How many series, and their sum, without those that only time and the machine decide. A route has five of answers.
COUNTED: dict[str, tuple[int, float]] = {
    "cache_entries": (1, 6), "cache_hits_total": (3, 2), "cache_misses_total": (3, 11), "dropped_total": (1, 0),
    "batch_rows_count": (4, 4), "batch_rows_sum": (4, 8), "inference_failures_total": (2, 0),
    "inference_seconds_count": (4, 4), "log_lines_dropped_total": (1, 0), "model_info": (3, 3),
    "model_openings_total": (2, 1), "model_reload_failures_total": (3, 0), "models_open": (1, 2),
    "models_refused": (1, 0), "phase_seconds_count": (8, 16), "queue_limit_seconds": (1, 2), "queue_seconds": (1, 0),
    "rate_limited_total": (1, 0), "ready": (1, 1), "redis_failures_total": (4, 0), "redis_up": (1, 0),
    "redis_wanted": (1, 0), "redis_writable": (1, 0), "request_seconds_count": (3, 6), "requests_admitted": (1, 0),
    "requests_in_flight": (1, 1), "requests_in_flight_limit": (1, 1024), "requests_total": (207, 6),
    "score_count": (2, 7), "score_sum": (2, 5.064839), "sentences_total": (2, 13),
    "sentences_truncated_total": (2, 1), "worker_processes": (1, 1), "worker_restarts_total": (4, 0),
    "words_total": (2, 234), "words_unknown_total": (2, 211),
}  # fmt: skip


async def test_six_requests_are_counted(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair twice, asked again from the cache; one of a long text and of unknown words; a ranking, which opens its
    model; a model that there is not, and a method."""
    monkeypatch.setattr("service.http.pages.GUIDE_FOLDER", tmp_path)  # /guide is a route only where it was built
    alike, long = {"a": "a man", "b": "a man zzqx"}, {"a": "Wo ist meine Karte heute, bitte?", "b": "word " * 600}
    async with serve(preload=(), max_in_flight=1024, max_queue_seconds=2.0) as client:
        for body in ({"pairs": [alike, alike]}, {"pairs": [alike, alike]}, {"pairs": [alike], "model": "nope"}):
            await client.post("/similarity", json=body)
        await client.post("/rank", json={"query": "a man", "candidates": ["a man", "the dog"], "model": "avg-sick"})
        await client.post("/similarity", json={"pairs": [long]})
        await client.put("/similarity")
        samples = [sample for family in families(await client.scrape()) for sample in family.samples]
    values: dict[str, list[float]] = {}
    for sample in samples:
        values.setdefault(sample.name.removeprefix("semblance_"), []).append(sample.value)
    assert {name: (len(values[name]), sum(values[name])) for name in COUNTED} == {
        name: (number, pytest.approx(total, abs=1e-5)) for name, (number, total) in COUNTED.items()
    }
    left = {sample.name for sample in samples if sample.name.startswith("semblance_")}
    left -= {f"semblance_{name}" for name in COUNTED}
    assert {name for name in left if not name.endswith(("_bucket", "_created", "_sum"))} == {
        "semblance_cache_bytes",
        "semblance_event_loop_lag_seconds_count",
        "semblance_memory_limit_bytes",
        "semblance_models_reload_success_timestamp_seconds",
    }


async def test_a_request_says_where_its_time_went(lasting: Client) -> None:
    for path, body in [*GOOD.items(), *((each.path, each.body) for each in REQUESTS.values())]:
        response = await lasting.post(path, json=body)
        found = timings(response.headers["server-timing"])
        assert list(found) == [*PHASES, "total"]
        assert found["tokenise"] > 0
        assert sum(found[phase] for phase in PHASES) <= found["total"] + 0.005  # each is rounded
    refused = await lasting.post("/similarity", json={})
    assert timings(refused.headers["server-timing"])["inference"] == 0
    assert "server-timing" not in (await lasting.get("/models")).headers


async def test_the_phases_are_told_apart(client: Client) -> None:
    slow(client, 0.02, "avg-sick")  # in a thread, for its time is known
    answers = [await client.post("/embed", json={**GOOD["/embed"], "model": "avg-sick"}) for _ in range(2)]
    cold, warm = (timings(answer.headers["server-timing"]) for answer in answers)
    assert cold["inference"] >= 20
    assert cold["queue"] > 0
    assert warm["inference"] == warm["queue"] == 0
    assert min(cold["cache"], warm["cache"]) > 0
    for phase in PHASES:
        assert await client.metric("semblance_phase_seconds_count", phase=phase, model="avg-sick") == 2
    total = await client.metric("semblance_phase_seconds_sum", phase="inference", model="avg-sick")
    assert 0.02 <= total == pytest.approx(cold["inference"] / 1000, abs=1e-5)


async def test_scores_are_counted_by_model(client: Client) -> None:
    alike = {"a": "a man", "b": "a man"}
    answer = await client.post("/similarity", json={"pairs": [alike, {"a": "a man", "b": "not"}]})
    await client.post("/rank", json={"query": "a man", "candidates": ["a man"] * 30, "model": "avg-sick"})
    await client.post("/explain", json=alike)  # the sentences without a word are nobody's
    scores = [result["score"] for result in answer.json()["results"]]
    assert await client.metric("semblance_score_count", model="avg-paraphrase") == 2
    assert await client.metric("semblance_score_sum", model="avg-paraphrase") == pytest.approx(sum(scores))
    assert await client.metric("semblance_score_count", model="avg-sick") == 30
    assert await client.metric("semblance_score_count", model="pair-sick") == 0
    await client.post("/similarity", json={"pairs": [alike], "model": "pair-sick"})
    assert await client.metric("semblance_score_count", model="pair-sick") == 1
    assert await client.metric("semblance_score_bucket", model="avg-paraphrase", le="1.0") == 2


@pytest.mark.parametrize("n", [0, 1, 500])
def test_many_values_are_observed_as_one_by_one(n: int) -> None:
    values = np.random.default_rng(n).choice([0.0, 0.05, 0.1, 0.2, 0.25, 0.4, 1.0, 1.5], n).tolist()
    both = [CollectorRegistry(), CollectorRegistry()]
    together, alone = (Histogram("x", "what", buckets=(0.1, 0.25, 0.5, 1.0), registry=each) for each in both)
    observe_all(together, values)
    for value in values:
        alone.observe(value)
    found, expected = ([(s.name, s.labels, s.value) for f in each.collect() for s in f.samples] for each in both)
    assert found[-1] == (*expected[-1][:2], pytest.approx(expected[-1][2]))  # the sum
    assert found[:-1] == expected[:-1]


async def test_readiness_is_a_metric_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await client.metric("semblance_ready") == 1
    assert await client.metric("semblance_models_refused") == 0
    service = client.app.service
    monkeypatch.setattr(type(service.reloader), "problems", ["model avg-sick is not reloaded"])
    assert await client.metric("semblance_ready") == 1  # degraded
    assert await client.metric("semblance_models_refused") == 1
    service.shutting_down = True
    assert await client.metric("semblance_ready") == 0
