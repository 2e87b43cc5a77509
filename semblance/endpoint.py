"""What both clients share: the checked arguments of one service, and the translation of httpx's errors."""

from urllib.parse import urlsplit

import httpx

from semblance.errors import InvalidArgument, NoAnswer, TimedOut, UnexpectedAnswer
from semblance.protocol import Questions
from semblance.retries import Retries
from semblance.version import version


class Endpoint:
    """One service's URL, headers, time limit and retries; does no I/O.

    Raises:
        InvalidArgument: the URL has no http scheme or no host, the key is not printable ASCII, or max_items is below 1.
    """

    def __init__(
        self, url: str, api_key: str | None, timeout: float, retries: int | Retries, max_items: int | None
    ) -> None:
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        except (ValueError, TypeError, AttributeError):  # a host that begins with a digit and has no scheme is one
            sound = False
        if not sound:
            raise InvalidArgument(f"expected a URL such as http://127.0.0.1:8000, found {url!r}")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise InvalidArgument("an API key travels in a header: expected printable ASCII")
        if max_items is not None and max_items < 1:
            raise InvalidArgument(f"max_items must be at least 1, found {max_items}")
        self.url = url
        self.headers = {"user-agent": f"semblance/{version()}", "content-type": "application/json"}
        if api_key is not None:
            self.headers["authorization"] = f"Bearer {api_key}"
        self.timeout = httpx.Timeout(timeout)
        self.plan = (Retries(retries) if isinstance(retries, int) else retries).plan()
        self.questions = Questions(max_items)

    def translated(self, error: httpx.RequestError) -> NoAnswer | UnexpectedAnswer:
        """The error of this package for one of httpx."""
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return TimedOut(f"no answer from {self.url} in time: {reason}")
        if isinstance(error, httpx.TransportError):
            return NoAnswer(f"no answer from {self.url}: {reason}")
        return UnexpectedAnswer(f"{self.url} answers with what cannot be read: {reason}")
