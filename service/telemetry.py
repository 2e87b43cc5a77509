"""What Prometheus may scrape. Labels come from closed sets: routes, statuses, models; never from a request's text.

Every series exists from the first scrape, so that a rate over it is never missing its beginning.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
NO_MODEL = "none"  # the request failed before a model was chosen, its model is gone, or the route has none
OTHER_ROUTE = OTHER_STATUS = "other"
WORKER_RESTARTS = "semblance_worker_restarts"
STATUSES = (200, 400, 401, 404, 405, 408, 409, 413, 415, 422, 424, 429, 499, 500, 503)
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
            "semblance_workers_busy", "Large requests let in and not answered yet", registry=registry
        )
        self.queue_seconds = Gauge(
            "semblance_queue_seconds",
            "How long all that was let in will take, at the pace of late",
            registry=registry,
        )
        self._inference_seconds = Distributions(
            "semblance_inference_seconds",
            "One graph run of a model that is served, those of health checks included",
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
        self.reload_failures = Counter(
            "semblance_model_reload_failures",
            "Times that a reload refused what it found of a model, and kept what was served",
            ["model"],
            registry=registry,
        )
        self.reload_success = Gauge(
            "semblance_models_reload_success_timestamp_seconds",
            "When all that is served was last found to be as the models folder and the settings say",
            registry=registry,
        )
        for tier in get_args(CacheTier):
            self.cache_counters(tier)
        for kind in get_args(RedisFailure):
            self._redis_failures.labels(kind)
        self._scoring_routes: list[str] = []
        self._served: dict[str, ModelTelemetry] = {}  # by label
        self._labels = {NO_MODEL: NO_MODEL}  # what an answer calls its model -> the label
        self._latency: dict[tuple[str, str], Distribution] = {}
        self._phases: dict[str, list[Distribution]] = {}
        # Of requests not yet sorted into the buckets, which costs less for many of them together.
        self._unsorted: dict[str, list[list[float]]] = {}
        self._answers: dict[tuple[str, int | str], Count] = {}

    def add_route(self, route: str, *, scores: bool = False) -> None:
        """Make the series of a route; of one that scores, one for each model, now and after each reload."""
        if scores:
            self._scoring_routes.append(route)
        for model in (NO_MODEL, *(self._served if scores else ())):
            self._latency[route, model] = self._request_seconds.labels(route, model)
        for status in (*STATUSES, OTHER_STATUS):
            self._answers[route, status] = self._requests.labels(route, status)

    def answered(self, route: str, model: str, status: int, seconds: float, timings: Timings | None) -> None:
        """Count one answer; `timings` are those of a request that scores."""
        model = self._labels.get(model, NO_MODEL)
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

    def serve(self, models: Mapping[str, "ModelTelemetry"]) -> None:
        """Give each model the series of its label; series whose label is gone go too.

        A label's series count on when another version takes the label over, so no counter falls. In the event loop.

        Args:
            models: label -> the telemetry of the model that has it from now on.
        """
        self._sort_phases()
        for label, model in self._served.items():
            self._forget(label, model, models.get(label))
        self._served = dict(models)
        # What is still being answered by an older version counts for the one that has its label now.
        self._labels = {name: label for name, label in self._labels.items() if label in models or label == NO_MODEL}
        for label, model in models.items():
            self._labels |= {label: label, model.name: label}
            self._model_info.labels(label).info(model.info)
            self._phases[label] = [self._phase_seconds.labels(phase, label) for phase in PHASES]
            self._unsorted.setdefault(label, [])
            for route in self._scoring_routes:
                self._latency[route, label] = self._request_seconds.labels(route, label)
            model.count_into(
                sentences=self._sentences.labels(label),
                truncated=self._truncated.labels(label),
                words=self._words.labels(label),
                unknown_words=self._unknown_words.labels(label),
                scores=self._scores.labels(label),
                failures=self._inference_failures.labels(label),
                runs={
                    graph: (self._batch_rows.labels(label, graph), self._inference_seconds.labels(label, graph))
                    for graph in model.graphs
                },
            )

    def _forget(self, label: str, old: "ModelTelemetry", new: "ModelTelemetry | None") -> None:
        """Remove the series of a label that `new`, who has it next, does not go on with."""
        for graph in old.graphs:
            if new is None or graph not in new.graphs:
                for runs in (self._batch_rows, self._inference_seconds):
                    runs.remove(label, graph)
        if new is not None:
            return
        for counts in (self._sentences, self._truncated, self._words, self._unknown_words, self._scores):
            counts.remove(label)
        for own in (self._inference_failures, self._model_info):
            own.remove(label)
        for phase in PHASES:
            self._phase_seconds.remove(phase, label)
        del self._phases[label], self._unsorted[label]
        for route in self._scoring_routes:
            self._request_seconds.remove(route, label)
            del self._latency[route, label]

    def watch(self, gauge: Gauge, read: Callable[[], float]) -> None:
        """Ask for a gauge's value only when it is scraped."""
        gauge.set_function(read)


class ModelTelemetry:
    """The series of one model, their labels already resolved.

    At first nobody scrapes them: a model that is still being proven, and may be refused, counts for itself alone.
    """

    def __init__(self, name: str, graphs: Iterable[str], **info: str) -> None:
        """Begin to count.

        Args:
            name: what answers call the model.
            graphs: its file names of graphs.
            info: what `semblance_model_info` says of it.
        """
        self.name = name
        self.graphs = tuple(graphs)
        self.info = info
        self.count_into(
            sentences=Count(),
            truncated=Count(),
            words=Count(),
            unknown_words=Count(),
            scores=Distribution(_SCORES),
            failures=Counter("semblance_inference_failures", "Of a model not yet served", registry=None),
            runs={},
        )

    def count_into(
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
        """Count into these series from now on."""
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
        if (series := self._runs.get(graph)) is not None:
            batch, time = series
            batch.observe(rows)
            time.observe(seconds)
