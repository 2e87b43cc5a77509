"""What requests make this process hold: bodies with their texts, and unread answers; bounded in bytes."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from service.errors import Overloaded
from service.observe.logs import ThrottledWarning

_gave_up = ThrottledWarning(
    logging.getLogger(__name__), "callers are given up: what they make this process hold is too much"
)


@dataclass(eq=False, slots=True)
class Held:
    """What one request holds."""

    caller: str
    end: Callable[[Overloaded], None]  # ends the request
    size: int = 0
    stalled: bool = True  # whether it waits for its client, not the client for an answer


class BufferedBytes:
    """All bytes that are held.

    Beyond the limit, requests of the caller with the most bytes are ended, so that nobody takes the room of others: the
    oldest one that is stalled, or else the newest, so that those before it are answered.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` is in bytes."""
        self.most = most
        self.bytes = 0
        self._of: dict[str, dict[Held, None]] = {}  # each caller's requests, the oldest first

    def hold(self, request: Held, size: int) -> None:
        """Hold `size` bytes of a request in all from now on, and end others, or itself, where all are too many."""
        self._set(request, size)
        while self.bytes > self.most:
            crowded = max(self._of, key=lambda caller: sum(each.size for each in self._of[caller]))
            requests = self._of[crowded]
            chosen = next((each for each in requests if each.stalled), None) or next(reversed(requests))
            _gave_up.note(bytes=self.bytes, caller=crowded)
            self._set(chosen, 0)
            chosen.end(Overloaded(f"requests and answers of {self.most} bytes are held", limit=self.most))

    def _set(self, request: Held, size: int) -> None:
        self.bytes += size - request.size
        request.size = size
        if size:
            self._of.setdefault(request.caller, {})[request] = None
        elif request.caller in self._of:
            self._of[request.caller].pop(request, None)
            if not self._of[request.caller]:
                del self._of[request.caller]
