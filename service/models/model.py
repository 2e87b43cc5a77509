"""A model of the folder: its manifest from the start, and once somebody asks for it, what answers."""

import asyncio
import logging
import math
from typing import NamedTuple

from core.golden import GoldenPair, GoldenPairs, tolerance_on
from core.manifest import Manifest
from service.engine.cache import CacheTiers
from service.errors import InferenceFailed, ModelError
from service.models.repository import FileStamps, ModelFolder
from service.observe.logs import fields
from service.observe.telemetry import ModelTelemetry
from service.scoring.families import FAMILIES
from service.scoring.scorer import Scorer
from service.settings import CachePolicy

log = logging.getLogger(__name__)


class Failure(NamedTuple):
    """Why a model could not be opened at a request."""

    reason: str
    retry_at: float  # by the monotonic clock: it is not tried again before


class ServedModel:
    """One release whose files are as its manifest says; open, or opened at its first request."""

    def __init__(self, release: ModelFolder, manifest: Manifest, stamps: FileStamps) -> None:
        """Take a model that is not open; `stamps` are those of its files when they were verified."""
        self.release = release
        self.manifest = manifest
        self.stamps = stamps
        self.capabilities = FAMILIES[manifest.family].capabilities(manifest)
        self.opened: OpenModel | None = None
        self.opening: asyncio.Task[None] | None = None  # for the requests that wait for it
        self.failure: Failure | None = None

    @property
    def info(self) -> dict[str, str]:
        """The labels of `semblance_model_info`."""
        return {
            "fingerprint": self.manifest.fingerprint,
            "provider": "" if self.opened is None else self.opened.provider,
            "architecture": self.manifest.architecture,
        }

    @property
    def problem(self) -> str | None:
        """Why it does not answer, or not as published, as far as is known; None if it is fine, or was not asked yet."""
        if self.opened is not None:
            return self.opened.problem
        return None if self.failure is None else self.failure.reason

    @property
    def scorer(self) -> Scorer:
        """What answers; only of an open model."""
        assert self.opened is not None, f"{self.release.id} is not open"
        return self.opened.scorer


class OpenModel:
    """A scorer with its golden pairs, and where it runs."""

    def __init__(
        self,
        name: str,
        scorer: Scorer,
        telemetry: ModelTelemetry,
        golden: GoldenPairs,
        provider: str,
        *,
        has_integers: bool = False,
    ) -> None:
        """Take a model that is not yet proven.

        `provider` is `cuda` where any of its graphs has it, else `cpu`; `has_integers`: any multiplies integers.
        """
        self.scorer = scorer
        self.telemetry = telemetry
        self.provider = provider
        self.tiers = CacheTiers()  # set by `prove`
        self.problem: str | None = None  # what was wrong at the last check
        self._name = name
        self._golden = golden.pairs
        self._tolerance = tolerance_on(provider, has_integers=has_integers)

    def prove(self, policy: CachePolicy) -> None:
        """Check all golden pairs, measure expected times, choose the cache tiers.

        Raises:
            ModelError: an answer differs from the published one.
        """
        for pair in self._golden:
            if problem := self._differs(pair):
                raise ModelError(f"model {self._name} does not answer as published: {problem}")
        self.tiers = self.scorer.measure([pair.a for pair in self._golden], [pair.b for pair in self._golden], policy)

    def check(self) -> None:
        """Check the first golden pair; in any thread (see `service/models/checks.py`)."""
        try:
            self.problem = self._differs(self._golden[0])
        except Exception as error:
            log.exception("a model could not be asked", extra=fields(model=self._name))
            self.problem = f"could not be asked: {type(error).__name__}"

    def _differs(self, pair: GoldenPair) -> str | None:
        try:
            found = self.scorer.answers(pair.a, pair.b)
        except InferenceFailed as error:
            return error.message
        for name, value in pair.answers().items():
            answer = found.get(name, math.nan)
            if not abs(answer - value) <= self._tolerance:
                return f"golden pair {pair.a!r} / {pair.b!r}: {name} is {answer:.6f}, published {value:.6f}"
        return None
