"""uvicorn's server, with a shutdown that fails no request.

After SIGTERM:

1. *Draining*, for `SEMBLANCE_DRAIN_SECONDS`: readiness says "shutting down", so that load balancers stop sending;
   requests are still answered, with `Connection: close`.
2. The server lets nobody else connect, accepts all connected clients, and closes the listening socket. Idle
   connections stay open for some seconds, because a client may be sending a request; it is answered, and its
   connection closed.
3. Requests under way are finished. Steps 2 and 3 take at most `SEMBLANCE_SHUTDOWN_GRACE_SECONDS`; who is not answered
   by then gets a 503 (`middleware.Errors`).

SIGINT begins with step 3; a second SIGINT ends the process at once.
"""

import asyncio
import logging
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, cast

import uvicorn
from prometheus_client import Histogram

from service.http.connection import CLOSE, Connection
from service.http.connection_tracker import address_of, client_of, most_connections
from service.http.listening import HANDSHAKE_SECONDS, admit_no_more
from service.observe.logs import fields
from service.settings import Settings

if TYPE_CHECKING:
    from service.http.application import Application


log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.05
# Connections accepted in one iteration of the event loop, beside uvloop's own. Fewer if other workers accept too, so
# that the first worker to wake does not take all of them.
_MOST_AT_ONCE, _MOST_OF_SHARED = 256, 4
# Connections of one address that begin in one iteration: a newcomer does not wait until all heads of one address are
# read.
_MOST_OF_ADDRESS = 3
# More of both where iterations are long, which are a few a second under load: so many for each second of the last one,
# and at most `_MOST_BY_TIME`. Otherwise the thousands of a proxy would wait for half a minute.
_A_SECOND, _MOST_BY_TIME = 250, 64
_BACKLOG = 65_536  # more than the backlog of a listening socket
_PATIENCE_SECONDS = 5.0  # for idle connections, in step 2
_LAG_LOOK_SECONDS = 0.02  # work that takes longer is always noticed, shorter work sometimes


class LoopLag:
    """Schedules a callback again and again, and records how late each is called."""

    def __init__(self, lags: Histogram) -> None:
        """Prepare; `lags` gets seconds, of which up to 0.001 is the resolution of libuv's timers."""
        self._lags = lags
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure the running loop."""
        self._loop = asyncio.get_running_loop()
        self._due()

    def stop(self) -> None:
        """Cancel the next measurement of the lag."""
        if self._next is not None:
            self._next.cancel()

    def _due(self) -> None:
        self._at = self._loop.time() + _LAG_LOOK_SECONDS
        self._next = self._loop.call_at(self._at, self._look)

    def _look(self) -> None:
        self._lags.observe(max(0.0, self._loop.time() - self._at))
        self._due()


class Server(uvicorn.Server):
    """The HTTP server of one process."""

    def __init__(self, app: "Application", settings: Settings) -> None:
        self._connections = app.scoring.connections
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=partial(  # type: ignore[arg-type]  # it is only called
                    Connection, settings=settings, tracker=self._connections, held=app.scoring.held, made=self._made
                ),
                timeout_keep_alive=settings.keep_alive_seconds,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )
        self._app = app
        self._drain_seconds = settings.drain_seconds
        self._grace_seconds = float(settings.shutdown_grace_seconds)
        self._leave_at: float | None = None  # when draining ends
        self._closing = False  # each answer closes its connection
        self._hurried = False
        self._listening: list[socket.socket] = []
        self._most_at_once = _MOST_AT_ONCE
        self._accepting = False  # in this turn of the event loop
        self._asked_at = 0.0  # when that turn was asked for, in the one before
        self._accepted: dict[str, deque[socket.socket]] = {}  # by address: those that have not begun
        self._beginning: set[asyncio.Task[object]] = set()
        self._signals: list[int] = []
        self._lag = LoopLag(app.service.telemetry.loop_lag)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and keep the listening sockets to accept from."""
        await super().startup(sockets)
        self._lag.start()
        self._listening = [listening.dup() for server in self.servers for listening in server.sockets]
        self._connections.most = most_connections(self._app.scoring.held.most)
        for listening in self._listening:
            listening.setblocking(False)
        if sockets:
            self._most_at_once = _MOST_OF_SHARED

    def _made(self) -> None:
        """A connection was accepted: accept more in the next iteration of the event loop.

        uvloop accepts one in each iteration, so with long iterations many clients would wait long.
        """
        if not self._accepting and self._listening:
            self._accept_soon()

    def _accept_soon(self) -> None:
        self._accepting = True
        self._asked_at = monotonic()
        asyncio.get_running_loop().call_soon(self._accept_more)

    def _log_started_message(self, listeners: Sequence[socket.SocketType]) -> None:
        address = address_of(self.config.host, listeners[0].getsockname()[1])
        log.info("serving", extra=fields(address=address, docs=f"{address}/docs"))

    def _accept_more(self) -> None:
        self._accepting = False
        by_time = min(round((monotonic() - self._asked_at) * _A_SECOND), _MOST_BY_TIME)
        self._accept(max(self._most_at_once, by_time))
        self._begin(max(_MOST_OF_ADDRESS, by_time))
        if self._accepted:
            self._accept_soon()

    def _accept(self, most: int) -> None:
        taken = len(self._connections) + len(self._beginning) + sum(map(len, self._accepted.values()))
        most = min(most, self._connections.most - taken)  # beyond that, uvloop one by one
        for listening in self._listening:
            with suppress(OSError):  # there is none, it is closed, or there are too many: left to uvloop
                for _ in range(most):
                    connected, address = listening.accept()
                    self._accepted.setdefault(client_of(address[0]), deque()).append(connected)

    def _begin(self, most: int) -> None:
        """Begin `most` accepted connections of each address."""
        loop = asyncio.get_running_loop()
        for address, waiting in list(self._accepted.items()):
            for _ in range(min(most, len(waiting))):
                task = loop.create_task(loop.connect_accepted_socket(self._new_connection, waiting.popleft()))
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)
            if not waiting:
                del self._accepted[address]

    def _new_connection(self) -> Connection:
        make = cast(Callable[..., Connection], self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def drain(self) -> None:
        """Be unready, and close each connection after its next answer."""
        self._app.service.shutting_down = True
        self._closing = True
        self._close_after_answers()

    def leave(self, *, hurried: bool = False) -> None:
        """Stop, after requests under way; `hurried` closes idle connections at once."""
        self._closing = self.should_exit = True
        self._close_after_answers()
        self._hurried |= hurried

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop. A second one skips draining; a second SIGINT also skips waiting."""
        # Not added to uvicorn's list, which would end the process by the signal instead of exit code 0.
        again = bool(self._signals)
        self._signals.append(sig)
        self.force_exit |= sig == signal.SIGINT and self._signals.count(sig) > 1
        self.drain()
        if again or sig == signal.SIGINT or not self._drain_seconds:
            self.leave(hurried=sig == signal.SIGINT)
        else:
            self._leave_at = monotonic() + self._drain_seconds
            log.info("draining", extra=fields(seconds=self._drain_seconds))

    async def on_tick(self, counter: int) -> bool:
        """Check, ten times a second, whether to stop."""
        if self._leave_at is not None and self._leave_at <= monotonic():
            self.leave()
        stop = await super().on_tick(counter)
        if self._closing:
            self._close_after_answers()  # uvicorn has replaced the list
        return stop

    def _close_after_answers(self) -> None:
        headers = self.server_state.default_headers
        if CLOSE not in headers:
            headers.append(CLOSE)  # also in the list of requests under way

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Do steps 2 and 3."""
        began = monotonic()
        if not sockets:  # other workers may go on with a shared one; the supervisor does it when all leave
            for listening in self._listening:
                admit_no_more(listening)
        await asyncio.sleep(HANDSHAKE_SECONDS)
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        await asyncio.sleep(0)  # uvloop closes its sockets in the next iteration
        self._accept(_BACKLOG)
        for listening in self._listening:
            listening.close()
        self._listening.clear()
        self._begin(_BACKLOG)
        if self._beginning:
            await asyncio.wait(self._beginning)
        patience = min(self._grace_seconds, _PATIENCE_SECONDS, self.config.timeout_keep_alive)
        while self.server_state.connections and not self._hurried and monotonic() - began < patience:
            await asyncio.sleep(_LOOK_SECONDS)
        self.config.timeout_graceful_shutdown = max(0.0, self._grace_seconds + began - monotonic())  # type: ignore[assignment]
        await super().shutdown(sockets)
        self._lag.stop()
