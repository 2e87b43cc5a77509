"""Security headers: of every answer, and of the HTML pages."""

import base64
import hashlib
import re
from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.exchange import exchange_of

NOSNIFF = (b"x-content-type-options", b"nosniff")
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def policy(html: bytes, *, inline_styles: bool) -> str:
    """The Content-Security-Policy of a page: only its own scripts run, and it connects only to this host."""
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(html)]
    return _POLICY.format(
        hashes="".join(f" 'sha256-{digest}'" for digest in digests), styles=" 'unsafe-inline'" if inline_styles else ""
    )


def page_headers(html: bytes) -> list[tuple[bytes, bytes]]:
    """Headers of an HTML page: its policy, with the inline styles that /docs needs, and no frame."""
    return [
        (b"content-security-policy", policy(html, inline_styles=True).encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
        (b"x-frame-options", b"DENY"),
    ]


class SecurityHeaders:
    """Adds them; those of an HTML page depend on its body, and pages come in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. HEAD is answered as GET, without the body."""
        exchange_of(scope).headers.append(NOSNIFF)
        if scope["method"] not in ("GET", "HEAD"):  # no page
            await self._app(scope, receive, send)
            return
        has_body = scope["method"] == "GET"
        held: Message | None = None

        async def described(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                if dict(message.get("headers", ())).get(b"content-type", b"").startswith(b"text/html"):
                    held = message
                    return
            elif held is not None:
                begun, held = held, None
                own = dict(begun["headers"])  # a page may bring a stricter policy
                found = page_headers(message.get("body", b""))
                await send({**begun, "headers": [*begun["headers"], *(each for each in found if each[0] not in own)]})
            if message["type"] == "http.response.body" and not has_body:
                message = {**message, "body": b""}
            await send(message)

        async with AsyncExitStack() as scope["fastapi_middleware_astack"]:  # as FastAPI's own routes of pages need it
            await self._app(scope if has_body else {**scope, "method": "GET"}, receive, described)
