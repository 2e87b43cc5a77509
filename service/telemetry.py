"""What Prometheus may scrape. Labels come from closed sets: routes, statuses, models; never from a request's text.

Every series exists from the first scrape, so that a rate over it is never missing its beginning.
"""

from collections.abc import Callable, Iterable
from typing import Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)

RedisFailure = Literal["error", "timeout", "garbage", "dropped"]
NO_MODEL = "none"  # the request failed before a model was chosen, or the route has none
OTHER_ROUTE = "other"
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 422, 424, 429, 499, 500, 503)
_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Telemetry:
    """All metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._request_seconds = Histogram(
            "semblance_request_seconds",
            "Time from the request's head to its answer's end",
            ["route", "model"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._requests = Counter("semblance_requests", "Answers", ["route", "status"], registry=registry)
        self.rate_limited = Counter(
            "semblance_rate_limited", "Requests refused because their caller asks too often", registry=registry
        )
        self.in_flight = Gauge("semblance_requests_in_flight", "Requests being answered", registry=registry)
        self.workers_busy = Gauge(
            "semblance_workers_busy", "Large requests in a worker thread or waiting for one", registry=registry
        )
        self._inference_seconds = Histogram(
            "semblance_inference_seconds",
            "One graph run, those of golden pairs and health checks included",
            ["model", "graph"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._batch_rows = Histogram(
            "semblance_batch_rows",
            "Sentences or pairs in one graph run",
            ["model", "graph"],
            buckets=_ROWS,
            registry=registry,
        )
        self._inference_failures = Counter(
            "semblance_inference_failures", "Graphs that raised or gave no finite number", ["model"], registry=registry
        )
        self._sentences = Counter("semblance_sentences", "Sentences read", ["model"], registry=registry)
        self._truncated = Counter(
            "semblance_sentences_truncated", "Sentences cut at the model's token limit", ["model"], registry=registry
        )
        self._words = Counter("semblance_words", "Words read", ["model"], registry=registry)
        self._unknown_words = Counter(
            "semblance_words_unknown",
            "Words read that are outside the model's vocabulary",
            ["model"],
            registry=registry,
        )
        self._cache_hits = Counter("semblance_cache_hits", "Embeddings found", ["tier"], registry=registry)
        self._cache_misses = Counter("semblance_cache_misses", "Embeddings not found", ["tier"], registry=registry)
        self.cache_entries = Gauge("semblance_cache_entries", "Embeddings in memory", registry=registry)
        self._redis_failures = Counter(
            "semblance_redis_failures",
            "Redis errors and timeouts, values that are no embedding, writes dropped in a rush",
            ["kind"],
            registry=registry,
        )
        self.redis_up = Gauge("semblance_redis_up", "Redis answered the last time it was asked", registry=registry)
        self._model_info = Info("semblance_model", "Models served", ["model"], registry=registry)
        for tier in ("memory", "redis"):
            self.cache_counters(tier)
        for kind in get_args(RedisFailure):
            self._redis_failures.labels(kind)
        self._latency: dict[tuple[str, str], Histogram] = {}
        self._answers: dict[tuple[str, int], Counter] = {}

    def add_route(self, route: str, models: Iterable[str] = ()) -> None:
        """Make the series of a route."""
        for model in (NO_MODEL, *models):
            self._latency[route, model] = self._request_seconds.labels(route, model)
        for status in STATUSES:
            self._answers[route, status] = self._requests.labels(route, status)

    def answered(self, route: str, model: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._latency[route, model].observe(seconds)
        answers = self._answers.get((route, status))
        (answers or self._requests.labels(route, status)).inc()

    def cache_counters(self, tier: Literal["memory", "redis"]) -> tuple[Counter, Counter]:
        """Hits and misses of one tier."""
        return self._cache_hits.labels(tier), self._cache_misses.labels(tier)

    def redis_failed(self, kind: RedisFailure) -> None:
        """Count one failure of Redis."""
        self._redis_failures.labels(kind).inc()

    def model(self, name: str, graphs: Iterable[str], **info: str) -> "ModelTelemetry":
        """The series of a newly opened model."""
        self._model_info.labels(name).info(info)
        return ModelTelemetry(
            sentences=self._sentences.labels(name),
            truncated=self._truncated.labels(name),
            words=self._words.labels(name),
            unknown_words=self._unknown_words.labels(name),
            failures=self._inference_failures.labels(name),
            runs={g: (self._batch_rows.labels(name, g), self._inference_seconds.labels(name, g)) for g in graphs},
        )

    def watch(self, gauge: Gauge, read: Callable[[], float]) -> None:
        """Ask for a gauge's value only when it is scraped."""
        gauge.set_function(read)


class ModelTelemetry:
    """The series of one model, their labels already resolved."""

    def __init__(
        self,
        *,
        sentences: Counter,
        truncated: Counter,
        words: Counter,
        unknown_words: Counter,
        failures: Counter,
        runs: dict[str, tuple[Histogram, Histogram]],
    ) -> None:
        self._sentences = sentences
        self._truncated = truncated
        self._words = words
        self._unknown_words = unknown_words
        self.failures = failures
        self._runs = runs

    def read(self, sentences: int, words: int, unknown: int, truncated: int) -> None:
        """Count sentences read."""
        self._sentences.inc(sentences)
        self._words.inc(words)
        if unknown:
            self._unknown_words.inc(unknown)
        if truncated:
            self._truncated.inc(truncated)

    def ran(self, graph: str, rows: int, seconds: float) -> None:
        """Count one graph run."""
        batch, time = self._runs[graph]
        batch.observe(rows)
        time.observe(seconds)
