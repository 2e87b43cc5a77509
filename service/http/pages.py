"""Security headers."""

import base64
import hashlib
import re

NOSNIFF = (b"x-content-type-options", b"nosniff")
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_headers(html: bytes) -> list[tuple[bytes, bytes]]:
    """Headers of an HTML page: only its own scripts run, it connects only to this host, and is in no frame."""
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(html)]
    policy = _POLICY.format(hashes="".join(f" 'sha256-{digest}'" for digest in digests))
    return [
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
        (b"x-frame-options", b"DENY"),
    ]
