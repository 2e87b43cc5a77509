"""Addresses of Redis: one server, a cluster, or the master that sentinels name; each with or without TLS.

    redis://user:password@host:6379/0                  rediss:// is the same over TLS, unix://path a socket
    redis+cluster://user:password@host:6379,host:6379
    redis+sentinel://user:password@host:26379,host:26379/SERVICE/0

What follows a question mark are options of redis-py's connections, such as `ssl_certfile`, `ssl_keyfile`; and
`sentinel_username`, `sentinel_password`, where sentinels have a user of their own.
"""

import ssl
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

FORM = (
    "expected redis://host:port/db, redis+cluster://host:port,host:port, "
    "redis+sentinel://host:port,host:port/service/db, these with rediss for TLS, or unix://path"
)
_PORTS = {"cluster": 6379, "sentinel": 26379}
_OF_SENTINELS = "sentinel_"
_SEVERAL_TAKE = ("ssl_", _OF_SENTINELS)  # options of several nodes; others belong to one connection


class RedisUrl(NamedTuple):
    """What an address says."""

    kind: Literal["one", "cluster", "sentinel"]
    url: str  # of one server, as redis-py reads it; of several its first node's
    nodes: tuple[tuple[str, int], ...]  # hosts and ports of several
    service: str  # that sentinels know the master by
    tls: bool
    of_sentinels: dict[str, str]  # user and password
    address: str  # without credentials, for the log

    @property
    def options(self) -> dict[str, Any]:
        """Options of redis-py's connections, among them user and password; without host and port."""
        # Imported here, because most services have no Redis, and the supervisor uses none.
        from redis.asyncio.connection import parse_url

        options = dict(parse_url(self.url))
        for name in ("host", "port", "connection_class"):
            options.pop(name, None)
        return options


def read(url: str) -> RedisUrl:
    """The parts of an address; nothing is sent.

    Raises:
        ValueError: it has another form. The message does not quote it, since it may have a password.
    """
    try:
        found = _read(url)
    except ValueError:
        found = None  # not raised again: its message may quote a password
    if found is None:
        raise ValueError(FORM)
    return found


def _read(url: str) -> RedisUrl | None:
    from redis.asyncio.connection import parse_url

    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    tls = scheme == "rediss"
    if not kind:
        parse_url(url)
        address = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        whole = parts.path if scheme == "unix" else parts.hostname
        return RedisUrl("one", url, (), "", tls, {}, address) if whole else None
    if scheme not in ("redis", "rediss") or kind not in ("cluster", "sentinel"):
        return None
    login, _, hosts = parts.netloc.rpartition("@")
    nodes = tuple(_node(host, _PORTS[kind]) for host in hosts.split(","))
    query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    service, db = "", parts.path.strip("/")
    if kind == "sentinel":
        service, _, db = db.partition("/")
    if not (db.isdecimal() or not db) or bool(service) != (kind == "sentinel") or (kind == "cluster" and db.strip("0")):
        return None  # a cluster has database 0 alone
    if not all(name.startswith(_SEVERAL_TAKE[: 1 if kind == "cluster" else 2]) for name, _ in query):
        return None
    own = {name.removeprefix(_OF_SENTINELS): value for name, value in query if name.startswith(_OF_SENTINELS)}
    rest = urlencode([(name, value) for name, value in query if not name.startswith(_OF_SENTINELS)])
    first = f"{scheme}://{login}@{hosts.split(',')[0]}/{db}?{rest}"
    parse_url(first)
    told = ",".join(f"{host}:{port}" for host, port in nodes) + parts.path
    return RedisUrl("cluster" if kind == "cluster" else "sentinel", first, nodes, unquote(service), tls, own, told)


def check_authority(path: Path, url: str) -> None:
    """Whether a file of certificate authorities can be used with an address.

    Raises:
        ValueError: it has no certificates, or the address is without TLS.
    """
    if not read(url).tls:
        raise ValueError("belongs to an address with TLS: SEMBLANCE_REDIS_URL=rediss://..., rediss+cluster://...")
    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError):
        raise ValueError("expected a file of certificates in PEM") from None


def _node(host: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"redis://{host}")
    if not parts.hostname or parts.path:
        raise ValueError("expected a host")
    return parts.hostname, parts.port or port
