"""Parsers of environment variables: counts, lists of NAME=VALUE, keys, addresses; and what is said of wrong ones."""

import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import PlainValidator, ValidationError

ALL: Literal["all"] = "all"
NONE: Literal["none"] = "none"
REDIS_FORM = (
    "expected redis://host:port/db, rediss:// for TLS, or unix://path; db is a number, and in a password @ is "
    "written %40, / %2F, # %23, ? %3F and % %25"
)
REDIS_OPTIONS = (
    "taken behind ? are db, username, password, and with rediss:// options of redis-py for TLS, such as "
    "ssl_ca_certs=/path"
)
_SCHEMES = ("redis", "rediss", "unix")
_OPTIONS = ("db", "username", "password")
_DATABASE = re.compile(r"(/[0-9]*)?", re.ASCII)


def number_or_auto(maximum: int) -> PlainValidator:
    """A validator of a count or `auto`; a union of types would report two errors for one mistake."""

    def read(value: object) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        if str(value).isdecimal() and 1 <= int(str(value)) <= maximum:
            return int(str(value))
        raise ValueError(f"expected a whole number from 1 to {maximum}, or auto")

    return PlainValidator(read)


def folders() -> PlainValidator:
    """Accepts a path, or several with the system's separator between them."""

    def read(value: object) -> tuple[Path, ...]:
        if isinstance(value, tuple):
            return value
        found = tuple(Path(part) for part in str(value).split(os.pathsep) if part)
        if not found:
            raise ValueError("expected a folder")
        return found

    return PlainValidator(read)


def parts_of(value: str) -> list[str]:
    """What stands between commas. Commas with nothing between them are no empty list: a template may have failed.

    Raises:
        ValueError: there are only commas and spaces.
    """
    found = [part.strip() for part in value.split(",") if part.strip()]
    if value and not found:
        raise ValueError("expected entries with commas between them, found none")
    return found


def entries_of(value: object, form: str) -> object:
    """A variable of `NAME=VALUE` entries as a dict; other types are returned as they are.

    Raises:
        ValueError: it does not have this form, or a name comes twice.
    """
    if not isinstance(value, str):
        return value
    entries = [[part.strip() for part in entry.split("=")] for entry in parts_of(value)]
    if not all(len(entry) == 2 and all(entry) for entry in entries):
        raise ValueError(f"expected {form}")
    found = {entry[0]: entry[1] for entry in entries}
    if len(found) != len(entries):
        raise ValueError(f"expected {form}, each name once")
    return found


def keys_of(value: object) -> object:
    """A variable of `NAME:SHA256` entries as a dict; other types are returned as they are.

    Raises:
        ValueError: there is none, or two have the same name.
    """
    if not isinstance(value, str):
        return value
    entries = [entry.partition(":") for entry in parts_of(value)]
    if len({name for name, _, _ in entries}) != len(entries):
        raise ValueError("each key has a name of its own")
    return {name: digest for name, _, digest in entries}


def lines_of(error: ValidationError, prefix: str) -> list[str]:
    """One line for each variable that does not fit, which begin with `prefix`; without values that may be secret."""
    lines = []
    for problem in error.errors(include_url=False):
        name = prefix + str(problem["loc"][0]).upper()  # without the place in a list
        secret = any(word in name for word in ("KEY", "URL", "SECRET"))
        found = "" if secret else f", found {problem['input']!r}"
        lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')}{found}")
    return lines


def redis_address(url: str) -> str:
    """The address of Redis without credentials, for the log; nothing is sent.

    What follows a question mark are a few options of redis-py, such as `ssl_ca_certs`: others change what is read.

    Raises:
        ValueError: it has another form or option. The message does not quote it, since it may have a password.
    """
    # Imported here, because most services have no Redis, and the parent of several workers uses none.
    from redis.asyncio.connection import ConnectionPool
    from redis.exceptions import RedisError

    try:
        parts = urlsplit(url)
        found = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
        is_file = parts.scheme == "unix"
        whole = parts.scheme in _SCHEMES
        whole = whole and bool(parts.path if is_file else parts.hostname and _DATABASE.fullmatch(parts.path))
        whole = whole and not parts.fragment and "@" not in parts.query  # of a password
    except ValueError:
        whole = False  # not raised again: its message may quote a password
    if not whole:
        raise ValueError(REDIS_FORM)
    options = parse_qs(parts.query)
    if wrong := [name for name in options if not name.startswith("ssl_") and name not in _OPTIONS]:
        raise ValueError(f"{', '.join(wrong)}: {REDIS_OPTIONS}")
    try:
        ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]  # which sends nothing
    except (TypeError, ValueError, RedisError):
        raise ValueError(f"{', '.join(options)}: {REDIS_OPTIONS}" if options else REDIS_FORM) from None
    return found
