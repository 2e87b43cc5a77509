"""The address of Redis: redis://user:password@host:6379/0, rediss:// for the same over TLS, or unix://path.

What follows a question mark are options of redis-py's connections, such as `ssl_ca_certs`.
"""

from urllib.parse import urlsplit

FORM = "expected redis://host:port/db, rediss:// for TLS, or unix://path"


def address_of(url: str) -> str:
    """The address without credentials, for the log; nothing is sent.

    Raises:
        ValueError: it has another form. The message does not quote it, since it may have a password.
    """
    # Imported here, because most services have no Redis, and the supervisor uses none.
    from redis.asyncio.connection import parse_url

    try:
        parse_url(url)
        parts = urlsplit(url)
        found = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        whole = bool(parts.path if parts.scheme == "unix" else parts.hostname)
    except ValueError:
        whole = False  # not raised again: its message may quote a password
    if not whole:
        raise ValueError(FORM)
    return found
