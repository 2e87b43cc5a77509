"""OpenTelemetry: a span for each request, and within it one for each interval of its phases.

OpenTelemetry's standard variables switch it on and are read by its SDK. Spans are made after the answer and sent from a
thread. They have the labels of metrics and the request id, and no text.
"""

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import TYPE_CHECKING

from service.errors import SettingsError
from service.observe.logs import fields
from service.observe.metrics import PHASES
from service.version import DISTRIBUTION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_FAILED = 500
_CLOSE_SECONDS = 1.0  # after which a stop waits for the collector no longer
METHOD, ROUTE, STATUS = "http.request.method", "http.route", "http.response.status_code"  # names of attributes


class Tracing:
    """Creates the spans of requests."""

    def __init__(self, processor: "SpanProcessor", version: str = "") -> None:
        """Prepare; `processor` gets the spans, `version` is that of the service."""
        from opentelemetry import trace
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        ours = Resource({"service.name": "semblance", "service.version": version})
        self._provider = TracerProvider(
            resource=Resource.create().merge(ours).merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("semblance")
        self._propagator = TraceContextTextMapPropagator()
        self._trace = trace

    def record(
        self,
        headers: Mapping[bytes, bytes],
        phases: Sequence[tuple[int, float, float]],
        attributes: Mapping[str, str | int],
        began: float,
        ended: float,
    ) -> str | None:
        """Make the spans of an answered request; its trace is that of the header `traceparent`, if there is one.

        Returns the trace's id in hexadecimal digits, None where its sampler does not send it.

        `phases` are the index in `PHASES`, begin and end of each; `attributes` the request's method, its route,
        of a closed set, and the status of its answer. Times are of `perf_counter`.
        """
        at_zero = time.time_ns() - int(time.perf_counter() * 1e9)  # when `perf_counter` was 0
        carrier = {name: headers.get(name.encode(), b"").decode("latin-1") for name in ("traceparent", "tracestate")}
        span = self._tracer.start_span(
            f"{attributes[METHOD]} {attributes[ROUTE]}",
            context=self._propagator.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=at_zero + int(began * 1e9),
        )
        if int(attributes[STATUS]) >= _FAILED:
            span.set_status(self._trace.StatusCode.ERROR)
        if phases and span.is_recording():
            within = self._trace.set_span_in_context(span)
            for phase, phase_began, phase_ended in phases:
                part = self._tracer.start_span(PHASES[phase], within, start_time=at_zero + int(phase_began * 1e9))
                part.end(at_zero + int(phase_ended * 1e9))
        recorded = span.is_recording()
        span.end(at_zero + int(ended * 1e9))
        return self._trace.format_trace_id(span.get_span_context().trace_id) if recorded else None

    def close(self) -> None:
        """Send the remaining spans; those that a collector does not take within a second are lost."""
        closing = Thread(target=self._provider.shutdown, daemon=True)  # which may take the exporter's timeout
        closing.start()
        closing.join(_CLOSE_SECONDS)
        if closing.is_alive():
            log.warning(
                "the last traces are lost: the collector does not take them", extra=fields(seconds=_CLOSE_SECONDS)
            )


def open_tracing(environment: Mapping[str, str], version: str = "") -> Tracing | None:
    """Tracing as OpenTelemetry's variables say; None if they name no endpoint.

    Raises:
        SettingsError: the extra `tracing` is not installed, or the variables name another protocol than http/protobuf.
    """
    endpoint = next((name for name in ENDPOINTS if environment.get(name)), None)
    if endpoint is None:
        return None
    wanted = next((name for name in _PROTOCOLS if environment.get(name)), None)
    if wanted is not None and environment[wanted] != _PROTOCOL:
        raise SettingsError(f"{wanted}: only {_PROTOCOL} is spoken here, found {environment[wanted]!r}")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SettingsError(
            f"{endpoint} is set, but OpenTelemetry is not installed ({error.name}): "
            f"{sys.executable} -m pip install '{DISTRIBUTION}[tracing]'"
        ) from None
    try:
        return Tracing(BatchSpanProcessor(OTLPSpanExporter()), version)
    except ValueError as error:  # which does not always name the variable
        given = ", ".join(f"{name}={environment[name]!r}" for name in sorted(environment) if _is_number(name))
        raise SettingsError(f"a variable of OpenTelemetry is invalid ({given}): {error}") from None


def _is_number(name: str) -> bool:
    return name.startswith("OTEL_") and name.endswith(("_SIZE", "_LIMIT", "_DELAY", "_TIMEOUT"))
