"""Traces: a span for each request with its phases inside, to where OpenTelemetry's variables say."""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from service.app import Application, create_app
from service.errors import SettingsError
from service.observe.tracing import Tracing, open_tracing
from service.settings import Settings
from tests.harness.process import command
from tests.harness.requests import GOOD
from tests.harness.service import NEEDED_SECONDS, Client

sdk = pytest.importorskip("opentelemetry.sdk.trace.export", reason="missing here: pip install '.[tracing]'")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
pytestmark = pytest.mark.anyio
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
TEXT = "zanzibar"


@pytest.fixture
def exporter() -> Any:
    return memory.InMemorySpanExporter()


@pytest.fixture
def app(models: Path, exporter: Any) -> Application:
    return create_app(Settings(models_dir=models), Tracing(sdk.SimpleSpanProcessor(exporter), "1.2"))


async def test_a_request_is_a_span_with_its_phases_inside(app: Application, exporter: Any) -> None:
    caller = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    async with Client(app) as client:
        answer = await client.post("/embed", json={"sentences": [TEXT]}, headers={"traceparent": caller})
        await client.get(f"/v1/models/{TEXT}", headers={"traceparent": TEXT})
        await client.get("/health/live")
    *parts, scoring, other = exporter.get_finished_spans()
    assert [part.name for part in parts] == ["tokenise", "cache", "inference"]
    for part in parts:
        assert part.parent.span_id == scoring.context.span_id
        assert scoring.start_time <= part.start_time <= part.end_time <= scoring.end_time
    assert scoring.name == "POST /embed"
    assert scoring.context.trace_id == 0x0123456789ABCDEF0123456789ABCDEF
    assert scoring.parent.span_id == 0x0123456789ABCDEF
    assert dict(scoring.attributes) == {
        "http.request.method": "POST",
        "http.route": "/embed",
        "http.response.status_code": 200,
        "semblance.model": "avg-paraphrase",
        "semblance.request_id": answer.headers["x-request-id"],
    }
    assert scoring.resource.attributes["service.name"] == "semblance"
    assert scoring.resource.attributes["service.version"] == "1.2"
    assert other.name == "GET /v1/models/{model}"
    assert other.parent is None
    assert TEXT not in "".join(span.to_json() for span in exporter.get_finished_spans())


async def test_a_bucket_of_latency_names_a_trace_that_is_in_it(app: Application, exporter: Any) -> None:
    openmetrics = {"accept": "application/openmetrics-text; version=1.0.0"}
    async with Client(app) as client:
        await client.post("/embed", json=GOOD["/embed"])
        (trace,) = {f"{span.context.trace_id:032x}" for span in exporter.get_finished_spans()}
        page = (await client.get("/metrics", headers=openmetrics)).text
        plain = (await client.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(page)}
    samples = families["semblance_request_seconds"].samples
    (marked,) = [sample for sample in samples if sample.exemplar is not None]
    assert marked.name == "semblance_request_seconds_bucket"
    assert (marked.labels["route"], marked.exemplar.labels) == ("/embed", {"trace_id": trace})
    assert marked.exemplar.value <= float(marked.labels["le"])
    assert "trace_id" not in plain  # only OpenMetrics has exemplars


async def test_a_failure_of_ours_is_an_error_and_a_clients_is_not(app: Application, exporter: Any) -> None:
    async with Client(app) as client:
        await client.post("/embed", json={})
        app.service.registry["avg-paraphrase"].scorer.tokenise = None
        await client.post("/embed", json=GOOD["/embed"])
    assert [span.status.is_ok for span in exporter.get_finished_spans()] == [True, False]


def test_an_endpoint_without_the_extra_is_refused(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(
        SettingsError,
        match=r"ENDPOINT is set, but OpenTelemetry is not .*-m pip install '.*\[tracing\]'",
    ):
        open_tracing(ENDPOINT)


def test_another_protocol_is_refused_and_ends_the_start(models, monkeypatch) -> None:
    for name, value in {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(**command(models_dir=models), timeout=NEEDED_SECONDS, check=False)
    assert done.returncode == 2
    assert done.stderr == "OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken here, found 'grpc'\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9999"),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "-1"),
    ],
)
def test_a_number_that_cannot_be_ends_the_start_with_its_name(models, monkeypatch, name: str, value: str) -> None:
    for each, given in {**ENDPOINT, name: value}.items():
        monkeypatch.setenv(each, given)
    done = subprocess.run(**command(models_dir=models), timeout=NEEDED_SECONDS, check=False)
    assert done.returncode == 2
    assert re.fullmatch(f".*{name}='{value}'.*\n", done.stderr)


def test_a_collector_that_takes_nothing_holds_a_stop_up_for_a_second(caplog) -> None:
    class Hangs(memory.InMemorySpanExporter):
        def export(self, spans: Any) -> Any:
            time.sleep(8)

    tracing = Tracing(sdk.BatchSpanProcessor(Hangs()))
    tracing.record({}, (), {"http.request.method": "GET", "http.route": "/", "http.response.status_code": 200}, 0, 1)
    began = time.monotonic()
    tracing.close()
    assert time.monotonic() - began < 5
    assert [record.levelname for record in caplog.records if record.name == "service.observe.tracing"] == ["WARNING"]
