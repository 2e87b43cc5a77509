"""Models by name. A model that is not open is opened by the first request that picks it."""

import asyncio
import logging
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from time import monotonic
from typing import NamedTuple

from service.engine.admission import RequestContext
from service.errors import ModelUnavailable, UnknownModel, UnsupportedTask
from service.models.model import Failure, ServedModel
from service.models.opener import Opener, without_paths
from service.observe.logs import fields
from service.observe.telemetry import Telemetry
from service.scoring.scorer import Capability, Scorer

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0  # after an opening that failed, the same answer for so long: each attempt takes a second of CPU


class RequiredModel(NamedTuple):
    """A setting that names a model, and what that model must be able to do."""

    setting: str
    name: str
    capability: Capability | None = None


class ModelRegistry(Mapping[str, ServedModel]):
    """Models by id, those that are listed first before the others."""

    def __init__(self, telemetry: Telemetry, opener: Opener, main: Sequence[str] = (), more: str = "") -> None:
        """Start with a registry that has no models.

        Args:
            telemetry: gets the series of the models that are open.
            opener: opens models at their first request.
            main: names of the models that are listed first, where they are there.
            more: ends the message that a model is missing.
        """
        self.main: Sequence[str] = ()  # the ids of those; all ids where there are none
        self._main = main
        self._telemetry = telemetry
        self._opener = opener
        self._more = more
        self._models: Mapping[str, ServedModel] = {}
        self.reloading = asyncio.Lock()  # held by a reload under way

    def __getitem__(self, name: str) -> ServedModel:
        return self._models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def values(self) -> ValuesView[ServedModel]:
        """The models at this moment; in any thread, since `replace` never changes a mapping that is in use."""
        return self._models.values()

    def items(self) -> ItemsView[str, ServedModel]:
        """The same, with their ids."""
        return self._models.items()

    def replace(self, models: Mapping[str, ServedModel]) -> None:
        """Serve these models, by their ids; requests under way keep their scorers. In the event loop."""
        self._models = dict(sorted(models.items()))
        self.main = [name for name in dict.fromkeys(self._main) if name in models] or list(self._models)
        self._count()

    def _count(self) -> None:
        """Have the metrics of the models that are open now."""
        self._telemetry.list({name: model.info for name, model in self._models.items()})
        opened = {name: model.opened for name, model in self._models.items()}
        self._telemetry.serve({name: found.telemetry for name, found in opened.items() if found is not None})

    def main_first(self) -> list[str]:
        """All ids, those that are listed first before the others."""
        return [*self.main, *(name for name in self._models if name not in self.main)]

    def able(self, capability: Capability) -> list[str]:
        """The models with this capability, those that are listed first before the others."""
        return [name for name in self.main_first() if capability in self._models[name].capabilities]

    def find(self, name: str, task: Capability, field: str = "model", *, ranks: bool = False) -> ServedModel:
        """The model of an id; `task`, `field` (of the request) and whether it `ranks` are for messages.

        Raises:
            UnknownModel: there is none.
        """
        model = self._models.get(name)
        if model is None:
            able = dict.fromkeys([*(self.able("relevance") if ranks else ()), *self.able(task)])
            raise UnknownModel(name, "ranking" if ranks else task, list(able), field, self._more)
        return model

    def choose(self, name: str, capability: Capability, field: str = "model", *, ranks: bool = False) -> ServedModel:
        """The model of an id, with a capability; other arguments as for `find`.

        Raises:
            UnknownModel: no such model.
            UnsupportedTask: it lacks the capability.
        """
        model = self.find(name, capability, field, ranks=ranks)
        if capability not in model.capabilities:
            raise UnsupportedTask(name, capability, self.able(capability), field)
        return model

    async def pick(
        self,
        context: RequestContext,
        name: str,
        capability: Capability,
        field: str = "model",
        *,
        ranks: bool = False,
    ) -> Scorer:
        """The scorer of a model with a capability; opens the model if it is not open; arguments as for `find`.

        Raises:
            UnknownModel: no such model.
            UnsupportedTask: it lacks the capability.
            ModelUnavailable: it cannot be opened.
        """
        while (model := self.choose(name, capability, field, ranks=ranks)).opened is None:
            await self.open(context, model)
        return model.scorer

    async def open(self, context: RequestContext, model: ServedModel) -> None:
        """Open a model in the opener's thread, once for all requests that wait for it; or a reload replaces it.

        Their time limits stand still meanwhile: opening has its own (`opener.STEP_SECONDS`).

        Raises:
            ModelUnavailable: it cannot be opened, or could not a few seconds ago.
        """
        left = 0.0 if model.failure is None else model.failure.retry_at - monotonic()
        if model.failure is not None and left > 0 and not self.reloading.locked():
            raise ModelUnavailable(model.release.id, model.failure.reason, left)
        if model.opening is None:
            model.opening = asyncio.get_running_loop().create_task(self._open(model))
            # Whoever waits may have left: the error is then in the log alone.
            model.opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        with context.paused():
            await asyncio.shield(model.opening)

    async def _open(self, model: ServedModel) -> None:
        name = model.release.id
        try:
            model.opened = await self._opener.run_in_thread(self._opener.open, model)
        except Exception as error:
            async with self.reloading:  # its folder may have another model by now, which a reload under way takes up
                pass
            if self._models.get(name) is not model:
                return
            reason = self._opener.describe_error(error)
            log.error("model not opened", extra=fields(model=name, reason=reason))
            model.failure = Failure(without_paths(reason), monotonic() + RETRY_SECONDS)
            self._telemetry.opened("failed")
            raise ModelUnavailable(name, model.failure.reason, RETRY_SECONDS) from error
        finally:
            model.opening = None
        model.failure = None
        self._telemetry.opened("opened")
        self._count()

    def close(self) -> None:
        """Give up what is being opened."""
        for model in self.values():
            if model.opening is not None:
                model.opening.cancel()


def unmet(required: Iterable[RequiredModel], names: Mapping[str, ServedModel]) -> Iterator[tuple[RequiredModel, str]]:
    """The settings whose model is missing, or lacks the capability, each with a message."""
    for each in required:
        setting, name, capability = each
        model = names.get(name)
        if model is not None and (capability is None or capability in model.capabilities):
            continue
        what = "which is not among the models" if model is None else f"which has no {capability}"
        able = sorted(n for n, other in names.items() if capability is None or capability in other.capabilities)
        with_it = "the models are" if capability is None else f"models with {capability}:"
        yield each, f"{setting} is {name!r}, {what}; {with_it} {', '.join(able) or 'none'}"
