"""httpx transports that run the service in this process: the same application and answers, without a socket."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx

from semblance.errors import CannotStart
from semblance.extras import needs

T = TypeVar("T")

IN_PROCESS = "http://in-process"
_HERE = "opening models here, without --url or SEMBLANCE_URL,"
_GUARDS = ("api_key", "rate_limit")  # prefixes of settings that have no use in a process of one caller
# Limits that protect callers from each other. In this process there is one caller, so they are set beyond reach.
_NO_LIMITS = {
    "max_in_flight": 10**9,
    "max_queue_seconds": 1e9,
    "request_timeout": 1e9,
}


def local_settings(models_dir: str | Path | None = None) -> Any:
    """The service's settings for a process of one caller.

    Args:
        models_dir: instead of SEMBLANCE_MODELS_DIR, or of the usual folder; other settings come from the environment,
            except for those that protect a service against its callers.

    Raises:
        MissingExtra: the service's packages are not installed.
        CannotStart: a setting is invalid, or there is no such folder.
    """
    with needs(_HERE, extra="service"):
        from service.errors import StartupError
        from service.folders import OWN
        from service.settings import Settings
    changed = {name: f.get_default() for name, f in Settings.model_fields.items() if name.startswith(_GUARDS)}
    changed |= _NO_LIMITS
    if models_dir is not None:
        changed["models_dir"] = tuple(map(Path, str(models_dir).split(os.pathsep)))
    try:
        settings = Settings.from_environment().model_copy(update=changed)
    except StartupError as error:
        raise CannotStart("; ".join(str(error).splitlines())) from None
    for folder in settings.models_dir:
        if not folder.is_dir() and folder.name != OWN.name:  # that of one's own models need not be there yet
            raise CannotStart(
                f"no folder of models at {folder.absolute()}: name one that is there (--models-dir, "
                "SEMBLANCE_MODELS_DIR), or a service to ask instead (--url, SEMBLANCE_URL)"
            )
    return settings


class InProcess(httpx.AsyncBaseTransport):
    """Passes requests to the service, which starts with the first request and stops with the transport."""

    def __init__(self, models_dir: str | Path | None = None, **changes: Any) -> None:
        """Open the default models; `changes` are of further settings.

        Raises:
            MissingExtra, CannotStart: as `local_settings`; or a model is invalid.
        """
        settings = local_settings(models_dir).model_copy(update=changes)
        from service.app import create_app
        from service.errors import StartupError

        try:
            self._app = create_app(settings)
        except StartupError as error:
            raise CannotStart("; ".join(str(error).splitlines())) from None
        self._http = httpx.ASGITransport(self._app)
        self._starting: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Task[httpx.Response]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the first one starts the service."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)
        asked = asyncio.ensure_future(self._http.handle_async_request(request))
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        try:
            return await asked
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise RuntimeError("the client was closed") from None  # by `aclose`, and not who asks

    async def _start(self) -> None:
        try:
            await self._app.service.start()
        except Exception as error:
            raise CannotStart(f"the service does not start: {str(error) or type(error).__name__}") from error

    async def aclose(self) -> None:
        """Close the service in this process; who is asking it is answered that it stops."""
        asked = list(self._asked)
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        if self._starting is not None:
            await self._app.service.close()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A daemon thread, because the interpreter joins others before it finalizes clients that were not closed.
        self.thread = threading.Thread(target=self.loop.run_forever, name="semblance", daemon=True)
        self.thread.start()
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns; blocks until then."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def end(self, closing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `closing`, then stop the loop and join its thread; nothing in a forked process, which has no such thread.

        A daemon thread that is within ONNX Runtime when the interpreter ends would abort the process.
        """
        if os.getpid() != self._process or self.loop.is_closed():
            return
        if threading.current_thread() is self.thread:  # collected in that thread, which cannot join itself
            self.loop.stop()
            return
        self.run(closing())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class BlockingInProcess(httpx.BaseTransport):
    """`InProcess` for a blocking client: the service runs in its own thread."""

    def __init__(self, models_dir: str | Path | None = None) -> None:
        """Open the models, as `InProcess` does."""
        self._inner = InProcess(models_dir)
        self._loop = LoopThread()
        # Called once: by `close`, when a client that was not closed is collected, or at the end of the process.
        self._end = weakref.finalize(self, self._loop.end, self._inner.aclose)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request of a blocking client."""
        return self._loop.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

    def close(self) -> None:
        """Stop the service and its thread."""
        self._end()
