"""Lookup by name, with suggestions for misspelt names."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


def by_name(known: Mapping[str, T], name: str, what: str, listed_by: str = "") -> T:
    """The entry of that name.

    Args:
        known: all entries, by name.
        name: as the user gave it.
        what: kind of entry, for the message.
        listed_by: the command that lists all names; empty: the message lists them where no name is similar.

    Raises:
        KeyError: there is none; the message has the most similar names.
    """
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    if listed_by:
        hint = f"{hint} `{listed_by}` lists all {len(known)}".strip()
    raise KeyError(f"no {what} {name!r}; {hint or 'there are ' + ', '.join(sorted(known))}")
