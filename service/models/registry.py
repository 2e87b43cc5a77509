"""Opened models by name."""

import logging
import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Literal, NamedTuple

from contract.golden import GoldenPair, GoldenPairs, tolerance_on
from contract.manifest import ScoreTask, Task
from service.compute.cache import Tiers
from service.errors import InferenceFailed, ModelError, UnknownModel, UnknownVersion, UnsupportedTask
from service.models.repository import FileStamps, Release
from service.observe.logs import fields
from service.observe.telemetry import ModelTelemetry, Telemetry
from service.parsing import AT
from service.scoring.scorer import Scorer
from service.scoring.siamese import SiameseScorer
from service.settings import CachePolicy

log = logging.getLogger(__name__)

Capability = Task | Literal["embedding", "explanation"]


class Need(NamedTuple):
    """A name in a setting, and the capability that its model must have."""

    name: str
    capability: Capability | None = None


class Model:
    """A scorer with its golden pairs, its release, and where it runs."""

    def __init__(
        self,
        release: Release,
        scorer: Scorer,
        telemetry: ModelTelemetry,
        golden: GoldenPairs,
        placement: Mapping[str, int],
    ) -> None:
        """Take a model that is not yet proven; `placement` has the number of its graphs' nodes on each provider."""
        self.release = release
        self.scorer = scorer
        self.manifest = scorer.manifest
        self.telemetry = telemetry
        self.placement = placement
        self.provider = "cuda" if "cuda" in placement else "cpu"
        self.tiers = Tiers(memory=False, redis=False)  # set by `prove`
        self.capabilities = _capabilities(scorer)
        self.stamps: FileStamps = {}  # of its files, when they were last verified
        self._golden = golden.pairs
        self._problem: str | None = None  # at the last check

    def prove(self, policy: CachePolicy) -> None:
        """Check all golden pairs and the manifest's other claims, measure expected times, choose the cache tiers.

        Raises:
            ModelError: an answer differs from the published one, or a claim does not hold.
        """
        for pair in self._golden:
            if problem := self._differs(pair):
                raise ModelError(f"model {self.release.name} does not answer as published: {problem}")
        a = self.scorer.tokenise([pair.a for pair in self._golden])
        b = self.scorer.tokenise([pair.b for pair in self._golden])
        try:
            problem = self.scorer.false_claim(a, b)
        except InferenceFailed as error:
            problem = error.message
        if problem:
            raise ModelError(f"model {self.release.name} is not what its manifest says: {problem}")
        self.tiers = self.scorer.measure([pair.a for pair in self._golden], [pair.b for pair in self._golden], policy)

    def check(self) -> None:
        """Check the first golden pair; in any thread (see `service/models/checks.py`)."""
        try:
            self._problem = self._differs(self._golden[0])
        except Exception as error:
            log.exception("a model could not be asked", extra=fields(model=self.release.name))
            self._problem = f"could not be asked: {type(error).__name__}"

    def problem(self) -> str | None:
        """What was wrong at the last check."""
        return self._problem

    def _differs(self, pair: GoldenPair) -> str | None:
        a, b = self.scorer.tokenise([pair.a]), self.scorer.tokenise([pair.b])
        try:
            published: dict[str, float] = {}
            found: dict[str, float] = {}
            if self.manifest.similarity is not None:
                answer = self.scorer.similarity_now(a, b)
                for name, value, now in (
                    ("raw_score", pair.raw_score, answer.raw_score),
                    ("score", pair.score, answer.score),
                ):
                    if value is not None:
                        published[name], found[name] = value, float(now[0])
            probable: tuple[tuple[ScoreTask, float | None], ...] = (
                ("paraphrase", pair.paraphrase),
                ("relevance", pair.relevance),
            )
            for task, value in probable:
                if task in self.manifest.tasks and value is not None:
                    published[task], found[task] = value, float(self.scorer.similarity_now(a, b, task).score[0])
            if self.manifest.entailment is not None and pair.probabilities is not None:
                published.update((str(label), value) for label, value in pair.probabilities.items())
                found |= self.scorer.entailment_now(a, b)[0]
            if isinstance(self.scorer, SiameseScorer) and pair.classes is not None:
                for side, sentence, classes in zip("ab", (a, b), pair.classes, strict=True):
                    labelled = self.scorer.classification_now(sentence)[0]
                    published.update((f"{label} of {side}", value) for label, value in classes.items())
                    found |= {f"{label} of {side}": labelled.get(label, math.nan) for label in classes}
        except InferenceFailed as error:
            return error.message
        for name, value in published.items():
            if not abs(found[name] - value) <= tolerance_on(self.provider):
                return f"golden pair {pair.a!r} / {pair.b!r}: {name} is {found[name]:.6f}, published {value:.6f}"
        return None


def _capabilities(scorer: Scorer) -> tuple[Capability, ...]:
    found: list[Capability] = [*scorer.manifest.tasks]
    if isinstance(scorer, SiameseScorer):
        found.append("embedding")
    if scorer.manifest.similarity is not None:  # what is explained is its score
        found.append("explanation")
    return tuple(found)


class Registry(Mapping[str, Model]):
    """Models by name. A model may have several names; iteration yields one name of each model, its label in metrics:
    the bare id, or `ID@N` for a version that the bare id does not mean.
    """

    def __init__(self, telemetry: Telemetry, more: str = "") -> None:
        """Start without models; changes are passed to `telemetry`, `more` ends the message that a model is missing."""
        self._telemetry = telemetry
        self._more = more
        self._names: Mapping[str, Model] = {}
        self._labels: Mapping[str, Model] = {}
        self._versions: Mapping[str, tuple[int, ...]] = {}

    def __getitem__(self, name: str) -> Model:
        return self._names[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def values(self) -> ValuesView[Model]:
        """The models at this moment; in any thread, since `replace` never changes a mapping that is in use."""
        return self._labels.values()

    def items(self) -> ItemsView[str, Model]:
        """The same, with their labels."""
        return self._labels.items()

    @property
    def names(self) -> Mapping[str, Model]:
        """All names."""
        return self._names

    def replace(self, names: Mapping[str, Model], versions: Mapping[str, tuple[int, ...]]) -> None:
        """Serve these models; requests under way keep their scorers. In the event loop.

        Args:
            names: name -> model.
            versions: id -> versions in the model's folder, served or not.
        """
        models = sorted(
            {id(model): model for model in names.values()}.values(),
            key=lambda model: (model.release.id, names.get(model.release.id) is not model, model.release.version or 0),
        )
        self._names = dict(sorted(names.items(), key=lambda item: (item[1].release.id, item[0])))
        self._labels = {label_of(model, names): model for model in models}
        self._versions = dict(versions)
        self._telemetry.serve({label: model.telemetry for label, model in self._labels.items()})

    def versions(self, name: str) -> tuple[int, ...]:
        """The versions in the folder of a model, served or not."""
        return self._versions.get(name, ())

    def able(self, capability: Capability) -> list[str]:
        """The models with this capability."""
        return [name for name, model in self._labels.items() if capability in model.capabilities]

    def find(self, name: str, task: Capability, field: str = "model") -> Model:
        """The model of a name, which is an id or ID@VERSION; `task` and `field` (of the request) are for messages.

        Raises:
            UnknownModel: there is none, or not in this version.
        """
        model = self._names.get(name)
        if model is not None:
            return model
        bare = name.partition(AT)[0]
        if bare == name or bare not in self._names:
            raise UnknownModel(name, task, list(self), self.able(task), field, self._more)
        served = [other for other in self._names if other.partition(AT)[0] == bare and other != bare]
        raise UnknownVersion(name, bare, served, self.versions(bare), field)

    def choose(self, name: str, capability: Capability, field: str = "model") -> Model:
        """The model of a name, with a capability; other arguments as for `find`.

        Raises:
            UnknownModel: no such model, or not in this version.
            UnsupportedTask: it lacks the capability.
        """
        model = self._names.get(name) or self.find(name, capability, field)
        if capability not in model.capabilities:
            raise UnsupportedTask(name, capability, self.able(capability), field)
        return model

    async def pick(self, name: str, capability: Capability, field: str = "model") -> Scorer:
        """The scorer of a model with a capability; raises as `choose`."""
        return self.choose(name, capability, field).scorer

    async def pick_encoder(
        self, name: str, capability: Literal["embedding", "classification"] = "embedding"
    ) -> SiameseScorer:
        """The scorer of a model that embeds, or labels single texts; raises as `pick`."""
        scorer = await self.pick(name, capability)
        assert isinstance(scorer, SiameseScorer), "only siamese models have these capabilities"
        return scorer


def label_of(model: Model, names: Mapping[str, Model]) -> str:
    """The label of a model in metrics."""
    return model.release.id if names.get(model.release.id) is model else model.release.name


def unmet(needs: Iterable[tuple[str, Need]], names: Mapping[str, Model]) -> Iterator[tuple[Need, str]]:
    """The needs of settings (name of the setting, need) that no model meets, each with a message."""
    for setting, need in needs:
        model = names.get(need.name)
        if model is not None and (need.capability is None or need.capability in model.capabilities):
            continue
        what = "which is not among the models" if model is None else f"which has no {need.capability}"
        able = sorted(
            name for name, other in names.items() if need.capability is None or need.capability in other.capabilities
        )
        with_it = "the models are" if need.capability is None else f"models with {need.capability}:"
        yield need, f"{setting} is {need.name!r}, {what}; {with_it} {', '.join(able) or 'none'}"
