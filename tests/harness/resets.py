"""A TCP proxy that resets connections in the middle of an answer."""

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a reset


class Resets:
    """What the proxy does to answers now."""

    after = 0  # reset each connection after 1 to so many more bytes of answers; 0: never


@asynccontextmanager
async def resetting(target: int, resets: Resets, rng: random.Random) -> AsyncIterator[int]:
    """Run the proxy in this event loop until the block ends; yields its port, of loopback.

    Args:
        target: the port that is asked.
        resets: read for each part of an answer.
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
                    await _answer(upstream, writer, resets, rng)
                finally:
                    asking.cancel()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
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
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, resets: Resets, rng: random.Random
) -> None:
    left = 0  # bytes until the reset, where there is to be one
    while data := await reader.read(_CHUNK):
        left = (left or rng.randint(1, resets.after)) if resets.after else 0
        writer.write(data[:left] if left else data)
        await writer.drain()
        if left and len(data) >= left:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        left = max(0, left - len(data))
