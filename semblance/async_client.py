"""The client for asyncio."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx
from tenacity import AsyncRetrying

from semblance.endpoint import Endpoint
from semblance.errors import InvalidArgument
from semblance.local import IN_PROCESS, InProcess
from semblance.protocol import Answer, Asked, Call, Steps, read
from semblance.retries import Retries
from semblance.types import Embeddings, Entailments, Explanation, Labels, Models, Ranking, Readiness, Similarities

T = TypeVar("T")


class AsyncClient:
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
            InvalidArgument: see `Endpoint`; or concurrency is below 1.
        """
        if concurrency < 1:
            raise InvalidArgument(f"concurrency must be at least 1, found {concurrency}")
        self._endpoint = Endpoint(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        self._concurrency = concurrency
        self._http = httpx.AsyncClient(
            base_url=url, headers=self._endpoint.headers, timeout=self._endpoint.timeout, transport=transport
        )

    @classmethod
    def local(cls, models_dir: str | Path | None = None, *, max_items: int | None = None, concurrency: int = 4) -> Self:
        """Open the models in this process; see `Client.local`."""
        return cls(IN_PROCESS, max_items=max_items, concurrency=concurrency, transport=InProcess(models_dir))

    async def similarity(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        model: str | None = None,
        task: Asked = None,
        tell_cached: bool = False,
    ) -> Similarities:
        """See `Client.similarity`."""
        return await self._run(self._endpoint.questions.similarity(pairs, model, task=task, tell_cached=tell_cached))

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
            self._endpoint.questions.rank(
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
        return await self._run(self._endpoint.questions.entailment(pairs, model, tell_cached=tell_cached))

    async def claims(
        self,
        document: str | Iterable[str],
        claims: Iterable[str],
        *,
        model: str | None = None,
        tell_cached: bool = False,
    ) -> Entailments:
        """See `Client.claims`."""
        return await self._run(self._endpoint.questions.claims(document, claims, model, tell_cached=tell_cached))

    async def classify(
        self,
        texts: Iterable[str],
        labels: Iterable[str] | None = None,
        *,
        template: str | None = None,
        multi_label: bool = False,
        model: str | None = None,
        tell_cached: bool = False,
    ) -> Labels:
        """See `Client.classify`."""
        return await self._run(
            self._endpoint.questions.classify(
                texts, labels, template=template, multi_label=multi_label, model=model, tell_cached=tell_cached
            )
        )

    async def embed(
        self, sentences: Iterable[str], *, model: str | None = None, tell_cached: bool = False
    ) -> Embeddings:
        """See `Client.embed`."""
        return await self._run(self._endpoint.questions.embed(sentences, model, tell_cached=tell_cached))

    async def explain(self, a: str, b: str, *, model: str | None = None) -> Explanation:
        """See `Client.explain`."""
        return await self._run(self._endpoint.questions.explain(a, b, model))

    async def models(self) -> Models:
        """See `Client.models`."""
        return await self._run(self._endpoint.questions.models())

    async def health(self) -> Readiness:
        """See `Client.health`."""
        return await self._run(self._endpoint.questions.health())

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
        return await AsyncRetrying(sleep=self._sleep, **self._endpoint.plan)(self._ask_once, call)

    async def _ask_once(self, call: Call) -> Answer:
        try:
            answer = await self._http.request(call.method, call.path, content=call.body)
        except httpx.RequestError as error:
            raise self._endpoint.translated(error) from error
        return read(call, answer.status_code, answer.headers, answer.content)
