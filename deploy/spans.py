"""A collector of traces: OpenTelemetry's spans over HTTP in (OTLP, protobuf), Jaeger's JSON of one trace out.

For machines without the collector's image. Answers `POST /v1/traces`, `GET /api/traces/ID`, and `GET /` (it is well),
and keeps the last traces in memory. Nothing but the standard library.
"""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_TRACES = 5_000
# Numbers of protobuf's fields, from opentelemetry/proto/trace/v1/trace.proto.
RESOURCE_SPANS, SCOPE_SPANS, SPANS = 1, 2, 2
TRACE_ID, SPAN_ID, NAME = 1, 2, 5
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a protobuf message; a number's content is its bytes as they are."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        kind, began = tag & 7, at
        if kind == _VARINT:
            varint()
        elif kind == _LENGTH:
            length = varint()
            began, at = at, at + length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"protobuf: unknown wire type {kind}")
        yield tag >> 3, message[began:at]


def spans_of(request: bytes) -> Iterator[dict[str, str]]:
    """The spans of an ExportTraceServiceRequest, with Jaeger's names of their parts."""
    for resource in _of(request, RESOURCE_SPANS):
        for scope in _of(resource, SCOPE_SPANS):
            for span in _of(scope, SPANS):
                parts = dict(fields(span))
                yield {
                    "traceID": parts[TRACE_ID].hex(),
                    "spanID": parts[SPAN_ID].hex(),
                    "operationName": parts.get(NAME, b"").decode(),
                }


def _of(message: bytes, number: int) -> Iterator[bytes]:
    return (content for found, content in fields(message) if found == number)


class _Collector(BaseHTTPRequestHandler):
    traces: dict[str, list[dict[str, str]]]

    def do_POST(self) -> None:
        """Keep the spans that are sent."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for span in spans_of(body):
            self.traces.setdefault(span["traceID"], []).append(span)
        while len(self.traces) > MAX_TRACES:
            self.traces.pop(next(iter(self.traces)))
        self._answer(200, b"")

    def do_GET(self) -> None:
        """One trace, or that this is well."""
        name = self.path.removeprefix("/api/traces/")
        if name == "/":
            self._answer(200, b"{}")
        elif (spans := self.traces.get(name)) is None:
            self._answer(404, b"{}")
        else:
            self._answer(200, json.dumps({"data": [{"traceID": name, "spans": spans}]}).encode())

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def collector(*addresses: str) -> str:
    """Serve at each HOST:PORT until the process is ended."""
    _Collector.traces = {}
    servers = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        servers.append(ThreadingHTTPServer((host, int(port)), _Collector))
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()
    return ""
