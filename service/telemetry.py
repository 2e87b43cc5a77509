"""What Prometheus may scrape. Labels come from closed sets: routes, statuses, models; never from a request's text.

Every series exists from the first scrape, so that a rate over it is never missing its beginning.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from prometheus_client import (
    Counter,
    Gauge,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import Metric

from service.tallies import Count, Counts, Distribution, Distributions, LockedDistribution, Registry
from service.timings import PHASES, Timings

RedisFailure = Literal["error", "timeout", "garbage", "dropped"]
CacheTier = Literal["scores", "memory", "redis"]
Ending = Literal["asked", "killed", "failed", "hung"]  # of a worker process that was replaced
NO_MODEL = "none"  # the request failed before a model was chosen, or the route has none
OTHER_ROUTE = OTHER_STATUS = "other"
WORKER_RESTARTS = "semblance_worker_restarts"
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 422, 424, 429, 499, 500, 503)
_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
_TOGETHER = 128  # requests
_SCORES = tuple(i / 20 for i in range(1, 21))
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Telemetry:
    """All metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = Registry()
        # What a scrape is told: with several worker processes, that of all of them (`service/snapshots.py`). Called in
        # the event loop's thread; what it gives may be gone through in another one.
        self.scrape: Callable[[], Iterable[Metric]] = lambda: list(registry.collect())
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._request_seconds = Distributions(
            "semblance_request_seconds",
            "Time from the request's head to its answer's end",
            ["route", "model"],
            _SECONDS,
            registry,
        )
        self._phase_seconds = Distributions(
            "semblance_phase_seconds",
            "Time of one answered request in one phase, 0 where it had none",
            ["phase", "model"],
            _SECONDS,
            registry,
            before=self._sort_phases,
        )
        self._requests = Counts("semblance_requests", "Answers", ["route", "status"], registry)
        self.rate_limited = Counter(
            "semblance_rate_limited", "Requests refused because their caller asks too often", registry=registry
        )
        processes = Gauge("semblance_worker_processes", "Worker processes that answer", registry=registry)
        processes.set(1)  # this one
        restarts = Counts(WORKER_RESTARTS, "Worker processes that ended and were replaced", ["reason"], registry)
        for reason in get_args(Ending):
            restarts.labels(reason)  # counted by the supervisor
        self.in_flight = Gauge("semblance_requests_in_flight", "Requests being answered", registry=registry)
        self.workers_busy = Gauge(
            "semblance_workers_busy", "Large requests in a worker thread or waiting for one", registry=registry
        )
        self.queue_seconds = Gauge(
            "semblance_queue_seconds",
            "What the work let in and not done is expected to take, in seconds of one worker thread",
            registry=registry,
        )
        self._inference_seconds = Distributions(
            "semblance_inference_seconds",
            "One graph run, those of golden pairs and health checks included",
            ["model", "graph"],
            _SECONDS,
            registry,
            kind=LockedDistribution,
        )
        self._batch_rows = Distributions(
            "semblance_batch_rows",
            "Sentences or pairs in one graph run",
            ["model", "graph"],
            _ROWS,
            registry,
            kind=LockedDistribution,
        )
        self._inference_failures = Counter(
            "semblance_inference_failures", "Graphs that raised or gave no finite number", ["model"], registry=registry
        )
        self._scores = Distributions(
            "semblance_score", "Calibrated scores of pairs, as answered or ranked by", ["model"], _SCORES, registry
        )
        self._sentences = Counts("semblance_sentences", "Sentences read", ["model"], registry)
        self._truncated = Counts(
            "semblance_sentences_truncated", "Sentences cut at the model's token limit", ["model"], registry
        )
        self._words = Counts("semblance_words", "Words read", ["model"], registry)
        self._unknown_words = Counts(
            "semblance_words_unknown", "Words read that are outside the model's vocabulary", ["model"], registry
        )
        self._cache_hits = Counts("semblance_cache_hits", "Vectors, or scores, found", ["tier"], registry)
        self._cache_misses = Counts("semblance_cache_misses", "Vectors, or scores, not found", ["tier"], registry)
        self.cache_entries = Gauge("semblance_cache_entries", "Vectors in memory", registry=registry)
        self._redis_failures = Counter(
            "semblance_redis_failures",
            "Redis errors and timeouts, values that are no embedding, writes dropped in a rush",
            ["kind"],
            registry=registry,
        )
        self.redis_up = Gauge("semblance_redis_up", "Redis answered the last time it was asked", registry=registry)
        self._model_info = Info("semblance_model", "Models served", ["model"], registry=registry)
        for tier in get_args(CacheTier):
            self.cache_counters(tier)
        for kind in get_args(RedisFailure):
            self._redis_failures.labels(kind)
        self._latency: dict[tuple[str, str], Distribution] = {}
        self._phases: dict[str, list[Distribution]] = {}
        # Of requests not yet sorted into the buckets, which costs less for many of them together.
        self._unsorted: dict[str, list[list[float]]] = {}
        self._answers: dict[tuple[str, int | str], Count] = {}

    def add_route(self, route: str, models: Iterable[str] = ()) -> None:
        """Make the series of a route."""
        for model in (NO_MODEL, *models):
            self._latency[route, model] = self._request_seconds.labels(route, model)
        for status in (*STATUSES, OTHER_STATUS):
            self._answers[route, status] = self._requests.labels(route, status)

    def answered(self, route: str, model: str, status: int, seconds: float, timings: Timings | None) -> None:
        """Count one answer; `timings` are those of a request that scores."""
        self._latency[route, model].observe(seconds)
        answers = self._answers.get((route, status))
        (answers or self._answers[route, OTHER_STATUS]).inc()
        if timings is not None and model != NO_MODEL:
            waiting = self._unsorted[model]
            waiting.append(timings.seconds)
            if len(waiting) >= _TOGETHER:
                self._sort_phases()

    def _sort_phases(self) -> None:
        for model, waiting in self._unsorted.items():
            if waiting:
                for phase, seconds in zip(self._phases[model], np.array(waiting).T, strict=True):
                    phase.observe_all(seconds)
                waiting.clear()

    def cache_counters(self, tier: CacheTier) -> tuple[Count, Count]:
        """Hits and misses of one tier."""
        return self._cache_hits.labels(tier), self._cache_misses.labels(tier)

    def redis_failed(self, kind: RedisFailure) -> None:
        """Count one failure of Redis."""
        self._redis_failures.labels(kind).inc()

    def model(self, name: str, graphs: Iterable[str], **info: str) -> "ModelTelemetry":
        """The series of a newly opened model."""
        self._model_info.labels(name).info(info)
        self._phases[name] = [self._phase_seconds.labels(phase, name) for phase in PHASES]
        self._unsorted[name] = []
        return ModelTelemetry(
            sentences=self._sentences.labels(name),
            truncated=self._truncated.labels(name),
            words=self._words.labels(name),
            unknown_words=self._unknown_words.labels(name),
            scores=self._scores.labels(name),
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
        sentences: Count,
        truncated: Count,
        words: Count,
        unknown_words: Count,
        scores: Distribution,
        failures: Counter,
        runs: dict[str, tuple[Distribution, Distribution]],
    ) -> None:
        self._sentences = sentences
        self._truncated = truncated
        self._words = words
        self._unknown_words = unknown_words
        self._scores = scores
        self.failures = failures
        self._runs = runs

    def read(self, sentences: int, words: int, unknown: int, truncated: int) -> None:
        """Count sentences read; in the event loop's thread."""
        self._sentences.inc(sentences)
        self._words.inc(words)
        if unknown:
            self._unknown_words.inc(unknown)
        if truncated:
            self._truncated.inc(truncated)

    def scored(self, scores: Sequence[float]) -> None:
        """Count the scores of pairs; in the event loop's thread."""
        self._scores.observe_all(scores)

    def ran(self, graph: str, rows: int, seconds: float) -> None:
        """Count one graph run; in any thread."""
        batch, time = self._runs[graph]
        batch.observe(rows)
        time.observe(seconds)
