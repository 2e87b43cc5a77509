"""A TCP proxy that delays answers, or resets the connection in the middle of one."""

import asyncio
import multiprocessing
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Self

from benchmarks.servers import free_port

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a reset
_START_SECONDS = 60.0
_CONTEXT = multiprocessing.get_context("spawn")


class Faults:
    """What the proxy does to answers now; shared with its process."""

    def __init__(self) -> None:
        """No fault."""
        self._delay: Synchronized[float] = _CONTEXT.Value("d", 0.0)
        self._cut: Synchronized[int] = _CONTEXT.Value("i", 0)

    @property
    def delay(self) -> float:
        """Seconds by which each part of an answer is late."""
        return self._delay.value

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._delay.value = seconds

    @property
    def cut(self) -> int:
        """Reset each connection after 1 to so many more bytes of answers; 0: never."""
        return self._cut.value

    @cut.setter
    def cut(self, most: int) -> None:
        self._cut.value = most


class Proxy:
    """The proxy in its own process, which a busy load does not delay; runs until the block ends."""

    def __init__(self, target: int, seed: int = 0) -> None:
        """Store the settings.

        Args:
            target: the port that it forwards to.
            seed: of the positions where answers are cut.
        """
        self.port = free_port()
        self.faults = Faults()
        self._ready = _CONTEXT.Event()
        self._process = _CONTEXT.Process(
            target=_run, args=(self.port, target, self.faults, seed, self._ready), daemon=True
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


@asynccontextmanager
async def standing_before(target: int, port: int, faults: Faults, rng: random.Random) -> AsyncIterator[int]:
    """Run the proxy in this event loop until the block ends; yields its port.

    Args:
        target: the port that is asked.
        port: where to listen, on loopback; 0: where there is room.
        faults: read for each part of an answer.
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
                    await _answer(upstream, writer, faults, rng)
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
        await asyncio.sleep(0)  # transports close in the loop's next iteration


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()  # the client has left: drop its upstream connection


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, faults: Faults, rng: random.Random
) -> None:
    left: int | None = None  # bytes until the reset, once there is to be one
    while data := await reader.read(_CHUNK):
        if faults.delay:
            await asyncio.sleep(faults.delay)
        if not faults.cut:
            left = None
        elif left is None:
            left = rng.randint(1, faults.cut)
        if left is not None and len(data) >= left:
            writer.write(data[:left])
            await writer.drain()
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        if left is not None:
            left -= len(data)
        writer.write(data)
        await writer.drain()


def _run(port: int, target: int, faults: Faults, seed: int, ready: Event) -> None:
    async def serve() -> None:
        async with standing_before(target, port, faults, random.Random(seed)):
            ready.set()
            await asyncio.Event().wait()

    asyncio.run(serve())
