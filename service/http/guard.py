"""API keys; the service has only their hashes.

Keys are random and long (`hash_key` refuses short ones), so SHA-256 is enough. A slow hash, made for passwords, would
cost more than the answer.
"""

import hashlib
import hmac
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_network

from service.errors import Unauthorized
from service.http.rate_limit import RateLimit
from service.settings import NAME

SHORTEST_KEY = 16
_IPV6_CLIENT = 64  # bits of the prefix: a client usually has the whole network of 2^64 addresses


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


class Guard:
    """Checks API keys and the rate limit."""

    def __init__(self, keys: Mapping[str, str], rate: RateLimit | None) -> None:
        """Prepare; `keys` is name -> SHA-256 in hexadecimal, and without any no key is required."""
        self._keys = [(name, bytes.fromhex(digest)) for name, digest in keys.items()]
        self._rate = rate

    async def admit(self, headers: Mapping[bytes, bytes], address: str) -> str | None:
        """Admit a request; the name of its key, or None if keys are not required.

        Requests without a valid key are counted by address, so that guessing is limited too.

        Raises:
            RateLimited: too many requests with this key, or from this address without a key.
            Unauthorized: no key, or a wrong one.
        """
        name = self._owner(_given(headers)) if self._keys else None
        if self._rate is not None:
            await self._rate.take(f"key:{name}" if name is not None else f"address:{client_of(address)}")
        if self._keys and name is None:
            raise Unauthorized("give the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")
        return name

    def _owner(self, given: bytes) -> str | None:
        """The name of a key; compares all keys in constant time."""
        digest = hashlib.sha256(given).digest()
        owner = None
        for name, known in self._keys:
            if hmac.compare_digest(digest, known):
                owner = name
        return owner


def _given(headers: Mapping[bytes, bytes]) -> bytes:
    authorization = headers.get(b"authorization", b"")
    scheme, _, given = authorization.partition(b" ")
    if scheme.lower() != b"bearer":  # some clients of TEI send the bare key as Authorization
        given = headers.get(b"x-api-key", authorization)
    return given.strip()


def client_of(address: str) -> str:
    """The client of an address: for IPv6 its network, and for IPv4 within IPv6 the IPv4 address."""
    if ":" not in address:
        return address
    try:
        if (inner := IPv6Address(address).ipv4_mapped) is not None:  # a socket of both, as with HOST=::
            return str(inner)
        return str(ip_network((address.partition("%")[0], _IPV6_CLIENT), strict=False))
    except ValueError:  # a socket's path
        return address
