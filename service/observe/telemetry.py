"""All metrics. Labels come from closed sets (routes, statuses, models), never from the text of a request.

The series of a model begin when it is opened, those of its answers with the first of them. All others exist from the
first scrape on, so that rates include their first increase.

Several workers count in prometheus_client's multiprocess mode: each into files of its own in the folder that
`PROMETHEUS_MULTIPROC_DIR` names, and whichever is scraped adds up all of them. What an ended worker counted is kept
(`shared.py`). That mode has no series that end, no exemplars, and shares neither `Info` nor what the system says of a
process, so these are collected apart (`Telemetry.collect`).
"""

import collections
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from math import inf
from typing import Literal, NamedTuple, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    Summary,
    disable_created_metrics,
)
from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from service.observe import METRICS_FOLDER, logs, shared
from service.observe.metrics import PHASES

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each series, which nobody asks
RedisFailure = Literal["error", "timeout", "garbage", "dropped"]
CacheTier = Literal["scores", "memory", "redis"]
Opening = Literal["opened", "failed"]
Ending = Literal["asked", "killed", "failed", "hung"]  # of a worker process that was replaced
NO_MODEL = "none"  # no model was chosen, it is no longer served, or the route has none
OTHER_ROUTE = OTHER_STATUS = "other"
Mode = Literal["livesum", "livemin", "livemax"]
_MODES: tuple[Mode, ...] = get_args(Mode)
_MIN_OF_PROCESS = ("process_start_time_seconds", "process_max_fds")
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


class _ModelInfo(Collector):
    """The served models, open or not, by their labels."""

    def __init__(self) -> None:
        self.models: Mapping[str, Mapping[str, str]] = {}

    def collect(self) -> Iterable[Metric]:
        """The fields of each model."""
        family = InfoMetricFamily(
            "semblance_model", "Served models; provider is empty for one that is not open", labels=["model"]
        )
        for label, fields in self.models.items():
            family.add_metric([label], dict(fields))
        yield family


class _WorkerProcess:
    """What the system says of one worker's process, as metrics that all workers share."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._process = ProcessCollector(registry=None)
        self._families: dict[str, Gauge | Counter] = {}
        for family in self._process.collect():
            if family.type == "counter":
                self._families[family.name] = Counter(family.name, family.documentation, registry=registry)
            else:
                mode: Mode = "livemin" if family.name in _MIN_OF_PROCESS else "livesum"
                self._families[family.name] = _gauge(family.name, family.documentation, mode, registry)
        self._counted = dict.fromkeys(self._families, 0.0)

    def refresh(self) -> None:
        """Set each metric to what the system says of this process now; counters grow by what was added since."""
        for family in self._process.collect():
            metric, value = self._families[family.name], family.samples[0].value
            if isinstance(metric, Counter):
                metric.inc(value - self._counted[family.name])
                self._counted[family.name] = value
            else:
                metric.set(value)


def _gauge(name: str, documentation: str, mode: Mode, registry: CollectorRegistry | None) -> Gauge:
    """A gauge; `mode` says what several workers' values are together."""
    gauge = Gauge(name, documentation, multiprocess_mode=mode, registry=registry)
    if mode == "livemin":
        gauge.set(inf)  # until it is known: a worker that still begins makes no other's value less
    return gauge


def restarts_counter(registry: CollectorRegistry | None) -> Counter:
    """The counter of replaced workers, which their parent process counts."""
    return Counter(
        "semblance_worker_restarts",
        "Worker processes replaced: asked to end, killed by a signal, failed with an exit code, or hung",
        ["reason"],
        registry=registry,
    )


class Telemetry(Collector):
    """All metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._folder = os.environ.get(METRICS_FOLDER)
        self._followed: list[tuple[Gauge, Callable[[], float]]] = []
        self._worker: _WorkerProcess | None = None
        if self._folder is not None:
            self._worker = _WorkerProcess(registry)
        else:
            ProcessCollector(registry=registry)
            GCCollector(registry=registry)
        self._platform = PlatformCollector(registry=registry)
        histogram, counter = partial(Histogram, registry=registry), partial(Counter, registry=registry)
        summary = partial(Summary, registry=registry)
        total, minimum, maximum = (partial(_gauge, mode=mode, registry=registry) for mode in _MODES)
        self._request_seconds = histogram(
            "semblance_request_seconds",
            "From the request's head to its answer's end; model is none if none answered, or it is no longer served",
            ["route", "model"],
            buckets=_SECONDS,
        )
        self._phase_seconds = summary(
            "semblance_phase_seconds",
            "Of one answered request, its time in each phase, 0 where it had none (docs/metrics.md)",
            ["phase", "model"],
        )
        self.loop_lag = histogram(
            "semblance_event_loop_lag_seconds",
            "How late callbacks of the event loop are, 50 times a second; work of more than 0.02 s is always noticed",
            buckets=_LAG_SECONDS,
        )
        self._requests = counter(
            "semblance_requests",
            "Answers; 499: the client left or did not read its answer; other: any other status",
            ["route", "status"],
        )
        self.rate_limited = counter(
            "semblance_rate_limited", "Requests refused by SEMBLANCE_RATE_LIMIT; other 429s are overload"
        )
        self._log_lines_dropped = counter(
            "semblance_log_lines_dropped", "Log lines dropped because nobody reads standard error"
        )
        self._lines_counted = 0
        processes = total("semblance_worker_processes", "Worker processes that answer (SEMBLANCE_WORKERS)")
        self.follow(processes, lambda: 1.0)  # this one
        restarts = restarts_counter(registry)
        for reason in get_args(Ending):
            restarts.labels(reason)
        self.in_flight = total("semblance_requests_in_flight", "Requests being answered")
        self.in_flight_limit = total(
            "semblance_requests_in_flight_limit",
            "More requests in flight are refused: SEMBLANCE_MAX_IN_FLIGHT of all workers",
        )
        self.admitted = total("semblance_requests_admitted", "Admitted large requests that are not answered yet")
        self.dropped = counter(
            "semblance_dropped",
            "Requests whose work was dropped before all of it began: the client left, or its time was over",
        )
        self.queue_seconds = total(
            "semblance_queue_seconds", "Expected seconds until all admitted work is done, at the recent pace"
        )
        self.queue_limit = total(
            "semblance_queue_limit_seconds",
            "A longer expected wait is refused: SEMBLANCE_MAX_QUEUE_SECONDS of all workers",
        )
        self.memory_limit = minimum(
            "semblance_memory_limit_bytes", "Memory that all processes of this container may use, or the machine's"
        )
        self.ready = minimum("semblance_ready", "0 while /health/ready says unready")
        self._inference_seconds = summary(
            "semblance_inference_seconds",
            "One graph run of a served model, also in health checks",
            ["model", "graph"],
        )
        self._batch_rows = summary(
            "semblance_batch_rows",
            "Sentences or pairs in one graph run",
            ["model", "graph"],
        )
        self._inference_failures = counter(
            "semblance_inference_failures", "Graphs that raised or gave no finite number", ["model"]
        )
        self._scores = histogram(
            "semblance_score", "Calibrated scores of pairs, also in rankings; shows drift", ["model"], buckets=_SCORES
        )
        self._read = {what: counter(name, said, ["model"]) for what, (name, said) in _READ.items()}
        self._cache_hits = counter(
            "semblance_cache_hits",
            "Vectors found in memory or in redis, and pairs' whole scores found in scores; each pair counts",
            ["tier"],
        )
        self._cache_misses = counter("semblance_cache_misses", "Vectors, and scores, not found", ["tier"])
        self.cache_entries = total("semblance_cache_entries", "Vectors in memory")
        self.cache_bytes = total(
            "semblance_cache_bytes", "Bytes of vectors, scores and texts' token ids in memory, of SEMBLANCE_CACHE_BYTES"
        )
        self._redis_failures = counter(
            "semblance_redis_failures",
            "Failures of Redis, also in probes: error, timeout, garbage (no embedding, or not signed as "
            "SEMBLANCE_REDIS_SECRET says), dropped (a write, while too many were under way)",
            ["kind"],
        )
        self.redis_wanted = maximum("semblance_redis_wanted", "Whether SEMBLANCE_REDIS_URL is set")
        self.redis_up = minimum(
            "semblance_redis_up",
            "Whether Redis could be read at the last request, or the last probe (every two seconds)",
        )
        self.redis_writable = minimum("semblance_redis_writable", "Whether the last write to Redis succeeded")
        self._model_info = _ModelInfo()
        registry.register(self._model_info)
        self.reload_failures = counter(
            "semblance_model_reload_failures",
            "Reloads that refused a model, and kept the one served before",
            ["model"],
        )
        self.reload_success = minimum(
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
        self.models_open = total("semblance_models_open", "Models that are open: others are opened at a request")
        self.models_refused = maximum(
            "semblance_models_refused",
            "Models refused at the start or the last reload, or that could not be opened at a request",
        )
        for tier in get_args(CacheTier):
            self.cache_counters(tier)
        for kind in get_args(RedisFailure):
            self._redis_failures.labels(kind)
        self._of_models = (
            *(self._request_seconds, self._phase_seconds, self._inference_seconds, self._batch_rows, self._scores),
            *(self._inference_failures, *self._read.values()),
        )
        # The series of an answer, each looked up once.
        self._latency, self._answers = cache(self._request_seconds.labels), cache(self._requests.labels)
        self._phases = cache(self._phase_seconds.labels)
        self._served: set[str] = set()  # labels of the open ones

    @property
    def shared(self) -> bool:
        """Whether several workers count together."""
        return self._folder is not None

    def follow(self, gauge: Gauge, read: Callable[[], float]) -> None:
        """Have a gauge show what `read` returns, each time that it is looked at; in the event loop."""
        self._followed.append((gauge, read))

    def refresh(self) -> None:
        """Set the gauges that follow something; before a scrape, and of a worker each second, for others' scrapes."""
        for gauge, read in self._followed:
            gauge.set(read())
        dropped = logs.dropped()
        self._log_lines_dropped.inc(max(0, dropped - self._lines_counted))
        self._lines_counted = dropped
        if self._worker is not None:
            self._worker.refresh()

    def collect(self) -> Iterable[Metric]:
        """The families of this process, or of all workers together; in any thread."""
        if self._folder is None:
            yield from self.registry.collect()
            return
        yield from shared.read(self._folder)
        yield from self._model_info.collect()
        yield from self._platform.collect()

    def add_route(self, route: str) -> None:
        """Make the series of a route's answers that alerts ask."""
        for status in _WATCHED_STATUSES:
            self._answers(route, status)

    def answered(
        self, route: str, model: str, status: int, seconds: float, phases: Sequence[float], trace_id: str | None = None
    ) -> None:
        """Count one answer; `phases` has their seconds if it asked a model, `trace_id` is of one that is traced."""
        model = model if model in self._served else NO_MODEL
        self._latency(route, model).observe(seconds, None if trace_id is None else {"trace_id": trace_id})
        name = str(status)
        self._answers(route, name if name in STATUSES else OTHER_STATUS).inc()
        if phases and model != NO_MODEL:
            for phase, spent in zip(PHASES, phases, strict=True):
                self._phases(phase, model).observe(spent)

    def cache_counters(self, tier: CacheTier) -> tuple[Counter, Counter]:
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
        self._model_info.models = dict(models)

    def serve(self, models: Mapping[str, "ModelTelemetry"]) -> None:
        """Give each model the series of its label, and remove series of labels that are gone; in the event loop.

        When another model takes a label over, it counts on in the same series, so no counter falls.
        """
        if not self.shared:  # where others count on in theirs
            for label in self._served - models.keys():
                for family in self._of_models:
                    family.remove_by_labels({"model": label})
            self._latency.cache_clear()
            self._phases.cache_clear()
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

    read: Mapping[str, Counter]  # by the names of `_READ`
    scores: Histogram
    failures: Counter
    runs: dict[str, tuple[Summary, Summary]]


class ModelTelemetry:
    """What one model counts, once it is served: nothing of a model that is still being proven, and may be refused."""

    def __init__(self, graphs: Iterable[str]) -> None:
        """Name the graphs of the model, whose series begin when `Telemetry.serve` is called."""
        self.graphs = tuple(graphs)
        self.series: ModelSeries | None = None

    def tokenised(self, **numbers: int) -> None:
        """Count what was read, by the names of `_READ`."""
        if self.series is not None:
            for what, number in numbers.items():
                if number:
                    self.series.read[what].inc(number)

    def scored(self, scores: Sequence[float]) -> None:
        """Count the scores of pairs."""
        if self.series is not None:
            observe_all(self.series.scores, scores)

    def failed(self) -> None:
        """Count one failed graph run; in any thread."""
        if self.series is not None:
            self.series.failures.inc()

    def ran(self, graph: str, rows: int, seconds: float) -> None:
        """Count one graph run; in any thread."""
        if self.series is not None:
            batch, time = self.series.runs[graph]
            batch.observe(rows)
            time.observe(seconds)


def observe_all(histogram: Histogram, values: Sequence[float]) -> None:
    """Add many values to a histogram: of a ranking's thousand scores, one by one takes more than scoring them."""
    bounds = histogram._upper_bounds  # prometheus_client has no public call for this; a test compares it with `observe`
    for place, number in collections.Counter(bisect_left(bounds, value) for value in values).items():
        histogram._buckets[place].inc(number)
    histogram._sum.inc(sum(values))
