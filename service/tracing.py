"""OpenTelemetry: a span for each request and, within it, one for each stretch of its time (`service/timings.py`).

Switched on by the standard variables of OpenTelemetry, which its SDK reads by itself: where to, how many, what the
service is called. Spans are made once the request is answered and sent from a thread, so that none waits for them. They
carry what metrics carry, and the request's id; no text.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from service.errors import SettingsError
from service.timings import PHASES, Timings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_FAILED = 500


class Tracing:
    """Makes spans and hands them on."""

    def __init__(self, processor: "SpanProcessor", version: str = "") -> None:
        """Open it.

        Args:
            processor: where spans go.
            version: of the service.
        """
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
        timings: Timings | None,
        *,
        method: str,
        route: str,
        status: int,
        model: str,
        request_id: str,
        began: float,
        ended: float,
    ) -> None:
        """Make the spans of a request that is answered.

        Args:
            headers: of the request; `traceparent` says which trace it belongs to.
            timings: with spans; None of a request that scores nothing.
            method: of HTTP.
            route: its path, of a closed set.
            status: of the answer.
            model: that answered.
            request_id: of the answer.
            began: as `perf_counter` told it.
            ended: likewise.
        """
        at_zero = time.time_ns() - int(time.perf_counter() * 1e9)  # when `perf_counter` was 0
        carrier = {name: headers.get(name.encode(), b"").decode("latin-1") for name in ("traceparent", "tracestate")}
        attributes: dict[str, str | int] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            "semblance.model": model,
            "semblance.request_id": request_id,
        }
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._propagator.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=at_zero + int(began * 1e9),
        )
        if status >= _FAILED:
            span.set_status(self._trace.StatusCode.ERROR)
        if timings is not None and span.is_recording():
            within = self._trace.set_span_in_context(span)
            for phase, phase_began, phase_ended in timings.spans or ():
                part = self._tracer.start_span(PHASES[phase], within, start_time=at_zero + int(phase_began * 1e9))
                part.end(at_zero + int(phase_ended * 1e9))
        span.end(at_zero + int(ended * 1e9))

    def close(self) -> None:
        """Send what is left, as long as the exporter's time-out allows."""
        self._provider.shutdown()


def open_tracing(environment: Mapping[str, str], version: str = "") -> Tracing | None:
    """Tracing as OpenTelemetry's variables say; None where they name no endpoint.

    Raises:
        SettingsError: the extra `tracing` is not installed, or a protocol is wanted that it has not.
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
            f"{endpoint} is set, but OpenTelemetry is not installed ({error.name}): pip install 'semblance[tracing]'"
        ) from None
    return Tracing(BatchSpanProcessor(OTLPSpanExporter()), version)
