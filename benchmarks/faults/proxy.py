"""A TCP proxy in a process of its own that hands answers on late, or resets the connection in the middle of one."""

import asyncio
import multiprocessing
import random
import socket
import struct
from contextlib import suppress
from multiprocessing.sharedctypes import Synchronized
from types import TracebackType
from typing import Self

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a reset


class Proxy:
    """Stands before a port of loopback until the block ends; does nothing but hand on until told otherwise."""

    def __init__(self, target: int, seed: int = 0) -> None:
        """Prepare.

        Args:
            target: the port it stands before.
            seed: of the places where answers are cut.
        """
        context = multiprocessing.get_context("spawn")
        self._delay = context.Value("d", 0.0)
        self._cut = context.Value("i", 0)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        ready = context.Event()
        self._ready = ready
        self._process = context.Process(
            target=_run, args=(self.port, target, self._delay, self._cut, seed, ready), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        if not self._ready.wait(30):
            raise RuntimeError("the proxy does not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()

    def delay(self, seconds: float) -> None:
        """Hand on each part of an answer so much later."""
        self._delay.value = seconds

    def cut(self, most: int) -> None:
        """Reset each connection after 1 to so many bytes of answers; 0: none."""
        self._cut.value = most


def _run(port: int, target: int, delay: "Synchronized[float]", cut: "Synchronized[int]", seed: int, ready) -> None:  # type: ignore[no-untyped-def]
    asyncio.run(_serve(port, target, delay, cut, random.Random(seed), ready))


async def _serve(port, target, delay, cut, rng, ready) -> None:  # type: ignore[no-untyped-def]
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, sender = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.transport.abort()
            return
        asking = asyncio.create_task(_hand_on(reader, sender))
        with suppress(OSError):
            await _answers(upstream, writer, delay, cut, rng)
        asking.cancel()
        sender.transport.abort()
        writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    ready.set()
    await server.serve_forever()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()  # who asked has left


async def _answers(  # type: ignore[no-untyped-def]
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay, cut, rng: random.Random
) -> None:
    left = 0  # bytes until the reset, once there is to be one
    while data := await reader.read(_CHUNK):
        if delay.value:
            await asyncio.sleep(delay.value)
        if cut.value and not left:
            left = rng.randint(1, cut.value)
        if cut.value and len(data) >= left:
            writer.write(data[:left])
            await asyncio.sleep(0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        left -= len(data) if cut.value else left
        writer.write(data)
        await writer.drain()
