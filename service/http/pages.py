"""Security headers."""

import base64
import hashlib
import re

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
