"""API keys; the service has only their hashes.

Keys are random and long (`hash_key` refuses short ones), so SHA-256 is enough. A slow hash, made for passwords, would
cost more than the answer.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.exchange import exchange_of
from service.api.tensors import JSON_LENGTH
from service.errors import NotHttp, Unauthorized
from service.settings import NAME

SHORTEST_KEY = 16


def digest_of(key: str) -> str:
    """The hash of a key, as in the settings."""
    return hashlib.sha256(key.encode()).hexdigest()


def hash_key(name: str, key: str) -> str:
    """An entry of `SEMBLANCE_API_KEYS`.

    Args:
        name: of the key's owner, for logs.
        key: the key itself.

    Raises:
        ValueError: the name has other characters, or the key is short or does not fit into a header.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"a name is made of letters, digits, '.', '_' and '-', 64 at most; found {name!r}")
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        raise ValueError("a key travels in a header: expected printable ASCII without spaces around it")
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"a key of {len(key)} characters can be guessed; expected {SHORTEST_KEY} or more")
    return f"{name}:{digest_of(key)}"


class OneOfEach:
    """Refuses a request with two headers of a name where only one counts: a proxy may have checked the other."""

    _names = (b"authorization", b"x-api-key", b"content-type", b"content-encoding", JSON_LENGTH)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            NotHttp: it has two.
        """
        if len(scope["headers"]) > len(exchange_of(scope).received):  # a name is there twice, such as Cookie
            names = [name for name, _ in scope["headers"]]
            for name in self._names:
                if (found := names.count(name)) > 1:
                    raise NotHttp(f"a request has one {name.decode().title()} header; found {found}")
        await self._app(scope, receive, send)


class Callers:
    """Names the caller of each request: the owner of its key, if that is known."""

    def __init__(self, app: ASGIApp, keys: Mapping[str, str]) -> None:
        """Prepare; `keys` is name -> SHA-256 in hexadecimal."""
        self._app = app
        self._keys = [(name, bytes.fromhex(digest)) for name, digest in keys.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        exchange = exchange_of(scope)
        exchange.caller = self.owner(_given(exchange.received))
        await self._app(scope, receive, send)

    def owner(self, given: bytes) -> str | None:
        """The name of a key; compares all keys in constant time."""
        digest = hashlib.sha256(given).digest()
        owner = None
        for name, known in self._keys:
            if hmac.compare_digest(digest, known):
                owner = name
        return owner


class Keys:
    """Refuses callers who have not shown a key."""

    def __init__(self, app: ASGIApp, is_open: Callable[[Scope], bool]) -> None:
        """Prepare; what `is_open` anybody may ask."""
        self._app = app
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Raises:
            Unauthorized: no key, or a wrong one.
        """
        exchange = exchange_of(scope)
        if exchange.caller is None and not self._is_open(scope):
            if _given(exchange.received):
                raise Unauthorized("this API key is not known here")
            raise Unauthorized("give the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")
        await self._app(scope, receive, send)


def _given(headers: Mapping[bytes, bytes]) -> bytes:
    authorization = headers.get(b"authorization", b"")
    scheme, _, given = authorization.partition(b" ")
    if scheme.lower() != b"bearer":  # some clients of TEI send the bare key as Authorization
        given = headers.get(b"x-api-key", authorization)
    return given.strip()
