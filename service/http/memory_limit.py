"""What callers make this process hold, in bytes and by address: heads, bodies, answers that are not read."""

import logging
from typing import Protocol

from service.errors import Overloaded
from service.observe.logs import ThrottledWarning

log = logging.getLogger(__name__)


class Holder(Protocol):
    """A connection that holds memory for its request."""

    address: str  # of the client

    @property
    def stalled(self) -> bool:
        """Whether it waits for its client, not the client for an answer."""

    def give_up(self, error: Overloaded) -> None:
        """End its request, so that nothing of it is held; the client is told the error where that is possible."""


class MemoryLimiter:
    """All bytes that are held.

    Beyond the limit, holders of the address with the most bytes are given up, so that one caller cannot take the room
    of others: the oldest one that is stalled, or else the newest, so that those before it are answered.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` is in bytes."""
        self.most = most
        self.bytes = 0
        self._of: dict[str, dict[Holder, int]] = {}  # the oldest first
        self._bytes_of: dict[str, int] = {}
        self._gave_up = ThrottledWarning(log, "callers are given up: what they make this process hold is too much")

    def hold(self, holder: Holder, size: int) -> None:
        """Hold `size` bytes of a holder in all from now on, and give up others, or itself, where all are too many."""
        self._set(holder, size)
        while self.bytes > self.most:
            crowded = max(self._bytes_of, key=self._bytes_of.__getitem__)
            holders = self._of[crowded]
            chosen = next((each for each in holders if each.stalled), None) or next(reversed(holders))
            self._gave_up.note(bytes=self.bytes, address=crowded, of_it=self._bytes_of[crowded])
            self._set(chosen, 0)
            chosen.give_up(Overloaded(f"requests and answers of {self.most} bytes are held", limit=self.most))

    def _set(self, holder: Holder, size: int) -> None:
        address = holder.address
        holders = self._of.setdefault(address, {})
        more = size - holders.get(holder, 0)
        self.bytes += more
        self._bytes_of[address] = self._bytes_of.get(address, 0) + more
        if size:
            holders[holder] = size
        else:
            holders.pop(holder, None)
            if not holders:
                del self._of[address], self._bytes_of[address]
