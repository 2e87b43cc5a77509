"""Everything a running service holds, opened from its settings and closed again."""

from collections.abc import Callable, Mapping
from typing import Literal

from service.cache import VectorCache
from service.cpus import counts
from service.rate_limit import open_rate_limit
from service.redis_cache import RedisCache
from service.registry import Need, Opener, Registry
from service.reload import Reloader
from service.schemas import Readiness
from service.settings import Settings
from service.telemetry import Telemetry
from service.workers import Workers

USUAL_RERANKER = "pwim-qa"  # published for answer selection; a models folder need not have it


class Service:
    """Models, cache, workers and metrics; passed to the routes, and swapped piecewise by tests."""

    def __init__(self, settings: Settings) -> None:
        """Open the models; Redis is not asked before `start`.

        Raises:
            StartupError: a model, a default or a provider is not as the settings say.
        """
        self.settings = settings
        self.counts = counts(settings)
        self.shutting_down = False  # set by the server
        self.telemetry = telemetry = Telemetry()
        self.redis: RedisCache | None = None
        if settings.redis_url is not None:
            self.redis = RedisCache(
                settings.redis_url.get_secret_value(),
                settings.redis_address or "",
                telemetry,
                timeout_seconds=settings.redis_timeout_ms / 1000,
                ttl_seconds=settings.redis_ttl_seconds,
                dtype=settings.redis_dtype,
            )
        self.cache = VectorCache(settings.cache_size, telemetry, self.redis)
        self.workers = Workers(self.counts.worker_threads, settings.max_waiting, settings.max_queue_seconds)
        self.rate_limit = open_rate_limit(settings, telemetry)
        telemetry.watch(telemetry.cache_entries, lambda: len(self.cache))
        telemetry.watch(telemetry.workers_busy, lambda: self.workers.busy)
        telemetry.watch(telemetry.queue_seconds, lambda: self.workers.queue_seconds)
        self.defaults: Mapping[str, str] = {
            "/similarity": settings.default_similarity,
            "/rank": settings.default_rank,
            "/entailment": settings.default_entailment,
            "/embed": settings.default_similarity,
            "/explain": settings.default_similarity,
        }
        needs = [
            ("SEMBLANCE_DEFAULT_SIMILARITY", Need(settings.default_similarity, "similarity")),
            ("SEMBLANCE_DEFAULT_RANK", Need(settings.default_rank, "similarity")),
            ("SEMBLANCE_DEFAULT_ENTAILMENT", Need(settings.default_entailment, "entailment")),
        ]
        if settings.default_rerank is not None:
            needs.append(("SEMBLANCE_DEFAULT_RERANK", Need(settings.default_rerank, "similarity")))
        self.registry = Registry(telemetry)
        opener = Opener(settings, self.cache, self.workers)
        self.reloader = Reloader(settings, self.registry, opener, telemetry, needs)
        self.reloader.open_all()
        self.reload_others: Callable[[], None] = lambda: None  # where other processes serve the same folder

    @property
    def reranker(self) -> str | None:
        """The second model of /rank, when a request names none."""
        return self.settings.default_rerank or (USUAL_RERANKER if USUAL_RERANKER in self.registry else None)

    async def start(self) -> None:
        """Ask Redis once, so that the log says at once whether it answers; look after the models folder."""
        self.reloader.start()
        if self.redis is not None:
            await self.redis.ping()

    async def close(self) -> None:
        """Finish what is under way."""
        await self.reloader.close()
        self.workers.close()
        if self.redis is not None:
            await self.redis.close()
        if self.rate_limit is not None:
            await self.rate_limit.close()

    def readiness(self) -> Readiness:
        """Ask each model its first golden pair; a Redis that is down degrades, but does not stop."""
        if self.shutting_down:
            problems = ["shutting down"]
        else:
            asked = ((name, model.problem()) for name, model in self.registry.items())
            problems = [f"model {name}: {problem}" for name, problem in asked if problem]
        redis: Literal["off", "up", "down"] = "off" if self.redis is None else "up" if self.redis.up else "down"
        reasons = [*problems, *self.reloader.problems]
        if redis == "down":
            reasons.append("redis does not answer: vectors are computed instead")
        return {
            "status": "unready" if problems else "degraded" if reasons else "ready",
            "reasons": reasons,
            "models": list(self.registry),
            "redis": redis,
        }
