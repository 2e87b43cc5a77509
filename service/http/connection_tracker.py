"""Who is connected, by address, and who of them waits for no answer: for room when there are too many."""

import logging
import os
import resource
import sys
from ipaddress import IPv6Address, ip_network
from typing import Generic, Protocol, TypeVar

from service.observe.logs import ThrottledWarning

log = logging.getLogger(__name__)
_IPV6_CLIENT = 64  # bits of the prefix: a client usually has the whole network of 2^64 addresses
_LEAST_SPARE = 16  # files that the process may open besides: Redis, models that are reloaded, /proc
_EACH_BYTES = 16_384  # of memory, that an idle connection takes
_MADE_ROOM = "connections that wait for no answer are closed: there are as many as this process may have"


class TrackedConnection(Protocol):
    """A connection that the tracker may close while it is idle."""

    def leave(self) -> None:
        """Close it, while it waits for no answer."""


C = TypeVar("C", bound=TrackedConnection)


class ConnectionTracker(Generic[C]):
    """The connections of one process. One is idle until a whole request has arrived, and after its answer."""

    def __init__(self) -> None:
        """Start without a connection."""
        self.most = sys.maxsize  # beyond it idle ones are closed
        self._address: dict[C, str] = {}
        self._number: dict[str, int] = {}  # of each address
        self._idle: dict[str, dict[C, None]] = {}  # of each address, the longest idle first
        self._made_room = ThrottledWarning(log, _MADE_ROOM)
        self.waiting = 0  # connections whose request has arrived and is not answered

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._address)

    def add(self, connection: C, address: str) -> None:
        """Add a connection, which is idle; if there are too many, another one leaves.

        It is the longest idle one of the address that has most connections, of those that have an idle one.
        """
        self._address[connection] = address
        self._number[address] = self._number.get(address, 0) + 1
        self._idle.setdefault(address, {})[connection] = None
        if len(self._address) > self.most:
            crowded = max(self._idle, key=self._number.__getitem__)
            longest = next(iter(self._idle[crowded]))
            self._made_room.note(connections=len(self._address), address=crowded, of_it=self._number[crowded])
            self.remove(longest)
            longest.leave()

    def remove(self, connection: C) -> None:
        """Forget a connection; no effect the second time."""
        if connection in self._address:
            self.busy(connection)
            self.waiting -= 1
            address = self._address.pop(connection)
            self._number[address] -= 1
            if not self._number[address]:
                del self._number[address]

    def is_busy(self, connection: C) -> bool:
        """Whether its request has arrived and is not answered."""
        address = self._address.get(connection)
        return address is not None and connection not in self._idle.get(address, {})

    def busy(self, connection: C) -> None:
        """Its request has arrived."""
        address = self._address.get(connection)
        if address is not None and connection in (idle := self._idle.get(address, {})):
            self.waiting += 1
            del idle[connection]
            if not idle:
                del self._idle[address]

    def idle(self, connection: C) -> None:
        """Its request is answered."""
        address = self._address.get(connection)
        if address is not None and connection not in (idle := self._idle.setdefault(address, {})):
            self.waiting -= 1
            idle[connection] = None


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
