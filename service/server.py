"""uvicorn's server, which leaves without failing a request.

What SIGTERM begins, in this order:

1. *Draining*, for `SEMBLANCE_DRAIN_SECONDS`: readiness says "shutting down", so that a balancer looks elsewhere;
   whatever still comes is answered, each answer with `Connection: close`.
2. The listening socket closes. Connections between two requests stay for some seconds, because a client may be sending
   on one of them at this moment; a request that comes is answered, and closes it.
3. What is still under way is finished. Steps 2 and 3 take `SEMBLANCE_SHUTDOWN_GRACE_SECONDS` at most.

SIGINT, which is somebody waiting at a keyboard, goes to step 3 at once; a second one waits for nothing.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, cast

import uvicorn

from service.connection import CLOSE, Connection
from service.logs import fields
from service.settings import Settings

if TYPE_CHECKING:
    from service.edge import Edge

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05
# Connections accepted in one turn of the event loop, beside uvloop's own; fewer where other workers accept, too, or the
# first to wake would have all of a crowd.
_MOST_AT_ONCE, _MOST_OF_SHARED = 64, 4
_PATIENCE_SECONDS = 5.0  # with connections between two requests, when it stops


class _Tasks(set[asyncio.Task[None]]):
    """uvicorn's tasks, one for each request; its own leaves a finished one in until the event loop's next turn.

    In a turn that brought more requests than are let in, every one of them would still find too many.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    def add(self, task: asyncio.Task[None]) -> None:
        self.begun += 1
        super().add(task)


class Server(uvicorn.Server):
    """One process's server."""

    def __init__(self, app: "Edge", settings: Settings) -> None:
        """Prepare to serve.

        Args:
            app: what answers; told how many requests are pending, and when to be unready.
            settings: of the service.
        """
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=partial(Connection, seconds=settings.request_timeout, made=self._made),  # type: ignore[arg-type]  # it is only called
                timeout_keep_alive=settings.keep_alive_seconds,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self.server_state.tasks = tasks = _Tasks()
        app.pending = lambda: tasks.begun - app.ended
        self._app = app
        self._drain_seconds = settings.drain_seconds
        self._grace_seconds = float(settings.shutdown_grace_seconds)
        self._leave_at: float | None = None  # when draining ends
        self._closing = False  # each answer closes its connection
        self._hurried = False
        self._listening: list[socket.socket] = []
        self._most_at_once = _MOST_AT_ONCE
        self._accepting = False  # in this turn of the event loop
        self._accepted: set[asyncio.Task[object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._listening = [listening.dup() for server in self.servers for listening in server.sockets]
        for listening in self._listening:
            listening.setblocking(False)
        if sockets:
            self._most_at_once = _MOST_OF_SHARED

    def _made(self) -> None:
        """A connection was accepted: are there more?

        uvloop accepts one in each of its turns, which take long when many requests are answered in each: who
        connects together with a hundred others would wait for a hundred of them.
        """
        if not self._accepting and self._listening:
            self._accepting = True
            asyncio.get_running_loop().call_soon(self._accept_more)

    def _accept_more(self) -> None:
        self._accepting = False
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            with suppress(OSError):  # there is no more, or it has left, or there are too many: uvloop's turn will tell
                for _ in range(self._most_at_once):
                    connected, _ = listening.accept()
                    task = loop.create_task(loop.connect_accepted_socket(self._new_connection, connected))
                    self._accepted.add(task)
                    task.add_done_callback(self._accepted.discard)

    def _new_connection(self) -> Connection:
        make = cast(Callable[..., Connection], self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def drain(self) -> None:
        """Be unready from now on, and answer as before, each connection for the last time."""
        self._app.service.shutting_down = True
        self._closing = True
        self._close_after_answers()

    def leave(self, *, hurried: bool = False) -> None:
        """Stop; what is under way is finished.

        Args:
            hurried: close connections that wait for their next request, too.
        """
        self._closing = self.should_exit = True
        self._close_after_answers()
        self._hurried |= hurried

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop; a second one does not drain, a second SIGINT does not even wait."""
        again = bool(self._captured_signals)
        self._captured_signals.append(sig)
        self.force_exit |= sig == signal.SIGINT and self._captured_signals.count(sig) > 1
        self.drain()
        if again or sig == signal.SIGINT or not self._drain_seconds:
            self.leave(hurried=sig == signal.SIGINT)
        else:
            self._leave_at = monotonic() + self._drain_seconds
            log.info("draining", extra=fields(seconds=self._drain_seconds))

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: is it time to stop?"""
        if self._leave_at is not None and self._leave_at <= monotonic():
            self.leave()
        stop = await super().on_tick(counter)
        if self._closing:
            self._close_after_answers()  # uvicorn has made the list anew
        return stop

    def _close_after_answers(self) -> None:
        headers = self.server_state.default_headers
        if CLOSE not in headers:
            headers.append(CLOSE)  # the list that requests under way hold too

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Steps 2 and 3."""
        began = monotonic()
        for server in self.servers:
            server.close()
        for listening in (*(sockets or ()), *self._listening):
            listening.close()
        self._listening.clear()
        patience = min(self._grace_seconds, _PATIENCE_SECONDS, self.config.timeout_keep_alive)
        while self.server_state.connections and not self._hurried and monotonic() - began < patience:
            await asyncio.sleep(_LOOK_SECONDS)
        # uvicorn takes whole seconds in its annotations and any in its code.
        self.config.timeout_graceful_shutdown = max(0.0, self._grace_seconds + began - monotonic())  # type: ignore[assignment]
        await super().shutdown(sockets)
