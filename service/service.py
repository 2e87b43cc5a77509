"""The parts of a running service, opened from its settings."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

from service.engine import breaker
from service.engine.admission import RequestContext
from service.engine.breaker import Backend
from service.engine.cache import VectorCache
from service.engine.queue import Queue
from service.engine.vector_codec import RemoteCache
from service.folders import where_more_are
from service.machine import counts, usable_memory
from service.models.checks import HealthChecker
from service.models.defaults import USUAL_CLASSIFIER, USUAL_RERANKERS, Defaults, main_models, required_by
from service.models.opener import Opener
from service.models.registry import ModelRegistry
from service.models.reload import Reloader
from service.observe.metrics import KEPT_SECONDS, Exposition, LoopLag
from service.observe.telemetry import Telemetry
from service.schemas import Readiness
from service.scoring.scorer import Capability, Scorer
from service.settings import Settings

_GAUGES_SECONDS = 1.0  # after which other workers see what changed


class Service:
    """Models, caches, queue and metrics; passed to the routes."""

    def __init__(self, settings: Settings) -> None:
        """Read all models and open the defaults; backends are used from `start` on.

        Raises:
            StartupError: a model, a default or a provider is not as the settings say.
        """
        self.settings = settings
        self.counts = counts(settings)
        self.shutting_down = False  # set at the signal to stop
        self.replaced = False  # another worker serves in place of this one, which ends; the service stays ready
        # Set by the process that serves: when all is started, when all is closed, and to have other workers reload.
        self.started: Callable[[], None] = lambda: None
        self.closed: Callable[[], None] = lambda: None
        self.reload_others: Callable[[], None] = lambda: None
        # The last answers of GET /models, whole and not: one object for all, of whom many may not read it.
        self.told_models: dict[bool, bytes] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.telemetry = telemetry = Telemetry()
        kept = 0.0 if telemetry.shared else KEPT_SECONDS
        self.exposition = Exposition(telemetry.refresh, telemetry, kept_seconds=kept)
        remote = open_remote(settings, telemetry)
        self.backends: list[Backend] = [] if remote is None else [remote]
        self.cache = VectorCache(settings.cache_bytes, telemetry, remote)
        self.queue = Queue(
            self.counts.worker_threads,
            settings.max_queue_seconds,
            settings.request_timeout,
            on_drop=telemetry.dropped.inc,
        )
        telemetry.follow(telemetry.cache_entries, lambda: len(self.cache))
        telemetry.follow(telemetry.cache_bytes, lambda: self.cache.memory.held)
        telemetry.follow(telemetry.admitted, lambda: len(self.queue.admissions))
        telemetry.follow(telemetry.queue_seconds, lambda: self.queue.admissions.seconds)
        telemetry.in_flight_limit.set(settings.max_in_flight)
        telemetry.queue_limit.set(settings.max_queue_seconds)
        telemetry.memory_limit.set(usable_memory())
        telemetry.redis_wanted.set(remote is not None)
        for gauge in (telemetry.redis_up, telemetry.redis_writable):
            gauge.set(0)
        opener = Opener(settings, self.cache, self.queue)
        self.registry = ModelRegistry(telemetry, opener, main_models(settings), where_more_are(settings.models_dir))
        self.reloader = Reloader(settings, self.registry, opener, telemetry, required_by(settings))
        telemetry.reload_success.set(0)
        self.reloader.read_all()
        defaults = Defaults(settings, self.registry)
        self.defaults: Mapping[str, str] = defaults
        self.reloader.require(defaults.required())
        self.reloader.preload(defaults.opened_first())
        self.checks = HealthChecker(self.registry.values)
        telemetry.follow(telemetry.models_refused, lambda: len(self.reloader.problems))
        telemetry.follow(telemetry.ready, lambda: self.readiness()["status"] != "unready")
        self._lag = LoopLag(telemetry.loop_lag)

    @property
    def reranker(self) -> str | None:
        """The default model of the second stage of /rank, where it is served."""
        return next((name for name in USUAL_RERANKERS if name in self.registry), None)

    @property
    def classifier(self) -> str | None:
        """The model of /classify when a request names neither model nor labels: the usual one, else the first able one.

        Another model with labels of its own does not take its place; `GET /models` says which it is.
        """
        able = self.registry.able("classification")
        return next((name for name in able if name == USUAL_CLASSIFIER), able[0] if able else None)

    async def pick(self, context: RequestContext, route: str, name: str | None, capability: Capability) -> Scorer:
        """The scorer of a request's model, or without one of the route's default; raises as `ModelRegistry.pick`."""
        return await self.registry.pick(context, name or self.defaults[route], capability, ranks=route == "/rank")

    async def start(self) -> None:
        """Start checks and probes; the first probe of a backend is logged before requests are answered."""
        self.reloader.start()
        self.checks.start()
        self._lag.start()
        if self.backends:
            await self.probe()
            self._tasks.append(asyncio.create_task(self._keep_probing()))
        if self.telemetry.shared:
            self._tasks.append(asyncio.create_task(self._keep_refreshing_gauges()))
        self.started()

    async def probe(self) -> None:
        """Check the backends, for readiness, metrics and the next requests."""
        for backend in self.backends:
            await backend.probe()

    async def _keep_probing(self) -> None:
        while True:
            await asyncio.sleep(breaker.PROBE_SECONDS)
            await self.probe()

    async def _keep_refreshing_gauges(self) -> None:
        while True:
            self.telemetry.refresh()
            await asyncio.sleep(_GAUGES_SECONDS)

    async def close(self) -> None:
        """Stop and close all parts."""
        self.checks.close()
        await self.reloader.close()
        for task in self._tasks:
            task.cancel()
        self._lag.stop()
        self.queue.close()
        for backend in self.backends:
            await backend.close()
        self.closed()

    def readiness(self) -> Readiness:
        """The readiness by the last checks; degraded, but answering, while a configured Redis fails."""
        if self.shutting_down:
            problems = ["shutting down"]
        else:
            opened = ((name, model.opened) for name, model in self.registry.items())
            problems = [f"model {name}: {found.problem}" for name, found in opened if found and found.problem]
            if stale := self.checks.problem:
                problems.append(stale)
        remote = self.cache.remote
        redis: Literal["off", "up", "down"] = "off" if remote is None else "up" if remote.up else "down"
        reasons = [*problems, *self.reloader.problems]
        for backend in self.backends:
            reasons += backend.problems
        return {
            "status": "unready" if problems else "degraded" if reasons else "ready",
            "reasons": reasons,
            "models": list(self.registry),
            "redis": redis,
        }


def open_remote(settings: Settings, telemetry: Telemetry) -> RemoteCache | None:
    """The remote tier that the settings name, if they name one; nothing is sent yet."""
    if settings.redis_url is None:
        return None
    from service.engine.redis_cache import RedisCache  # whose library takes 9 MB

    return RedisCache(settings, telemetry)
