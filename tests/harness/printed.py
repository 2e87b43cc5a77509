"""What a page prints beside what is answered."""

import json
from decimal import Decimal
from typing import Any

import pytest


def decimals(printed: str) -> Any:
    """JSON as a page prints it; a number keeps how many digits it was rounded to."""
    return json.loads(printed, parse_float=Decimal)


def close(found: Any, printed: Any) -> bool:
    """Equal; numbers to five digits (the sixth follows from the CPU), or to those that are printed."""
    if isinstance(printed, dict):
        return found.keys() == printed.keys() and all(close(found[k], v) for k, v in printed.items())
    if isinstance(printed, list):
        return len(found) == len(printed) and all(map(close, found, printed))
    if isinstance(printed, Decimal):
        return abs(found - float(printed)) <= max(1e-5, 0.51 * 10.0 ** int(printed.as_tuple().exponent))
    if isinstance(printed, float):
        return bool(found == pytest.approx(printed, abs=1e-5))
    return bool(found == printed)


def shortened(said: str, printed: str) -> str:
    """What a command said, with `...` for the lines that a page leaves out by a line `...`."""
    before, _, after = printed.partition("\n...\n")
    if not after:
        return said
    lines = said.splitlines()
    return "\n".join([*lines[: before.count("\n") + 1], "...", *lines[-len(after.splitlines()) :]])
