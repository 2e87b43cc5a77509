"""Who is connected, by address, who of them waits for no answer, and what they make this process hold.

Where there are too many connections, idle ones make room; bytes held are of heads, bodies, and answers that are not
read.
"""

import asyncio
import logging
import os
import resource
import sys
from collections.abc import Callable
from ipaddress import IPv6Address, ip_network
from typing import Protocol

from service.errors import Overloaded
from service.observe.logs import ThrottledWarning

log = logging.getLogger(__name__)

_IPV6_CLIENT = 64  # bits of the prefix: a client usually has the whole network of 2^64 addresses
_LEAST_SPARE = 16  # files that the process may open besides: Redis, models that are reloaded, /proc
_EACH_BYTES = 16_384  # of memory, that an idle connection takes
_MADE_ROOM = "connections that wait for no answer are closed: there are as many as this process may have"


def address_of(host: str, port: int) -> str:
    """The URL to open in a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class ClientLeft(Exception):
    """The client has closed its connection before the answer."""


class Alarm:
    """Calls a function some seconds after its start.

    It knows the function only while it runs: a connection that it referred to for ever would wait for the garbage
    collector, with its last body and answer.
    """

    __slots__ = ("_timer",)

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float, call: Callable[[], None]) -> bool:
        """Start it, unless it is running; whether it was not."""
        if self._timer is not None:
            return False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring, call)
        return True

    def stop(self) -> None:
        """Call nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self, call: Callable[[], None]) -> None:
        self._timer = None
        call()


class TrackedConnection(Protocol):
    """A connection, and what it holds for its request."""

    address: str  # of the client

    @property
    def stalled(self) -> bool:
        """Whether it waits for its client, not the client for an answer."""

    def leave(self) -> None:
        """Close it, while it waits for no answer."""

    def give_up(self, error: Overloaded) -> None:
        """End its request, so that nothing of it is held; the client is told the error where that is possible."""


class ConnectionTracker:
    """The connections of one process. One is idle until a whole request has arrived, and after its answer."""

    def __init__(self) -> None:
        """Start without a connection."""
        self.most = sys.maxsize  # beyond it idle ones are closed
        self._all: set[TrackedConnection] = set()
        self._number: dict[str, int] = {}  # of each address
        self._idle: dict[str, dict[TrackedConnection, None]] = {}  # of each address, the longest idle first
        self._made_room = ThrottledWarning(log, _MADE_ROOM)
        self.waiting = 0  # connections whose request has arrived and is not answered

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._all)

    def add(self, connection: TrackedConnection) -> None:
        """Add a connection, which is idle; if there are too many, another one leaves.

        It is the longest idle one of the address that has most connections, of those that have an idle one.
        """
        address = connection.address
        self._all.add(connection)
        self._number[address] = self._number.get(address, 0) + 1
        self._idle.setdefault(address, {})[connection] = None
        if len(self._all) > self.most:
            crowded = max(self._idle, key=self._number.__getitem__)
            longest = next(iter(self._idle[crowded]))
            self._made_room.note(connections=len(self._all), address=crowded, of_it=self._number[crowded])
            self.remove(longest)
            longest.leave()

    def remove(self, connection: TrackedConnection) -> None:
        """Forget a connection; no effect the second time."""
        if connection in self._all:
            self.busy(connection)
            self.waiting -= 1
            self._all.remove(connection)
            address = connection.address
            self._number[address] -= 1
            if not self._number[address]:
                del self._number[address]

    def is_busy(self, connection: TrackedConnection) -> bool:
        """Whether its request has arrived and is not answered."""
        return connection in self._all and connection not in self._idle.get(connection.address, {})

    def busy(self, connection: TrackedConnection) -> None:
        """Its request has arrived."""
        if connection in (idle := self._idle.get(connection.address, {})):
            self.waiting += 1
            del idle[connection]
            if not idle:
                del self._idle[connection.address]

    def idle(self, connection: TrackedConnection) -> None:
        """Its request is answered."""
        if self.is_busy(connection):
            self.waiting -= 1
            self._idle.setdefault(connection.address, {})[connection] = None


def most_connections(held_bytes: int) -> int:
    """How many there may be.

    As many as fit into `held_bytes`, and as many files as this process may open, less those that it has, and some to
    spare.
    """
    most = held_bytes // _EACH_BYTES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft - len(os.listdir("/proc/self/fd")) - max(_LEAST_SPARE, soft // 16))
    return max(1, most)


def client_of(address: str) -> str:
    """The client of an address: for IPv6 its network, and for IPv4 within IPv6 the IPv4 address."""
    if ":" not in address:
        return address
    try:
        if (inner := IPv6Address(address).ipv4_mapped) is not None:  # a socket of both, as with HOST=::
            return str(inner)
        return str(ip_network((address.partition("%")[0], _IPV6_CLIENT), strict=False))
    except ValueError:  # a socket's path
        return address


class MemoryLimiter:
    """All bytes that are held.

    Beyond the limit, holders of the address with the most bytes are given up, so that one caller cannot take the room
    of others: the oldest one that is stalled, or else the newest, so that those before it are answered.
    """

    def __init__(self, most: int) -> None:
        """Begin with none; `most` is in bytes."""
        self.most = most
        self.bytes = 0
        self._of: dict[str, dict[TrackedConnection, int]] = {}  # the oldest first
        self._bytes_of: dict[str, int] = {}
        log = logging.getLogger("service.http.memory_limit")  # what log lines have been named by
        self._gave_up = ThrottledWarning(log, "callers are given up: what they make this process hold is too much")

    def hold(self, holder: TrackedConnection, size: int) -> None:
        """Hold `size` bytes of a holder in all from now on, and give up others, or itself, where all are too many."""
        self._set(holder, size)
        while self.bytes > self.most:
            crowded = max(self._bytes_of, key=self._bytes_of.__getitem__)
            holders = self._of[crowded]
            chosen = next((each for each in holders if each.stalled), None) or next(reversed(holders))
            self._gave_up.note(bytes=self.bytes, address=crowded, of_it=self._bytes_of[crowded])
            self._set(chosen, 0)
            chosen.give_up(Overloaded(f"requests and answers of {self.most} bytes are held", limit=self.most))

    def _set(self, holder: TrackedConnection, size: int) -> None:
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
