"""Reads the models folder at the start, and again while the service runs: new and changed models are swapped in.

Files are read and held against their manifests; models that are in use, or always open, are also opened and proven,
others at their first request (`ModelRegistry.open`). That is done in a thread; the event loop only swaps models, so no
request waits or fails, and requests under way keep their scorers. A model that cannot be opened or proven is refused,
and the one served before stays.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from core.errors import ContractError, ManifestError
from core.manifest import MANIFEST_NAME, FileEntry, Manifest
from service.errors import ModelError
from service.machine import trim_allocator
from service.models.defaults import USUAL
from service.models.model import ServedModel
from service.models.opener import Opener, without_paths
from service.models.registry import ModelRegistry, RequiredModel, unmet
from service.models.repository import ModelFolder, RepositoryContents, list_folders
from service.observe.logs import fields
from service.observe.telemetry import Telemetry
from service.parsing import ALL, NONE
from service.schemas import ReloadedModel, ReloadReport
from service.settings import Settings

log = logging.getLogger(__name__)

REPLACING_SECONDS = 0.5  # a folder may be missing for a moment while it is replaced


Outcome = Literal["unchanged", "reloaded", "added", "removed", "failed"]


class Reloader:
    """Keeps a registry in line with the models folder and the settings."""

    def __init__(
        self,
        settings: Settings,
        registry: ModelRegistry,
        opener: Opener,
        telemetry: Telemetry,
        required: Iterable[RequiredModel],
    ) -> None:
        """Prepare; `required` are models that settings name, which a reload does not remove."""
        self._settings = settings
        self._registry = registry
        self._opener = opener
        self._telemetry = telemetry
        self._required = list(required)
        self._refusals: dict[str, str] = {}  # reasons, by id, or by the name of a folder
        self._always_open: set[str] = set()  # ids of the models that are always open
        self._next: asyncio.Task[ReloadReport] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def read_all(self) -> None:
        """Read all models at start-up, without opening their graphs. A broken one is reported, and not served.

        Raises:
            ModelError: no folder or no models, a setting that no model meets, or a broken model that is named in the
                settings or is a usual default.
        """
        roots, refusals = self._settings.models_dir, dict[str, str]()
        contents = list_folders(roots, self._settings.models)
        broken = [(name, problem.reason) for name, problem in contents.problems.items()]
        for name, problem in contents.problems.items():
            refusals[name] = self._opener.describe_error(problem.reason)
        models: dict[str, ServedModel] = {}
        known: dict[Path, FileEntry] = {}
        for name, release in contents.releases.items():
            try:
                models[name] = self._opener.read(release, known)
            except Exception as error:  # the others must be served, whatever is wrong with one
                broken.append((name, str(error)))
                refusals[name] = self._opener.describe_error(error)
        must = {each.name for each in self._required}.union(*USUAL.values())
        for name, reason in broken:
            if not models or name in must or ALL in self._settings.preload:
                raise ModelError(reason)
        if not models and not self._settings.models:  # of names that are not there the next lines speak
            where = ", ".join(str(root.absolute()) for root in roots)
            raise ModelError(f"SEMBLANCE_MODELS_DIR: {where} holds no model (a folder with {MANIFEST_NAME})")
        for _, problem_of_setting in unmet(self._required, models):
            raise ModelError(problem_of_setting)
        self._serve(models)
        self._record_refusals(refusals)

    def preload(self, names: Iterable[str]) -> None:
        """Open these models, and those that the settings open before the service is ready.

        Raises:
            ModelError: one is broken, or does not answer as published.
            ProviderError: CUDA does not start.
        """
        preload = self._registry if ALL in self._settings.preload else self._settings.preload
        found = [] if NONE in preload else [self._registry[name] for name in (*names, *preload)]
        for model in dict.fromkeys(found):
            try:
                model.opened = self._opener.open(model)
            except ContractError as error:
                raise ModelError(str(error)) from error
        self._always_open = {model.release.id for model in found}
        self._serve(dict(self._registry))

    def require(self, required: Iterable[RequiredModel]) -> None:
        """Further models that no reload removes."""
        self._required += required

    def start(self) -> None:
        """Begin to accept `soon`."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Cancel reloads in progress, and close all models."""
        self._loop = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._registry.close()
        self._opener.close()

    def soon(self) -> None:
        """Reload, from any thread or signal handler; no effect before `start` and after `close`."""
        if (loop := self._loop) is not None:
            loop.call_soon_threadsafe(lambda: self._create_task(self.reload()))

    async def reload(self) -> ReloadReport:
        """Reload now, and verify unchanged folders too; a call during a reload gets the report of the next one."""
        if self._next is None:
            self._next = self._create_task(self._reload_after_current())
        return await asyncio.shield(self._next)

    @property
    def problems(self) -> list[str]:
        """The models that are refused or cannot be opened, for readiness."""
        refused = [
            f"model {name} is not {self._refused_step(name)}: {without_paths(refusal)}"
            for name, refusal in self._refusals.items()
        ]
        failed = [(name, model.failure) for name, model in self._registry.items()]
        return refused + [f"model {name} cannot be opened: {why.reason}" for name, why in failed if why is not None]

    async def _reload_after_current(self) -> ReloadReport:
        async with self._registry.reloading:
            self._next = None  # a later call sees changes made after this point
            return await self._reload()

    async def _reload(self) -> ReloadReport:
        """Reload one model after the other, so that at most one is in memory twice."""
        started = perf_counter()
        ids = set(self._registry)
        refusals: dict[str, str] = {}
        outcomes: dict[str, Outcome] = {}
        try:
            contents = await self._opener.run_in_thread(self._list_folders, ids)
        except ModelError as error:
            for name in sorted(ids):
                outcomes[name], refusals[name] = "failed", self._opener.describe_error(error)
            self._record_refusals(refusals)
            return self._report(outcomes, started)
        # Of folders, by the id of the model that was opened from each, or else by the folder's name.
        owners = {model.release.folder.name: name for name, model in self._registry.items()}
        problems = {owners.get(folder, folder): problem for folder, problem in contents.problems.items()}
        for name in sorted({*ids, *contents.releases, *problems}):
            old, release = self._registry.get(name), contents.releases.get(name)
            new, refusal = old, self._conflict_with_settings(name, old, release)
            try:
                if (problem := problems.get(name)) is not None:
                    refusal = self._opener.describe_error(problem.reason)
                elif refusal is None:
                    new, refusal = await self._opener.run_in_thread(self._read_or_keep, release, old)
            except ModelError as error:
                refusal = self._opener.describe_error(error)
            if new is not None and new is not old and (lack := self._missing_capability(name, new)) is not None:
                new, refusal = old, lack
            outcomes[name] = outcome_of(old, new, refusal)
            if refusal is not None:
                refusals[name] = refusal
            if new is not old:
                others = {other: model for other, model in self._registry.items() if other != name}
                self._serve(others if new is None else {**others, name: new})
                fingerprint = None if new is None else new.manifest.fingerprint[:16]
                log.info(f"model {outcomes[name]}", extra=fields(model=name, fingerprint=fingerprint))
                self._create_task(self._trim_later())
            del old, new  # so that this frame does not keep replaced models alive
        self._record_refusals(refusals)
        return self._report(outcomes, started)

    def _list_folders(self, served: Iterable[str]) -> RepositoryContents:
        """In the thread: list the folder; once more if a served model is missing."""
        contents = list_folders(self._settings.models_dir, self._settings.models)
        if any(name not in contents.releases for name in served):
            time.sleep(REPLACING_SECONDS)
            contents = list_folders(self._settings.models_dir, self._settings.models)
        return contents

    def _conflict_with_settings(self, name: str, old: ServedModel | None, release: ModelFolder | None) -> str | None:
        """What a setting forbids: a new model by the name of an alias, and that a model goes which it names."""
        aliases = self._settings.model_aliases
        if old is None and name in aliases:
            return f"SEMBLANCE_MODEL_ALIASES makes {name} a name of {aliases[name]}"
        if release is None:
            needs = [each.setting for each in self._required if each.name == name]
            needs += ["SEMBLANCE_MODEL_ALIASES"] * (name in aliases.values())
            return f"{name} is gone, but {needs[0]} needs it" if needs else None
        return None

    def _missing_capability(self, name: str, new: ServedModel) -> str | None:
        """A capability that a setting needs, and the new model has not."""
        others = {**self._registry, name: new}
        return next((reason for each, reason in unmet(self._required, others) if each.name == name), None)

    def _read_or_keep(
        self, release: ModelFolder | None, old: ServedModel | None
    ) -> tuple[ServedModel | None, str | None]:
        """In the thread: the model to serve, and why it is not the new one. A new or changed one is read, and opened
        too if the old one is in use.
        """
        if release is None:
            return None, None
        try:
            manifest = Manifest.load(release.folder)
        except ManifestError:
            manifest = None  # the opener says what is wrong
        same = old is not None and old.release == release and old.manifest == manifest and old.failure is None
        try:
            if old is not None and same:
                self._opener.verify_again(old)
                return old, None
            model = self._opener.read(release)
            in_use = old is not None and (old.opened or old.failure)
            if in_use or release.id in self._always_open or ALL in self._settings.preload:
                model.opened = self._opener.open(model)
        except Exception as error:  # the old model must stay, whatever is wrong with the new one
            return old, self._opener.describe_error(error)
        return model, None

    def _serve(self, models: Mapping[str, ServedModel]) -> None:
        self._registry.replace(models)
        for name in models:
            self._telemetry.reload_failures.labels(name)

    def _record_refusals(self, refusals: dict[str, str]) -> None:
        """Keep the refusals; log and count them."""
        for name, refusal in refusals.items():
            self._telemetry.reload_failures.labels(name).inc()
            log.error(f"model not {self._refused_step(name)}", extra=fields(model=name, reason=refusal))
        self._refusals = refusals
        if not refusals:
            self._telemetry.reload_success.set_to_current_time()

    def _refused_step(self, name: str) -> str:
        """What was refused: a new model, or a change of one that is served."""
        return "reloaded" if name in self._registry else "served"

    def _report(self, outcomes: Mapping[str, Outcome], started: float) -> ReloadReport:
        models: list[ReloadedModel] = []
        for name, outcome in outcomes.items():
            model, refusal = self._registry.get(name), self._refusals.get(name)
            fingerprint = None if model is None else model.manifest.fingerprint
            reason = None if refusal is None else without_paths(refusal)
            models.append({"model": name, "outcome": outcome, "fingerprint": fingerprint, "reason": reason})
        failed = "failed" in outcomes.values()
        return {"status": "failed" if failed else "done", "models": models, "seconds": perf_counter() - started}

    async def _trim_later(self) -> None:
        """Give memory back: a replaced model is freed when its last request ends."""
        await asyncio.sleep(self._settings.request_timeout)
        await self._opener.run_in_thread(trim_allocator)

    def _create_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a reload broke off", exc_info=error)


def outcome_of(old: ServedModel | None, new: ServedModel | None, refusal: str | None) -> Outcome:
    """The outcome of a reload for one model, from what was served before and is after."""
    if refusal is not None:
        return "failed"
    if new is old:
        return "unchanged"
    return "removed" if new is None else "added" if old is None else "reloaded"
