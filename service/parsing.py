"""Parsers of environment variables: counts, lists of NAME=VALUE, versions, addresses."""

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import PlainValidator

LATEST: Literal["latest"] = "latest"
ALL: Literal["all"] = "all"
Version = int | Literal["latest", "all"]
AT = "@"  # between a model's id and its version
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def number_or_auto(most: int) -> PlainValidator:
    """A validator of a count or `auto`; a union of types would report two errors for one mistake."""

    def read(value: object) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        if str(value).isdecimal() and 1 <= int(str(value)) <= most:
            return int(str(value))
        raise ValueError(f"expected a whole number from 1 to {most}, or auto")

    return PlainValidator(read)


def is_redis_url(url: str) -> bool:
    """Whether redis-py accepts it; nothing is sent."""
    # Imported here, because most services have no Redis, and the supervisor uses none.
    from redis.asyncio.connection import parse_url

    try:
        parts = urlsplit(url)
        parse_url(url)
        return bool(parts.path if parts.scheme == "unix" else parts.hostname)
    except ValueError:  # not raised again: its message may quote a password
        return False


def entries_of(value: object, form: str) -> object:
    """A variable of `NAME=VALUE` entries as a dict; other types are returned as they are.

    Raises:
        ValueError: it does not have this form.
    """
    if not isinstance(value, str):
        return value
    entries = [[part.strip() for part in entry.split("=")] for entry in value.split(",") if entry.strip()]
    if not all(len(entry) == 2 and all(entry) for entry in entries):
        raise ValueError(f"expected {form}")
    return {entry[0]: entry[1] for entry in entries}


def version_of(value: object, form: str, *words: str) -> object:
    """A version, or one of `words`; other types are returned as they are.

    Raises:
        ValueError: it is neither.
    """
    if not isinstance(value, str) or (value := value.strip()) in (LATEST, *words):
        return value
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"expected {form}")
    return int(value)
