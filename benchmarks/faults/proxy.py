"""A TCP proxy that hands answers on late, or resets the connection in the middle of one."""

import asyncio
import multiprocessing
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Protocol, Self

from benchmarks.servers import free_port

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a reset
_START_SECONDS = 60.0


class Mischief(Protocol):
    """What is done to answers at this moment."""

    @property
    def delay(self) -> float:
        """Seconds by which each part of an answer is late."""

    @property
    def cut(self) -> int:
        """Reset each connection after 1 to so many more bytes of answers; 0: none."""


@dataclass
class Whims:
    """Mischief in this process."""

    delay: float = 0.0
    cut: int = 0


class Proxy:
    """In a process of its own, before a port of loopback, until the block ends; hands on until told otherwise."""

    def __init__(self, target: int, seed: int = 0) -> None:
        """Prepare.

        Args:
            target: the port it stands before.
            seed: of the places where answers are cut.
        """
        context = multiprocessing.get_context("spawn")
        self.port = free_port()
        self._shared = _SharedWhims(context.Value("d", 0.0), context.Value("i", 0))
        self._ready = context.Event()
        self._process = context.Process(
            target=_run, args=(self.port, target, self._shared, seed, self._ready), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        if not self._ready.wait(_START_SECONDS):
            raise RuntimeError("the proxy does not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()

    def delay(self, seconds: float) -> None:
        """Hand on each part of an answer so much later."""
        self._shared.delay_value.value = seconds

    def cut(self, most: int) -> None:
        """Reset each connection after 1 to so many bytes of answers; 0: none."""
        self._shared.cut_value.value = most


@asynccontextmanager
async def standing_before(target: int, port: int, mischief: Mischief, rng: random.Random) -> AsyncIterator[int]:
    """Serve as the proxy in this event loop until the block ends; yields its port.

    Args:
        target: the port that is asked.
        port: where to listen, on loopback; 0: where there is room.
        mischief: looked at for each part of an answer.
        rng: chooses where answers are cut.
    """

    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio makes one for each connection"
        connections.add(task)
        task.add_done_callback(connections.discard)
        with suppress(OSError, asyncio.CancelledError), closing(writer.transport):
            upstream, sender = await asyncio.open_connection("127.0.0.1", target)
            with closing(sender.transport):
                asking = asyncio.create_task(_hand_on(reader, sender))
                try:
                    await _answer(upstream, writer, mischief, rng)
                finally:
                    asking.cancel()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
        await asyncio.sleep(0)  # transports close in the loop's next turn


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()  # who asked has left, and with it who answers


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mischief: Mischief, rng: random.Random
) -> None:
    left: int | None = None  # bytes until the reset, once there is to be one
    while data := await reader.read(_CHUNK):
        if mischief.delay:
            await asyncio.sleep(mischief.delay)
        if not mischief.cut:
            left = None
        elif left is None:
            left = rng.randint(1, mischief.cut)
        if left is not None and len(data) >= left:
            writer.write(data[:left])
            await writer.drain()
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        if left is not None:
            left -= len(data)
        writer.write(data)
        await writer.drain()


@dataclass
class _SharedWhims:
    """Mischief told from another process."""

    delay_value: "Synchronized[float]"
    cut_value: "Synchronized[int]"

    @property
    def delay(self) -> float:
        return self.delay_value.value

    @property
    def cut(self) -> int:
        return self.cut_value.value


def _run(port: int, target: int, shared: _SharedWhims, seed: int, ready: Event) -> None:
    async def serve() -> None:
        async with standing_before(target, port, shared, random.Random(seed)):
            ready.set()
            await asyncio.Event().wait()

    asyncio.run(serve())
