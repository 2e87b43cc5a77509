"""The blocking client."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx
from tenacity import Retrying

from semblance.endpoint import Endpoint
from semblance.local import IN_PROCESS, BlockingInProcess
from semblance.protocol import Answer, Asked, Call, Steps, read
from semblance.retries import Retries
from semblance.types import Embeddings, Entailments, Explanation, Labels, Models, Ranking, Readiness, Similarities

T = TypeVar("T")


class Client:
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
            timeout: seconds to wait for a connection, and for each part of an answer.
            retries: number of retries after the first try, or all settings of retrying.
            max_items: most items in one request, if fewer than the service allows.
            transport: of httpx, for other certificates or proxies.
            sleep: waits between tries; takes seconds.

        Raises:
            InvalidArgument: see `Endpoint`.
        """
        self._endpoint = Endpoint(url, api_key, timeout, retries, max_items)
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=url, headers=self._endpoint.headers, timeout=self._endpoint.timeout, transport=transport
        )

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
        return cls(IN_PROCESS, max_items=max_items, transport=BlockingInProcess(models_dir))

    def similarity(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        model: str | None = None,
        task: Asked = None,
        tell_cached: bool = False,
    ) -> Similarities:
        """Score pairs of sentences; any number of them, in as many requests as needed.

        Args:
            pairs: (a, b).
            model: id of the model.
            task: "paraphrase", or "relevance" of b to a, for the probability of that, from a model that has it;
                similarity by default.
            tell_cached: whether to report for each sentence if its result came from a cache.
        """
        return self._run(self._endpoint.questions.similarity(pairs, model, task=task, tell_cached=tell_cached))

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
            query: the text to compare with.
            candidates: any number of them; the order does not depend on the number of requests.
            top_k: number of best candidates to return; None: all.
            model: id of the model.
            rerank_model: id of a second model, which reorders the best candidates.
            rerank_top: number of candidates it reorders.
            tell_cached: whether to report for each candidate if its result came from a cache.
        """
        return self._run(
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

    def entailment(
        self, pairs: Iterable[tuple[str, str]], *, model: str | None = None, tell_cached: bool = False
    ) -> Entailments:
        """Label pairs of premise and hypothesis; any number of them."""
        return self._run(self._endpoint.questions.entailment(pairs, model, tell_cached=tell_cached))

    def claims(
        self,
        document: str | Iterable[str],
        claims: Iterable[str],
        *,
        model: str | None = None,
        tell_cached: bool = False,
    ) -> Entailments:
        """Find the sentence of a document that supports each claim best.

        Args:
            document: its sentences, or a text, which the service splits. Its sentences times the claims of one request
                are limited by the service.
            claims: any number of them; with a text, as many as fit one request.
            model: id of a model with entailment.
            tell_cached: whether to report of that sentence and the claim if the result came from a cache.
        """
        return self._run(self._endpoint.questions.claims(document, claims, model, tell_cached=tell_cached))

    def classify(
        self,
        texts: Iterable[str],
        labels: Iterable[str] | None = None,
        *,
        template: str | None = None,
        multi_label: bool = False,
        model: str | None = None,
        tell_cached: bool = False,
    ) -> Labels:
        """Label texts; any number of them.

        Args:
            texts: to label.
            labels: any, judged by an entailment model; None: those that a model has itself.
            template: turns a label, in the place of {}, into a hypothesis.
            multi_label: whether each label is judged by itself.
            model: id of a model with entailment, or, without labels, of one with labels.
            tell_cached: whether to report of each text if its result came from a cache.
        """
        return self._run(
            self._endpoint.questions.classify(
                texts, labels, template=template, multi_label=multi_label, model=model, tell_cached=tell_cached
            )
        )

    def embed(self, sentences: Iterable[str], *, model: str | None = None, tell_cached: bool = False) -> Embeddings:
        """Embed sentences; any number of them."""
        return self._run(self._endpoint.questions.embed(sentences, model, tell_cached=tell_cached))

    def explain(self, a: str, b: str, *, model: str | None = None) -> Explanation:
        """Explain the score of two sentences, by token."""
        return self._run(self._endpoint.questions.explain(a, b, model))

    def models(self) -> Models:
        """The served models, and the limits of a request."""
        return self._run(self._endpoint.questions.models())

    def health(self) -> Readiness:
        """The readiness of the service; raises nothing when the service answers that it is not ready."""
        return self._run(self._endpoint.questions.health())

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

    def _ask(self, call: Call) -> Answer:
        return Retrying(sleep=self._sleep, **self._endpoint.plan)(self._ask_once, call)

    def _ask_once(self, call: Call) -> Answer:
        try:
            answer = self._http.request(call.method, call.path, content=call.body)
        except httpx.RequestError as error:
            raise self._endpoint.translated(error) from error
        return read(call, answer.status_code, answer.headers, answer.content)
