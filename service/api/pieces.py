"""Large JSON in pieces: each is parsed in about a millisecond, with turns for other requests in between.

Why not a library: the parsers that we know hold the interpreter's lock for the whole body, in a thread too. Here a body
is cut at commas outside its strings. Each piece is completed with the brackets that are open at its begin and end,
parsed by pydantic, and joined to the values so far. Values and keys are counted on the way, so that a body over its
limits is refused before much of it is in memory.
"""

import secrets
from collections.abc import Generator
from typing import Any, NamedTuple

from pydantic_core import from_json

PIECE_BYTES = 32_768
_DEEPEST = 100  # brackets open at a time; what any request needs is 4
_MOST_QUOTES = 4 * _DEEPEST + 8  # in a row without a comma: two texts for each bracket that is open
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_TWICE = "the same key twice"
_CLOSING = {ord("["): b"]", ord("{"): b"}"}
_OPENED_BY = {ord("]"): ord("["), ord("}"): ord("{")}

Container = dict[str, Any] | list[Any]


class Most(NamedTuple):
    """What a body may have."""

    values: int
    keys: int


class TooMuch(Exception):
    """More values or keys than a body may have."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit} {what}")
        self.what = what
        self.limit = limit


class Broken(ValueError):
    """Not JSON; has the piece that is not, completed with brackets."""

    def __init__(self, reason: str, text: bytes = b"") -> None:
        super().__init__(reason)
        self.text = text


def read_in_pieces(body: bytes, most: Most, size: int = PIECE_BYTES) -> Generator[None, None, Any]:
    """Parse JSON; yields between pieces, and returns the value as `pydantic_core.from_json` does.

    Args:
        body: the JSON.
        most: values and keys that it may have.
        size: of a piece, in bytes; a piece with a longer string is longer.

    Raises:
        Broken: it is not JSON, or nested too deep.
        TooMuch: it has more values or keys.
    """
    joined = _Joined()
    values = keys = at = 0
    while True:
        cut = _cut(body, at, size)
        values += cut.outside.count(b",") + cut.outside.count(b"[") + cut.outside.count(b"{")
        keys += cut.outside.count(b":")
        if values > most.values:
            raise TooMuch("values", most.values)
        if keys > most.keys:
            raise TooMuch("fields", most.keys)
        piece = body[at : cut.end]
        if cut.end == len(body):
            return joined.end(piece)
        joined.add(piece, cut.outside)
        at = cut.end + 1
        yield


class _Cut(NamedTuple):
    end: int  # position of the comma, or the end of the body
    outside: bytes  # the piece without its strings


def _cut(body: bytes, start: int, size: int) -> _Cut:
    """The piece from `start`, which is outside all strings, to a comma that is outside too."""
    while True:
        piece = body[start : start + size]
        last = start + len(piece) == len(body)
        if b"\\" in piece:  # same length, without escaped quotes
            piece = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__")
            if piece.endswith(b"\\") and not last:  # the escaped character is in the next piece
                piece = piece[:-1]
        parts = piece.split(b'"')  # alternately outside and inside strings
        if last:
            return _Cut(len(body), b"".join(parts[::2]))
        after = 0
        for i in range(len(parts) - 1, -1, -1):
            if i % 2 == 0 and (comma := parts[i].rfind(b",")) >= 0:
                end = start + len(piece) - after - len(parts[i]) + comma
                return _Cut(end, b"".join(parts[0:i:2]) + parts[i][: comma + 1])
            after += len(parts[i]) + 1
        if len(parts) > _MOST_QUOTES:
            raise Broken("a comma is missing")
        size *= 2


class _Joined:
    """The values parsed so far, and the containers that are still open."""

    def __init__(self) -> None:
        self._stack: list[int] = []  # the brackets that are open
        self._open: list[Container] = []  # their values
        # Keys that the body cannot have: of the open containers in a piece, and of the place where it ends.
        self._token, self._mark = secrets.token_hex(8), secrets.token_hex(8)

    def add(self, piece: bytes, outside: bytes) -> None:
        """Join a piece that is followed by a comma."""
        before = self._stack
        self._stack, kept = _walk(before, outside.translate(None, _NOT_BRACKETS))
        if not self._stack:
            raise Broken("a comma after the end")
        mark = b'"%s"' % self._mark.encode()
        mark += b":0" if self._stack[-1] == ord("{") else b""
        closing = b"".join([_CLOSING[bracket] for bracket in reversed(self._stack)])
        found = self._parse(before, piece, b"," + mark + closing)
        place: Any = self._join(found, kept) if before else found
        del self._open[kept:]
        # A container that this piece opens and leaves open is the last value of its parent.
        for depth in range(kept, len(self._stack)):
            if depth:
                last = list(place.values())[-1:] if isinstance(place, dict) else place[-1:]
                place = last[0] if last else None
            if not isinstance(place, dict | list):
                raise Broken(_TWICE)
            self._open.append(place)
        # The mark is in the innermost open container, unless a key came twice.
        innermost = self._open[-1]
        marked = innermost.pop(self._mark, None) == 0 if isinstance(innermost, dict) else innermost[-1:] == [self._mark]
        if not marked:
            raise Broken(_TWICE)
        if isinstance(innermost, list):
            innermost.pop()

    def end(self, piece: bytes) -> Any:
        """Join the last piece; the whole value."""
        found = self._parse(self._stack, piece, b"")
        if not self._stack:
            return found
        self._join(found, 0)
        return self._open[0]

    def _parse(self, before: list[int], piece: bytes, closing: bytes) -> Any:
        if before and piece.lstrip()[:1] in (b"]", b"}", b""):
            raise Broken("a comma before the end of a list or object")
        opening = b"".join([b'{"%s":' % self._token.encode() if b == ord("{") else b"[" for b in before[:-1]])
        text = opening + (bytes(before[-1:]) + piece + closing)
        try:
            return from_json(text)
        except ValueError as error:
            raise Broken(str(error).partition(" at line ")[0], text) from None

    def _join(self, found: Any, kept: int) -> Any:
        """Add the values of a piece to the open containers; returns its part of the innermost of the `kept` ones."""
        part = at_kept = found
        for depth, whole in enumerate(self._open):
            if depth < kept:
                at_kept = part
            inner = None
            if depth + 1 < len(self._open):
                inner = part.pop(self._token) if isinstance(part, dict) else part.pop(0)
            if isinstance(whole, dict):
                whole.update(part)
            else:
                whole.extend(part)
            part = inner
        return at_kept


def _walk(stack: list[int], brackets: bytes) -> tuple[list[int], int]:
    """The stack after these brackets, and how many of its brackets stayed open."""
    now = list(stack)
    kept = len(now)
    for bracket in brackets:
        if bracket in _CLOSING:
            now.append(bracket)
            if len(now) > _DEEPEST:
                raise Broken("brackets are nested too deep")
        else:
            if not now or now.pop() != _OPENED_BY[bracket]:
                raise Broken("brackets that do not fit")
            kept = min(kept, len(now))
    return now, kept
