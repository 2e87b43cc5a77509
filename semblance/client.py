"""The clients: `Client` blocks, `AsyncClient` (of asyncio) does not. What they ask and how they read it is one code."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import AsyncRetrying, Retrying

from semblance.errors import NoAnswer, TimedOut, UnexpectedAnswer
from semblance.local import IN_PROCESS, BlockingInProcess, InProcess
from semblance.protocol import Call, Questions, Steps, read
from semblance.retries import Retries
from semblance.types import Embeddings, Entailments, Explanation, Models, Ranking, Readiness, Similarities
from semblance.version import version

T = TypeVar("T")


class _Shared:
    """What is no I/O: arguments checked, headers made, errors of httpx put into ours."""

    def __init__(
        self, url: str, api_key: str | None, timeout: float, retries: int | Retries, max_items: int | None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected a URL such as http://127.0.0.1:8000, found {url!r}")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("an API key travels in a header: expected printable ASCII")
        if max_items is not None and max_items < 1:
            raise ValueError(f"max_items must be at least 1, found {max_items}")
        self.url = url
        self.headers = {"user-agent": f"semblance/{version()}", "content-type": "application/json"}
        if api_key is not None:
            self.headers["authorization"] = f"Bearer {api_key}"
        self.timeout = httpx.Timeout(timeout)
        self.plan = (Retries(retries) if isinstance(retries, int) else retries).plan()
        self.questions = Questions(max_items)

    def wrong(self, error: httpx.RequestError) -> NoAnswer | UnexpectedAnswer:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return TimedOut(f"no answer from {self.url} in time: {reason}")
        if isinstance(error, httpx.TransportError):
            return NoAnswer(f"no answer from {self.url}: {reason}")
        return UnexpectedAnswer(f"{self.url} answers with what cannot be read: {reason}")


class Client:
    """Asks a service, and waits for its answers.

    Every method raises a `SemblanceError` (see `semblance/errors.py`) where there is no answer. Requests that may fare
    better later, refused for overload or broken off, are sent again, after the time that the service asks for.
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
        """Nothing is sent yet.

        Args:
            url: where the service is, such as `http://127.0.0.1:8000`, with a path if it is behind one.
            api_key: sent as `Authorization: Bearer`.
            timeout: seconds to wait for a connection, and for each part of an answer.
            retries: how many times to try again after the first, or how in detail.
            max_items: how many items to put into one request, if fewer than the service allows.
            transport: of httpx, for other certificates or proxies.
            sleep: how to wait between tries.

        Raises:
            ValueError: an argument that cannot be.
        """
        self._shared = _Shared(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=url, headers=self._shared.headers, timeout=self._shared.timeout, transport=transport
        )

    @classmethod
    def local(cls, models_dir: str | Path | None = None, *, max_items: int | None = None) -> Self:
        """Open the models in this process and ask them, without a server; needs the extra `service`.

        Args:
            models_dir: folder of models; SEMBLANCE_MODELS_DIR, or `models`, by default. The service's other
                settings are read from the environment too.
            max_items: see above.

        Raises:
            MissingExtra: the service is not installed.
            CannotStart: a setting or a model is not as it should be.
        """
        return cls(IN_PROCESS, max_items=max_items, transport=BlockingInProcess(models_dir))

    def similarity(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, tell_cached: bool = False
    ) -> Similarities:
        """Score pairs of sentences; any number of them, sent in as many requests as it takes.

        Args:
            pairs: (a, b).
            model: who scores them.
            tell_cached: whether to say of each sentence if what the model made of it was in a cache.
        """
        return self._run(self._shared.questions.similarity(pairs, model, tell_cached=tell_cached))

    def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top_k: int | None = None,
        model: str | None = None,
        rerank_model: str | None = None,
        rerank_top: int | None = None,
        tell_cached: bool = False,
    ) -> Ranking:
        """Order candidates by their similarity to a query.

        Args:
            query: the question.
            candidates: any number of them. Where they take several requests, candidates of one score from different
                requests stay in the order given.
            top_k: how many of the best to return; all without it.
            model: who orders them.
            rerank_model: a second model, which orders the best of them again.
            rerank_top: how many it orders.
            tell_cached: whether to say of each candidate if what the models made of it was in a cache.
        """
        return self._run(
            self._shared.questions.rank(
                query,
                candidates,
                top_k=top_k,
                model=model,
                rerank_model=rerank_model,
                rerank_top=rerank_top,
                tell_cached=tell_cached,
            )
        )

    def entailment(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, tell_cached: bool = False
    ) -> Entailments:
        """Label pairs of premise and hypothesis; any number of them."""
        return self._run(self._shared.questions.entailment(pairs, model, tell_cached=tell_cached))

    def embed(self, sentences: Iterable[str], *, model: str | None = None, tell_cached: bool = False) -> Embeddings:
        """Embed sentences; any number of them."""
        return self._run(self._shared.questions.embed(sentences, model, tell_cached=tell_cached))

    def explain(self, a: str, b: str, *, model: str | None = None) -> Explanation:
        """What made the score of two sentences."""
        return self._run(self._shared.questions.explain(a, b, model))

    def models(self) -> Models:
        """What is served, and the limits of a request."""
        return self._run(self._shared.questions.models())

    def health(self) -> Readiness:
        """Whether requests should be sent there; a service that says no has answered, and nothing is raised."""
        return self._run(self._shared.questions.health())

    def close(self) -> None:
        """Close connections; a service in this process ends."""
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

    def _ask(self, call: Call) -> bytes:
        return Retrying(sleep=self._sleep, **self._shared.plan)(self._ask_once, call)

    def _ask_once(self, call: Call) -> bytes:
        try:
            answer = self._http.request(call.method, call.path, content=call.body)
        except httpx.RequestError as error:
            raise self._shared.wrong(error) from error
        return read(call, answer.status_code, answer.headers, answer.content)


class AsyncClient:
    """`Client` for asyncio: the same methods and errors; what one call splits is sent a few requests at a time."""

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
        """Nothing is sent yet.

        Args:
            url: see `Client`, as for all others.
            api_key: sent as `Authorization: Bearer`.
            timeout: seconds to wait for a connection, and for each part of an answer.
            retries: how many times to try again after the first, or how in detail.
            max_items: how many items to put into one request, if fewer than the service allows.
            concurrency: how many requests of one call are under way at once.
            transport: of httpx, for other certificates or proxies.
            sleep: how to wait between tries.

        Raises:
            ValueError: an argument that cannot be.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, found {concurrency}")
        self._shared = _Shared(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        self._concurrency = concurrency
        self._http = httpx.AsyncClient(
            base_url=url, headers=self._shared.headers, timeout=self._shared.timeout, transport=transport
        )

    @classmethod
    def local(cls, models_dir: str | Path | None = None, *, max_items: int | None = None, concurrency: int = 4) -> Self:
        """Open the models in this process; see `Client.local`."""
        return cls(IN_PROCESS, max_items=max_items, concurrency=concurrency, transport=InProcess(models_dir))

    async def similarity(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, tell_cached: bool = False
    ) -> Similarities:
        """See `Client.similarity`."""
        return await self._run(self._shared.questions.similarity(pairs, model, tell_cached=tell_cached))

    async def rank(
        self,
        query: str,
        candidates: Iterable[str],
        *,
        top_k: int | None = None,
        model: str | None = None,
        rerank_model: str | None = None,
        rerank_top: int | None = None,
        tell_cached: bool = False,
    ) -> Ranking:
        """See `Client.rank`."""
        return await self._run(
            self._shared.questions.rank(
                query,
                candidates,
                top_k=top_k,
                model=model,
                rerank_model=rerank_model,
                rerank_top=rerank_top,
                tell_cached=tell_cached,
            )
        )

    async def entailment(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, tell_cached: bool = False
    ) -> Entailments:
        """See `Client.entailment`."""
        return await self._run(self._shared.questions.entailment(pairs, model, tell_cached=tell_cached))

    async def embed(
        self, sentences: Iterable[str], *, model: str | None = None, tell_cached: bool = False
    ) -> Embeddings:
        """See `Client.embed`."""
        return await self._run(self._shared.questions.embed(sentences, model, tell_cached=tell_cached))

    async def explain(self, a: str, b: str, *, model: str | None = None) -> Explanation:
        """See `Client.explain`."""
        return await self._run(self._shared.questions.explain(a, b, model))

    async def models(self) -> Models:
        """See `Client.models`."""
        return await self._run(self._shared.questions.models())

    async def health(self) -> Readiness:
        """See `Client.health`."""
        return await self._run(self._shared.questions.health())

    async def aclose(self) -> None:
        """Close connections; a service in this process ends."""
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

    async def _ask_all(self, calls: list[Call]) -> list[bytes]:
        gate = asyncio.Semaphore(self._concurrency)

        async def ask(call: Call) -> bytes:
            async with gate:
                return await self._ask(call)

        asking = [asyncio.ensure_future(ask(call)) for call in calls]
        try:
            return await asyncio.gather(*asking)
        finally:
            for one in asking:  # of a call that failed, nobody waits for the rest
                one.cancel()

    async def _ask(self, call: Call) -> bytes:
        return await AsyncRetrying(sleep=self._sleep, **self._shared.plan)(self._ask_once, call)

    async def _ask_once(self, call: Call) -> bytes:
        try:
            answer = await self._http.request(call.method, call.path, content=call.body)
        except httpx.RequestError as error:
            raise self._shared.wrong(error) from error
        return read(call, answer.status_code, answer.headers, answer.content)
