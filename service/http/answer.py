"""The response to one request, with the headers that every response has."""

from collections.abc import Iterable
from time import perf_counter

from starlette.types import Message, Send

from service.api.body import JSON_LENGTH, TENSORS, Body
from service.api.dialects.family import ErrorFormat
from service.errors import RequestError
from service.http.connection import SendWhole
from service.http.pages import NOSNIFF, page_headers
from service.observe.telemetry import NO_MODEL
from service.observe.timings import Timings
from service.parsing import AT

_NO_BODY = Body()
_LINES = b"content-type: application/json\r\nx-request-id: %%s\r\n%s: %s\r\n" % NOSNIFF
_TENSOR_LINES = _LINES.replace(b"application/json", TENSORS)


class Answer:
    """One response, with its status, model and caller for metrics, traces and logs."""

    __slots__ = (
        "_began", "_held", "_request_id", "_send", "_send_whole", "_started", "caller", "model", "question", "status",
        "timings",
    )  # fmt: skip

    def __init__(self, send: Send, send_whole: SendWhole | None, request_id: bytes, began: float) -> None:
        self._began = began
        self._held: Message | None = None
        self._send = send
        self._send_whole = send_whole
        self._request_id = request_id
        self._started = False
        self.caller: str | None = None  # name of the API key
        self.model = NO_MODEL
        self.question = _NO_BODY  # of the request, once it is read
        self.status = 500
        self.timings: Timings | None = None  # of a request that scores

    async def send(self, message: Message) -> None:
        """Send FastAPI's messages with more headers; those of an HTML page depend on its body."""
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            found = message.get("headers", ())
            message["headers"] = [*found, (b"x-request-id", self._request_id), NOSNIFF]
            if dict(found).get(b"content-type", b"").startswith(b"text/html"):
                self._held = message
                return
        elif self._held is not None:
            held, self._held = self._held, None
            own = dict(held["headers"])  # a page may bring a stricter policy
            held["headers"] += [header for header in page_headers(message.get("body", b"")) if header[0] not in own]
            await self._send(held)
        await self._send(message)

    async def succeed(self, payload: bytes) -> None:
        """Answer 200."""
        self.status = 200
        _, has_versions, version = self.model.partition(AT)
        extra = [(b"x-model-version", version.encode())] if has_versions else []
        if (length := self.question.json_of_answer) is not None:
            extra.append((JSON_LENGTH, b"%d" % length))
            await self._whole(payload, extra, _TENSOR_LINES)
        else:
            await self._whole(payload, extra)

    async def fail(self, error: RequestError, error_format: ErrorFormat) -> None:
        """Answer with an error, unless an answer has begun already."""
        if self._started:
            return
        self.status, body = error_format(error, self._request_id.decode())
        extra = [(name.encode(), value.encode()) for name, value in error.headers.items()]
        await self._whole(body, extra)

    async def _whole(self, payload: bytes, extra: Iterable[tuple[bytes, bytes]], lines: bytes = _LINES) -> None:
        self._started = True
        lines %= self._request_id
        for header in extra:
            lines += b"%s: %s\r\n" % header
        if self.timings is not None:
            lines += b"server-timing: %s\r\n" % self.timings.header(perf_counter() - self._began)
        if self._send_whole is not None and self._send_whole(self.status, lines, payload):
            return
        lines += b"content-length: %d" % len(payload)
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines.split(b"\r\n"))]
        await self._send({"type": "http.response.start", "status": self.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": payload})
