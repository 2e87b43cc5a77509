"""All metrics. Labels come from closed sets (routes, statuses, models), never from the text of a request.

The series of a model begin when it is opened, those of its answers with the first of them. All others exist from the
first scrape on, so that rates include their first increase.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

from prometheus_client import Counter, Gauge, GCCollector, Info, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from service.observe import logs
from service.observe.metrics import (
    PHASES,
    CounterFamily,
    CounterSeries,
    Histogram,
    HistogramFamily,
    LockedHistogram,
    MetricRegistry,
    Timings,
)

RedisFailure = Literal["error", "timeout", "garbage", "dropped"]
CacheTier = Literal["scores", "memory", "redis"]
Opening = Literal["opened", "failed"]
Ending = Literal["asked", "killed", "failed", "hung"]  # of a worker process that was replaced
NO_MODEL = "none"  # no model was chosen, it is no longer served, or the route has none
OTHER_ROUTE = OTHER_STATUS = "other"
WORKER_RESTARTS = "semblance_worker_restarts"
STATUSES = frozenset(map(str, (200, 400, 401, 404, 405, 408, 409, 413, 415, 422, 424, 429, 499, 500, 503)))
_WATCHED_STATUSES = ("200", "408", "429", "500", "503")  # each route has them from the first scrape on: alerts ask them
_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
_LAG_SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_SCORES = tuple(i / 10 for i in range(1, 11))
# What is counted of what a model reads: the metric, and what it says.
_READ = {
    "sentences": ("semblance_sentences", "Sentences read"),
    "truncated": ("semblance_sentences_truncated", "Sentences cut at the model's token limit"),
    "words": ("semblance_words", "Words read"),
    "unknown": ("semblance_words_unknown", "Words read that are outside the model's vocabulary"),
}
_NO_BUCKETS = ()  # of which the sum and the number are asked


class _LogLinesDropped(Collector):
    """The counter of `service/observe/logs.py`, as a metric."""

    def collect(self) -> Iterable[Metric]:
        """The counter of dropped log lines."""
        yield CounterMetricFamily(
            "semblance_log_lines_dropped",
            "Log lines dropped because nobody reads standard error",
            value=logs.dropped(),
        )


class Telemetry:
    """All metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = MetricRegistry()
        # The families for a scrape; with several workers those of `service/observe/multiprocess_metrics.py`. Called in
        # the event loop's thread, iterated in another.
        self.scrape: Callable[[], Iterable[Metric]] = registry.collect_in_parts
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        histogram, counter = partial(HistogramFamily, registry=registry), partial(CounterFamily, registry=registry)
        gauge, locked_counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        self._request_seconds = histogram(
            "semblance_request_seconds",
            "From the request's head to its answer's end; model is none if none answered, or it is no longer served",
            ["route", "model"],
            _SECONDS,
        )
        self._phase_seconds = histogram(
            "semblance_phase_seconds",
            "Of one answered request, its time in each phase, 0 where it had none (docs/metrics.md)",
            ["phase", "model"],
            _NO_BUCKETS,
        )
        self.loop_lag = histogram(
            "semblance_event_loop_lag_seconds",
            "How late callbacks of the event loop are, 50 times a second; work of more than 0.02 s is always noticed",
            [],
            _LAG_SECONDS,
        ).labels()
        registry.register(_LogLinesDropped())
        self._requests = counter(
            "semblance_requests",
            "Answers; 499: the client left or did not read its answer; other: any other status",
            ["route", "status"],
        )
        self.rate_limited = locked_counter(
            "semblance_rate_limited", "Requests refused by SEMBLANCE_RATE_LIMIT; other 429s are overload"
        )
        processes = gauge("semblance_worker_processes", "Worker processes that answer (SEMBLANCE_WORKERS)")
        processes.set(1)  # this one
        restarts = counter(
            WORKER_RESTARTS,
            "Worker processes replaced: asked to end, killed by a signal, failed with an exit code, or hung",
            ["reason"],
        )
        for reason in get_args(Ending):
            restarts.labels(reason)  # counted by the supervisor
        self.in_flight = gauge("semblance_requests_in_flight", "Requests being answered")
        self.in_flight_limit = gauge(
            "semblance_requests_in_flight_limit",
            "More requests in flight are refused: SEMBLANCE_MAX_IN_FLIGHT of all workers",
        )
        self.admitted = gauge("semblance_requests_admitted", "Admitted large requests that are not answered yet")
        self.dropped = counter(
            "semblance_dropped",
            "Requests whose work was dropped before all of it began: the client left, or its time was over",
            [],
        ).labels()
        self.queue_seconds = gauge(
            "semblance_queue_seconds", "Expected seconds until all admitted work is done, at the recent pace"
        )
        self.queue_limit = gauge(
            "semblance_queue_limit_seconds",
            "A longer expected wait is refused: SEMBLANCE_MAX_QUEUE_SECONDS of all workers",
        )
        self.memory_limit = gauge(
            "semblance_memory_limit_bytes", "Memory that all processes of this container may use, or the machine's"
        )
        self.ready = gauge("semblance_ready", "0 while /health/ready says unready")
        self._inference_seconds = histogram(
            "semblance_inference_seconds",
            "One graph run of a served model, also in health checks",
            ["model", "graph"],
            _NO_BUCKETS,
            kind=LockedHistogram,
        )
        self._batch_rows = histogram(
            "semblance_batch_rows",
            "Sentences or pairs in one graph run",
            ["model", "graph"],
            _NO_BUCKETS,
            kind=LockedHistogram,
        )
        self._inference_failures = locked_counter(
            "semblance_inference_failures", "Graphs that raised or gave no finite number", ["model"]
        )
        self._scores = histogram(
            "semblance_score", "Calibrated scores of pairs, also in rankings; shows drift", ["model"], _SCORES
        )
        self._read = {what: counter(name, said, ["model"]) for what, (name, said) in _READ.items()}
        self._cache_hits = counter(
            "semblance_cache_hits",
            "Vectors found in memory or in redis, and pairs' whole scores found in scores; each pair counts",
            ["tier"],
        )
        self._cache_misses = counter("semblance_cache_misses", "Vectors, and scores, not found", ["tier"])
        self.cache_entries = gauge("semblance_cache_entries", "Vectors in memory")
        self.cache_bytes = gauge(
            "semblance_cache_bytes", "Bytes of vectors, scores and texts' token ids in memory, of SEMBLANCE_CACHE_BYTES"
        )
        self._redis_failures = locked_counter(
            "semblance_redis_failures",
            "Failures of Redis, also in probes: error, timeout, garbage (no embedding, or not signed as "
            "SEMBLANCE_REDIS_SECRET says), dropped (a write, while too many were under way)",
            ["kind"],
        )
        self.redis_wanted = gauge("semblance_redis_wanted", "Whether SEMBLANCE_REDIS_URL is set")
        self.redis_up = gauge(
            "semblance_redis_up",
            "Whether Redis could be read at the last request, or the last probe (every two seconds)",
        )
        self.redis_writable = gauge("semblance_redis_writable", "Whether the last write to Redis succeeded")
        self._model_info = Info(
            "semblance_model",
            "Served models; provider is empty for one that is not open",
            ["model"],
            registry=registry,
        )
        self.reload_failures = locked_counter(
            "semblance_model_reload_failures",
            "Reloads that refused a model, and kept the one served before",
            ["model"],
        )
        self.reload_success = gauge(
            "semblance_models_reload_success_timestamp_seconds",
            "Time of the last reload without refusals",
        )
        self._openings = counter(
            "semblance_model_openings",
            "Models opened at a request, or tried; those of the start are not counted",
            ["result"],
        )
        for result in get_args(Opening):
            self._openings.labels(result)
        self.models_open = gauge("semblance_models_open", "Models that are open: others are opened at a request")
        self.models_refused = gauge(
            "semblance_models_refused",
            "Models refused at the start or the last reload, or that could not be opened at a request",
        )
        for tier in get_args(CacheTier):
            self.cache_counters(tier)
        for kind in get_args(RedisFailure):
            self._redis_failures.labels(kind)
        self._of_models: tuple[CounterFamily | HistogramFamily, ...] = (
            *(self._request_seconds, self._phase_seconds, self._inference_seconds, self._batch_rows, self._scores),
            *self._read.values(),
        )
        self._listed: set[str] = set()  # labels of all models
        self._served: set[str] = set()  # labels of the open ones

    def add_route(self, route: str) -> None:
        """Make the series of a route's answers that alerts ask."""
        for status in _WATCHED_STATUSES:
            self._requests.labels(route, status)

    def answered(
        self, route: str, model: str, status: int, seconds: float, timings: Timings | None, trace_id: str | None = None
    ) -> None:
        """Count one answer; `timings` are those of a request that scores, `trace_id` of one whose trace is sent."""
        model = model if model in self._served else NO_MODEL
        latency = self._request_seconds.labels(route, model)
        latency.observe(seconds)
        if trace_id is not None:
            latency.trace(seconds, trace_id)
        name = str(status)
        self._requests.labels(route, name if name in STATUSES else OTHER_STATUS).inc()
        if timings is not None and model != NO_MODEL:
            for phase, spent in zip(PHASES, timings.seconds, strict=True):
                self._phase_seconds.labels(phase, model).observe(spent)

    def cache_counters(self, tier: CacheTier) -> tuple[CounterSeries, CounterSeries]:
        """Hits and misses of one tier."""
        return self._cache_hits.labels(tier), self._cache_misses.labels(tier)

    def opened(self, result: Opening) -> None:
        """Count one opening at a request."""
        self._openings.labels(result).inc()

    def redis_failed(self, kind: RedisFailure) -> None:
        """Count one failure of Redis."""
        self._redis_failures.labels(kind).inc()

    def list(self, models: Mapping[str, Mapping[str, str]]) -> None:
        """Say which models are served, open or not, by label: the labels of `semblance_model_info`."""
        for label in self._listed - models.keys():
            self._model_info.remove(label)
        for label, info in models.items():
            self._model_info.labels(label).info(dict(info))
        self._listed = set(models)

    def serve(self, models: Mapping[str, "ModelTelemetry"]) -> None:
        """Give each model the series of its label, and remove series of labels that are gone; in the event loop.

        When another model takes a label over, it counts on in the same series, so no counter falls.
        """
        for label in self._served - models.keys():
            for family in self._of_models:
                family.forget("model", label)
            self._inference_failures.remove(label)
        self._served = set(models)
        self.models_open.set(len(models))
        for label, model in models.items():
            model.series = ModelSeries(
                read={what: family.labels(label) for what, family in self._read.items()},
                scores=self._scores.labels(label),
                failures=self._inference_failures.labels(label),
                runs={
                    graph: (self._batch_rows.labels(label, graph), self._inference_seconds.labels(label, graph))
                    for graph in model.graphs
                },
            )


class ModelSeries(NamedTuple):
    """The series that one model counts into; `runs` has rows and seconds of each graph's runs."""

    read: Mapping[str, CounterSeries]  # by the names of `_READ`
    scores: Histogram
    failures: Counter
    runs: dict[str, tuple[Histogram, Histogram]]


class ModelTelemetry:
    """What one model counts. Its first series are in no registry: a model that is still being proven may be refused."""

    def __init__(self, graphs: Iterable[str]) -> None:
        """Create series that are in no registry yet."""
        self.graphs = tuple(graphs)
        failures = Counter("semblance_inference_failures", "Of a model not yet served", registry=None)
        read = {what: CounterSeries() for what in _READ}
        self.series = ModelSeries(read, Histogram(_SCORES), failures, {})

    def read(self, **numbers: int) -> None:
        """Count what was read, by the names of `_READ`; in the event loop's thread."""
        for what, number in numbers.items():
            self.series.read[what].inc(number)

    def scored(self, scores: Sequence[float]) -> None:
        """Count the scores of pairs; in the event loop's thread."""
        self.series.scores.observe_all(scores)

    def failed(self) -> None:
        """Count one failed graph run; in any thread."""
        self.series.failures.inc()

    def ran(self, graph: str, rows: int, seconds: float) -> None:
        """Count one graph run; in any thread."""
        if (series := self.series.runs.get(graph)) is not None:
            batch, time = series
            batch.observe(rows)
            time.observe(seconds)
