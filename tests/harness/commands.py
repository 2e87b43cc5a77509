"""Commands of `semblance`, run in this process."""

from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]
