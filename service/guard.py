"""Who may ask: API keys, of which only hashes are known here.

A key is random and long (`hash_key` refuses short ones), so that its plain SHA-256 cannot be turned back; a slow hash,
made for passwords that people choose, would cost more than the answer.
"""

import hashlib
import hmac
from collections.abc import Mapping
from ipaddress import ip_network

from service.errors import Unauthorized
from service.rate_limit import RateLimit
from service.settings import NAME

SHORTEST_KEY = 16
_IPV6_CLIENT = 64  # bits: whoever has an address of IPv6 has at least the 2^64 that begin alike


def digest_of(key: str) -> str:
    """What the settings keep of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def hash_key(name: str, key: str) -> str:
    """An entry of `SEMBLANCE_API_KEYS`.

    Args:
        name: whose key it is; it may stand in logs.
        key: the key itself.

    Raises:
        ValueError: a name that cannot be told from the rest of an entry, a key that no header can carry, a short one.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"a name is made of letters, digits, '.', '_' and '-', 64 at most; found {name!r}")
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        raise ValueError("a key travels in a header: expected printable ASCII without spaces around it")
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"a key of {len(key)} characters can be guessed; expected {SHORTEST_KEY} or more")
    return f"{name}:{digest_of(key)}"


class Guard:
    """Lets a request in, or says why not."""

    def __init__(self, keys: Mapping[str, str], rate: RateLimit | None) -> None:
        """Keep the keys' hashes.

        Args:
            keys: name -> SHA-256 in hexadecimal; without any, everybody may ask.
            rate: how often.
        """
        self._keys = [(name, bytes.fromhex(digest)) for name, digest in keys.items()]
        self._rate = rate

    async def admit(self, headers: Mapping[bytes, bytes], address: str) -> str | None:
        """Let a request in: the name of its key, None where no key is asked for.

        Who has no key, or a wrong one, is counted by address: guessing is as limited as asking.

        Raises:
            RateLimited: too many of this key, or of this address without one.
            Unauthorized: no key, or another one.
        """
        name = self._owner(_given(headers)) if self._keys else None
        if self._rate is not None:
            await self._rate.take(f"key:{name}" if name is not None else f"address:{client_of(address)}")
        if self._keys and name is None:
            raise Unauthorized("give the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")
        return name

    def _owner(self, given: bytes) -> str | None:
        """Whose key it is; every known one is compared, in constant time, whether or not one has fitted already."""
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
    """The client behind an address: of IPv6 the network it may choose addresses from."""
    if ":" not in address:
        return address
    try:
        return str(ip_network((address.partition("%")[0], _IPV6_CLIENT), strict=False))
    except ValueError:  # a socket's path
        return address
