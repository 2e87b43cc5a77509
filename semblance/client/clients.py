"""The clients, blocking and for asyncio. Each call is declared once, in `semblance.client.requests.ServiceRequests`."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import AsyncRetrying, Retrying

from semblance.client.calls import Answer, Call, Steps, read_answer
from semblance.client.local import IN_PROCESS, BlockingInProcess, InProcess
from semblance.client.reading import READ, AnswerBody, bound_reads
from semblance.client.requests import ServiceRequests
from semblance.client.retries import Retries
from semblance.errors import InvalidArgument, NoAnswer, TimedOut, TooLarge, UnexpectedAnswer
from semblance.extras import version

LONGEST_TIMEOUT = 86_400  # seconds
_ENCODING = "gzip"  # of an answer
WAITS_OF_AN_ANSWER = 10  # timeouts within which an answer is whole
_USER = re.compile("//[^/]*@")
_KEY = re.compile("[!-~]([ -~]*[!-~])?").fullmatch
P = ParamSpec("P")
T = TypeVar("T")


def _blocking(request: Callable[Concatenate[ServiceRequests, P], Steps[T]]) -> Callable[Concatenate["Client", P], T]:
    @wraps(request)
    def ask(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._run(request(client._requests, *args, **kwargs))

    return ask


def _async(
    request: Callable[Concatenate[ServiceRequests, P], Steps[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    @wraps(request)
    async def ask(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client._run(request(client._requests, *args, **kwargs))

    return ask


@contextmanager
def _environment() -> Iterator[None]:
    """What httpx raises where it reads the environment.

    Raises:
        InvalidArgument: in place of that.
    """
    try:
        yield
    except (httpx.InvalidURL, ImportError, ValueError, OSError) as error:
        names = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE or SSL_CERT_DIR"
        raise InvalidArgument(f"{names} of the environment cannot be used: {error}") from error


class _Endpoint:
    """One service's URL, headers, time limit and retries; does no I/O."""

    def __init__(
        self, url: str, api_key: str | None, timeout: float, retries: int | Retries, max_items: int | None
    ) -> None:
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            sound = sound and not (parts.query or parts.fragment or any(map(str.isspace, url)))
            sound = sound and bool(httpx.URL(url).raw_host.decode().encode("idna"))
        except (ValueError, TypeError, AttributeError, httpx.InvalidURL):  # also a number without a scheme
            sound = False
        if not sound:
            shown = _USER.sub("//", str(url))  # without a password
            raise InvalidArgument(f"expected a URL such as http://127.0.0.1:8000, found {shown!r}")
        if api_key is not None and "@" in parts.netloc:
            raise InvalidArgument("an API key and a user in the URL are sent in the same header: give one of them")
        if api_key is not None and not (isinstance(api_key, str) and _KEY(api_key)):
            raise InvalidArgument("an API key travels in a header: expected printable ASCII without spaces around")
        if max_items is not None and not (isinstance(max_items, int) and max_items >= 1):
            raise InvalidArgument(f"max_items must be at least 1, found {max_items!r}")
        if not (isinstance(timeout, int | float) and 0 < timeout <= LONGEST_TIMEOUT):
            raise InvalidArgument(
                f"timeout must be seconds, more than 0 and at most {LONGEST_TIMEOUT}, found {timeout!r}"
            )
        wanted = Retries(retries) if isinstance(retries, int) else retries
        if not hasattr(wanted, "plan"):
            raise InvalidArgument(f"retries must be a number, or Retries, found {retries!r}")
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # for messages: no password
        self._headers = {"user-agent": f"semblance/{version()}", "content-type": "application/json"}
        self._headers["accept-encoding"] = _ENCODING
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._seconds, self._timeout = timeout, httpx.Timeout(timeout)
        self._plan = wanted.plan()
        self._requests = ServiceRequests(max_items)

    def _answer(self) -> AnswerBody:
        return AnswerBody(self._url, WAITS_OF_AN_ANSWER * self._seconds)

    @staticmethod
    def _check_open(http: httpx.Client | httpx.AsyncClient) -> None:
        if http.is_closed:
            raise InvalidArgument("this client has been closed")

    def _check_encoding(self, answer: httpx.Response) -> None:
        """Raise UnexpectedAnswer where a body is packed as was not asked for: twice, a few bytes may be gigabytes."""
        if (encoding := answer.headers.get("content-encoding", _ENCODING).lower()) not in (_ENCODING, "identity"):
            raise UnexpectedAnswer(f"{self._url} answers with the content encoding {encoding[:100]!r}")

    def _translated(self, error: httpx.RequestError | RuntimeError) -> NoAnswer | UnexpectedAnswer:
        """The error of this package for one of httpx, or of an event loop that has ended."""
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return TimedOut(f"no answer from {self._url} in time: {reason}")
        if isinstance(error, httpx.TransportError | RuntimeError):
            return NoAnswer(f"no answer from {self._url}: {reason}")
        return UnexpectedAnswer(f"{self._url} answers with what cannot be read: {reason}")


class Client(_Endpoint):
    """Sends requests to a service and blocks until they are answered.

    Every method raises a `SemblanceError` (see `semblance/errors.py`) when a request fails. A request that was refused
    for overload, or whose connection broke, is retried after the time that the service asks for.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int | Retries = 3,
        max_items: int | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Store the settings; sends nothing.

        Args:
            url: of the service, such as `http://127.0.0.1:8000`, with a path if it is behind one.
            api_key: sent as `Authorization: Bearer`.
            timeout: seconds to wait for a connection, and for each part of an answer; ten times that for the whole.
            retries: number of retries after the first try, or all settings of retrying.
            max_items: most items in one request, if fewer than the service allows.
            transport: of httpx, for other certificates or proxies.
            sleep: waits between tries; takes seconds.

        Raises:
            InvalidArgument: the URL has no http scheme, no host or no such port, or a query; the key is not printable
                ASCII, max_items is below 1, the timeout no time, or retries no number.
        """
        super().__init__(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        with _environment():
            self._http = httpx.Client(base_url=url, headers=self._headers, timeout=self._timeout, transport=transport)

    @classmethod
    def local(cls, models_dir: str | Path | None = None, *, max_items: int | None = None) -> Self:
        """Open the models in this process and ask them, without a server; needs the extra `service`.

        Args:
            models_dir: folder of models; SEMBLANCE_MODELS_DIR, or `models`, by default. The service's other
                settings are read from the environment too.
            max_items: as for `__init__`.

        Raises:
            MissingExtra: the service is not installed.
            CannotStart: a setting or a model is invalid.
        """
        return cls(IN_PROCESS, timeout=LONGEST_TIMEOUT, max_items=max_items, transport=BlockingInProcess(models_dir))

    similarity = _blocking(ServiceRequests.similarity)
    rank = _blocking(ServiceRequests.rank)
    answer = _blocking(ServiceRequests.answer)
    entailment = _blocking(ServiceRequests.entailment)
    claims = _blocking(ServiceRequests.claims)
    dedupe = _blocking(ServiceRequests.dedupe)
    classify = _blocking(ServiceRequests.classify)
    embed = _blocking(ServiceRequests.embed)
    explain = _blocking(ServiceRequests.explain)
    models = _blocking(ServiceRequests.models)
    health = _blocking(ServiceRequests.health)

    def close(self) -> None:
        """Close connections; stop a service that runs in this process."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            calls = next(steps)
            while True:
                calls = steps.send([self._ask(call) for call in calls])
        except StopIteration as done:
            answer: T = done.value
            return answer
        except TooLarge:
            self._requests.forget_limits()
            raise

    def _ask(self, call: Call) -> Answer:
        return Retrying(sleep=self._sleep, **self._plan)(self._ask_once, call)

    def _ask_once(self, call: Call) -> Answer:
        self._check_open(self._http)
        body = self._answer()
        reading = READ.set(body)
        try:
            asked = self._http.stream(call.method, call.path, content=call.body, extensions={"trace": bound_reads})
            with asked as answer:
                self._check_encoding(answer)
                for part in answer.iter_bytes():
                    body.add(part)
        except (httpx.RequestError, RuntimeError) as error:
            raise self._translated(error) from error
        finally:
            READ.reset(reading)
        return read_answer(call, answer.status_code, answer.headers, body.whole())


class AsyncClient(_Endpoint):
    """`Client` for asyncio: same methods, same errors; the requests of one call are sent concurrently."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int | Retries = 3,
        max_items: int | None = None,
        concurrency: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Store the settings; sends nothing. `concurrency` is the most requests of a call in flight; see `Client`.

        Raises:
            InvalidArgument: as for `Client`; or concurrency is below 1.
        """
        if not (isinstance(concurrency, int) and concurrency >= 1):
            raise InvalidArgument(f"concurrency must be at least 1, found {concurrency!r}")
        super().__init__(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        self._concurrency = concurrency
        with _environment():
            self._http = httpx.AsyncClient(
                base_url=url, headers=self._headers, timeout=self._timeout, transport=transport
            )

    @classmethod
    def local(
        cls,
        models_dir: str | Path | None = None,
        *,
        max_items: int | None = None,
        concurrency: int = 4,
        whole_files: bool = False,
        **settings: Any,
    ) -> Self:
        """Open the models in this process; see `Client.local`.

        With `whole_files` each model is opened when it is first asked, nothing is cached, and an answer is the same
        whatever else is asked; `settings` are others of the service.
        """
        if whole_files:
            settings |= {"preload": ("none",), "cache": "off", "cache_bytes": 0, "reproducible": True}
        transport = InProcess(models_dir, **settings)
        return cls(
            IN_PROCESS, timeout=LONGEST_TIMEOUT, max_items=max_items, concurrency=concurrency, transport=transport
        )

    similarity = _async(ServiceRequests.similarity)
    rank = _async(ServiceRequests.rank)
    answer = _async(ServiceRequests.answer)
    entailment = _async(ServiceRequests.entailment)
    claims = _async(ServiceRequests.claims)
    dedupe = _async(ServiceRequests.dedupe)
    classify = _async(ServiceRequests.classify)
    embed = _async(ServiceRequests.embed)
    explain = _async(ServiceRequests.explain)
    models = _async(ServiceRequests.models)
    health = _async(ServiceRequests.health)

    async def aclose(self) -> None:
        """Close connections; stop a service that runs in this process."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        try:
            calls = next(steps)
            while True:
                calls = steps.send(await self._ask_all(calls))
        except StopIteration as done:
            answer: T = done.value
            return answer
        except TooLarge:
            self._requests.forget_limits()
            raise

    async def _ask_all(self, calls: list[Call]) -> list[Answer]:
        gate = asyncio.Semaphore(self._concurrency)

        async def ask(call: Call) -> Answer:
            async with gate:
                return await self._ask(call)

        asking = [asyncio.ensure_future(ask(call)) for call in calls]
        try:
            return await asyncio.gather(*asking)
        finally:
            for one in asking:  # one failed: cancel the rest
                one.cancel()

    async def _ask(self, call: Call) -> Answer:
        return await AsyncRetrying(sleep=self._sleep, **self._plan)(self._ask_once, call)

    async def _ask_once(self, call: Call) -> Answer:
        self._check_open(self._http)
        body = self._answer()
        try:
            async with (
                asyncio.timeout(body.left()),
                self._http.stream(call.method, call.path, content=call.body) as answer,
            ):
                self._check_encoding(answer)
                async for part in answer.aiter_bytes():
                    body.add(part)
        except TimeoutError:
            raise body.late() from None
        except (httpx.RequestError, RuntimeError) as error:
            raise self._translated(error) from error
        return read_answer(call, answer.status_code, answer.headers, body.whole())
