"""The service inside this process, behind httpx: the same application, routes and answers, without a socket."""

import asyncio
import threading
import weakref
from pathlib import Path
from typing import Any

import httpx

from semblance.errors import CannotStart
from semblance.extras import needs

IN_PROCESS = "http://in-process"
_GUARDS = ("api_key", "rate_limit")  # how the names of their settings begin


def open_service(models_dir: str | Path | None = None) -> Any:
    """The application of `service.app`, its models open.

    Args:
        models_dir: instead of SEMBLANCE_MODELS_DIR; other settings are the environment's.

    Raises:
        MissingExtra: the service's packages are not installed.
        CannotStart: a setting or a model is not as it should be.
    """
    with needs("answering in this process, without a URL,", extra="service"):
        from service.app import create_app
        from service.errors import StartupError
        from service.settings import Settings
    # Nobody else can reach this service: what guards one on the network has nothing to guard here.
    changed = {name: f.get_default() for name, f in Settings.model_fields.items() if name.startswith(_GUARDS)}
    if models_dir is not None:
        changed["models_dir"] = Path(models_dir)
    try:
        return create_app(Settings.from_environment().model_copy(update=changed))
    except StartupError as error:
        raise CannotStart("; ".join(str(error).splitlines())) from None


class InProcess(httpx.AsyncBaseTransport):
    """Hands requests to the service; its lifespan is that of the transport."""

    def __init__(self, models_dir: str | Path | None = None) -> None:
        """Open the models; see `open_service`."""
        self._app = open_service(models_dir)
        self._http = httpx.ASGITransport(self._app)
        self._lifespan: _Lifespan | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; before the first one the application starts."""
        if self._lifespan is None:
            self._lifespan = _Lifespan(self._app)
        await self._lifespan.started()
        return await self._http.handle_async_request(request)

    async def aclose(self) -> None:
        """Let the application end what it began."""
        if self._lifespan is not None:
            await self._lifespan.end()


class BlockingInProcess(httpx.BaseTransport):
    """The same for a blocking client: the service runs in a thread of its own."""

    def __init__(self, models_dir: str | Path | None = None) -> None:
        """Open the models; see `open_service`."""
        self._inner = InProcess(models_dir)
        self._loop = asyncio.new_event_loop()
        # A daemon: the interpreter waits for other threads before it ends clients that nobody closed.
        thread = threading.Thread(target=self._loop.run_forever, name="semblance", daemon=True)
        thread.start()
        self._end = weakref.finalize(self, _end, self._inner, self._loop, thread)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

    def close(self) -> None:
        """End the service and its thread."""
        self._end()


def _end(inner: InProcess, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Called once: by `close`, or for a client that nobody closed."""
    if threading.current_thread() is thread:  # collected there: it cannot wait for itself
        loop.stop()
        return
    asyncio.run_coroutine_threadsafe(inner.aclose(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


class _Lifespan:
    """An application's start and end, as the ASGI specification has a server tell it of them."""

    def __init__(self, app: Any) -> None:
        self._to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run(app))

    async def _run(self, app: Any) -> None:
        self._to_app.put_nowait({"type": "lifespan.startup"})
        reason = "it ended before it had started"
        try:
            await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, self._to_app.get, self._heard)
        except Exception as error:
            if self._started.done():
                raise
            reason = str(error) or type(error).__name__
        if not self._started.done():
            self._started.set_exception(CannotStart(f"the service does not start: {reason}"))

    async def _heard(self, message: Any) -> None:
        if message["type"] == "lifespan.startup.complete":
            self._started.set_result(None)

    async def started(self) -> None:
        """Wait for the start; raises CannotStart."""
        await asyncio.shield(self._started)

    async def end(self) -> None:
        """Let it end what it began, and wait for that."""
        self._to_app.put_nowait({"type": "lifespan.shutdown"})
        await self._task
