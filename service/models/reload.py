"""Reads the models folder at the start, and again while the service runs: new and changed models are swapped in.

Files are read and held against their manifests; models that are in use, or always open, are also opened and proven,
others at their first request (`Registry.open`). That is done in a thread; the event loop only swaps models, so no
request waits or fails, and requests under way keep their scorers. A model that cannot be opened or proven is refused,
and the one served before stays.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from contract.errors import ArtifactError, ContractError, ManifestError
from contract.manifest import MANIFEST_NAME, FileEntry, Manifest
from service.errors import ModelError
from service.models.defaults import USUAL
from service.models.model import Model
from service.models.naming import Names, Outcome, Refusal, names_after, names_of_model, outcome_of
from service.models.opener import Opener, trim_allocator
from service.models.registry import Registry, Required, unmet
from service.models.repository import Contents, Problem, Release, file_stamps, look, names_of
from service.observe.logs import fields
from service.observe.telemetry import Telemetry
from service.parsing import ALL, AT, NONE
from service.schemas import ReloadedModel, ReloadReport
from service.settings import Settings

log = logging.getLogger(__name__)

GONE_SECONDS = 0.5  # a folder may be missing for a moment while it is replaced


class _Attempt(NamedTuple):
    """The releases of one model, by name."""

    models: dict[str, Model]  # newly opened, or unchanged
    refusals: dict[str, Refusal]


class Reloader:
    """Keeps a registry in line with the models folder and the settings."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        opener: Opener,
        telemetry: Telemetry,
        required: Iterable[Required],
    ) -> None:
        """Prepare; `required` are models that settings name, which a reload does not remove."""
        self._settings = settings
        self._registry = registry
        self._opener = opener
        self._telemetry = telemetry
        self._required = list(required)
        self._refusals: dict[str, Refusal] = {}  # by name of the release, or of the model
        self._first: set[str] = set()  # ids of the models that are always open
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[ReloadReport] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def read_all(self) -> None:
        """Read all models at start-up, without opening their graphs. A broken one is reported, and not served.

        Raises:
            ModelError: no folder or no models, a setting that no model meets, or a broken model that is named in the
                settings or is a usual default.
        """
        roots, refusals = self._settings.models_dir, dict[str, Refusal]()
        contents = look(roots, self._settings.models)
        wanted = names_of(contents, self._settings)
        broken = [(name, problem.reason) for name, problem in contents.problems.items()]
        for name, problem in contents.problems.items():
            refusals[name] = self._refused_folder(name, problem, patient=False)
        models: dict[Release, Model] = {}
        known: dict[Path, FileEntry] = {}
        for release in dict.fromkeys(wanted.values()):
            try:
                models[release] = self._opener.read(release, known)
            except (ContractError, ModelError) as error:
                broken.append((release.id, str(error)))
                stamps = file_stamps(release.folder, None)
                refusals[release.name] = Refusal(release.id, self._opener.told(error), stamps)
        must = {each.name.partition(AT)[0] for each in self._required}.union(*USUAL.values())
        for name, reason in broken:
            if not models or name in must or ALL in self._settings.preload:
                raise ModelError(reason)
        if not models:
            where = ", ".join(str(root.absolute()) for root in roots)
            raise ModelError(f"SEMBLANCE_MODELS_DIR: {where} holds no model (a folder with {MANIFEST_NAME})")
        names = {name: models[release] for name, release in wanted.items() if release in models}
        for _, problem_of_setting in unmet(self._required, names):
            raise ModelError(problem_of_setting)
        self._serve(names, contents)
        self._note(refusals, patient=False)

    def open_first(self, names: Iterable[str]) -> None:
        """Open these models, and those that the settings open before the service is ready.

        Raises:
            ModelError: one is broken, or does not answer as published.
            ProviderError: CUDA does not start.
        """
        preload = self._registry.names if ALL in self._settings.preload else self._settings.preload
        found = [] if NONE in preload else [self._registry[name] for name in (*names, *preload)]
        for model in dict.fromkeys(found):
            try:
                model.opened = self._opener.open(model)
            except ContractError as error:
                raise ModelError(str(error)) from error
        self._first = {model.release.id for model in found}
        self._serve(self._registry.names, self._contents)

    def keep(self, required: Iterable[Required]) -> None:
        """Further models that no reload removes."""
        self._required += required

    def start(self) -> None:
        """Begin to poll the folder, if the settings say so, and to accept `soon`."""
        self._loop = asyncio.get_running_loop()
        if self._settings.models_poll_seconds:
            self._begin(self._poll())

    async def close(self) -> None:
        """Stop."""
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
            loop.call_soon_threadsafe(lambda: self._begin(self.reload()))

    async def reload(self) -> ReloadReport:
        """Reload now, and verify unchanged folders too; a call during a reload gets the report of the next one."""
        if self._next is None:
            self._next = self._begin(self._after_this_one())
        return await asyncio.shield(self._next)

    @property
    def problems(self) -> list[str]:
        """The models that are refused or cannot be opened, for readiness."""
        refused = [
            f"model {r.model} is not {self._done(r)}: {r.public_reason}" for r in self._refusals.values() if r.final
        ]
        failed = [(model.release.name, model.failure) for model in self._registry.values()]
        return refused + [f"model {name} cannot be opened: {why.reason}" for name, why in failed if why is not None]

    async def _after_this_one(self) -> ReloadReport:
        async with self._one_at_a_time:
            self._next = None  # a later call sees changes made after this point
            return await self._reload(patient=False)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._settings.models_poll_seconds)
            try:
                async with self._one_at_a_time:
                    await self._reload(patient=True)
            except Exception:
                log.exception("the models folder could not be looked at")

    async def _reload(self, *, patient: bool) -> ReloadReport:
        """Reload one model after the other, so that at most one is in memory twice.

        Args:
            patient: an incomplete folder is refused only if it has not changed at the next reload, and a refused one is
                not tried again until it changes.
        """
        started = perf_counter()
        ids = {model.release.id for model in self._registry.values()}
        refusals: dict[str, Refusal] = {}
        outcomes: dict[str, Outcome] = {}
        try:
            contents = await self._opener.aside(self._look, [model.release for model in self._registry.values()])
        except ModelError as error:
            for name in sorted(ids):
                outcomes[name], refusals[name] = "failed", Refusal(name, self._opener.told(error), {})
            self._note(refusals, patient)
            return self._report(outcomes, started)
        wanted = names_of(contents, self._settings)
        problems = self._by_id(contents)
        for name in sorted({*ids, *contents.releases, *problems}):
            old = names_of_model(name, self._registry.names)
            try:
                if (problem := problems.get(name)) is not None:
                    new = old
                    found = {name: await self._opener.aside(self._refused_folder, name, problem, patient)}
                else:
                    releases = {n: release for n, release in wanted.items() if release.id == name}
                    attempt = await self._opener.aside(self._attempt, releases, old, patient)
                    new, forbidden = names_after(
                        name,
                        old,
                        releases,
                        attempt.models,
                        served=self._registry.names,
                        aliases=self._settings.model_aliases,
                        required=self._required,
                    )
                    found = attempt.refusals | forbidden
            except ModelError as error:
                new, found = old, {name: Refusal(name, self._opener.told(error), {})}
            refusals |= found
            outcomes[name] = outcome_of(old, new, found)
            if new != old:
                others = {n: m for n, m in self._registry.names.items() if m.release.id != name}
                self._serve(others | new, contents)
                self._log_change(outcomes[name], name, new)
                self._begin(self._trim_later())
            del old, new  # so that this frame does not keep replaced models alive
        self._serve(self._registry.names, contents)  # the list of versions that are not served may have changed
        self._note(refusals, patient)
        return self._report(outcomes, started)

    def _look(self, served: Iterable[Release]) -> Contents:
        """In the thread: list the folder; once more if a served release is missing."""
        contents = look(self._settings.models_dir, self._settings.models)
        if any(release.version not in contents.releases.get(release.id, {}) for release in served):
            time.sleep(GONE_SECONDS)
            contents = look(self._settings.models_dir, self._settings.models)
        return contents

    def _by_id(self, contents: Contents) -> dict[str, Problem]:
        """Problems of folders, by the id of the model that was opened from each, or else by the folder's name."""
        releases = [model.release for model in self._registry.values()]
        owners = {each.folder.relative_to(each.root).parts[0]: each.id for each in releases}
        return {owners.get(folder, folder): problem for folder, problem in contents.problems.items()}

    def _refused_folder(self, name: str, problem: Problem, patient: bool) -> Refusal:
        """In the thread: the refusal of a folder that has neither a model nor versions."""
        now = file_stamps(problem.folder, None)
        known = self._refusals.get(name)
        changing = known is None or known.stamps != now
        return Refusal(name, self._opener.told(problem.reason), now, not (patient and problem.incomplete and changing))

    def _attempt(self, wanted: Mapping[str, Release], old: Names, patient: bool) -> _Attempt:
        """In the thread: read new and changed releases of one model; open them too if the model is in use."""
        served = {model.release.name: model for model in old.values()}
        in_use = any(model.opened or model.failure for model in old.values())
        attempt = _Attempt({}, {})
        for release in dict.fromkeys(wanted.values()):
            try:
                manifest = Manifest.load(release.folder)
            except ManifestError:
                manifest = None  # the opener says what is wrong
            current = served.get(release.name)
            now = file_stamps(release.folder, manifest)
            same = current is not None and current.manifest == manifest and current.failure is None
            if current is not None and same and patient and current.stamps == now:
                attempt.models[release.name] = current
                continue
            known = self._refusals.get(release.name)
            if patient and known is not None and known.stamps == now:
                attempt.refusals[release.name] = known._replace(final=True)
                continue
            try:
                if current is not None and same:
                    self._opener.verify_again(current)
                    attempt.models[release.name] = current
                else:
                    model = self._opener.read(release)
                    if in_use or release.id in self._first or ALL in self._settings.preload:
                        model.opened = self._opener.open(model)
                    attempt.models[release.name] = model
            except Exception as error:  # the old model must stay, whatever is wrong with the new one
                copying = patient and isinstance(error, ManifestError | ArtifactError)
                reason = self._opener.told(error)
                attempt.refusals[release.name] = Refusal(release.id, reason, now, final=not copying)
        return attempt

    def _serve(self, names: Names, contents: Contents) -> None:
        self._contents = contents
        self._registry.replace(names, {name: contents.versions(name) for name in contents.releases})
        for model in names.values():
            self._telemetry.reload_failures.labels(model.release.id)

    def _note(self, refusals: dict[str, Refusal], patient: bool) -> None:
        """Keep the refusals; log and count new ones."""
        for key, refusal in refusals.items():
            known = self._refusals.get(key)
            if refusal.final and not (patient and refusal == known):
                self._telemetry.reload_failures.labels(refusal.model).inc()
                log.error(f"model not {self._done(refusal)}", extra=fields(model=refusal.model, reason=refusal.reason))
            elif known is None:
                log.warning("model not whole yet", extra=fields(model=refusal.model, reason=refusal.reason))
        self._refusals = refusals
        if not refusals:
            self._telemetry.reload_success.set_to_current_time()

    def _done(self, refusal: Refusal) -> str:
        """What was refused: a new model, or a change of one that is served."""
        return "reloaded" if refusal.model in self._registry else "served"

    def _report(self, outcomes: Mapping[str, Outcome], started: float) -> ReloadReport:
        models: list[ReloadedModel] = []
        for name, outcome in outcomes.items():
            model = self._registry.get(name)
            reasons = [refusal.public_reason for refusal in self._refusals.values() if refusal.model == name]
            models.append(
                {
                    "model": name,
                    "outcome": outcome,
                    "version": None if model is None else model.release.version,
                    "fingerprint": None if model is None else model.manifest.fingerprint,
                    "reason": "; ".join(reasons) or None,
                }
            )
        failed = "failed" in outcomes.values()
        return {"status": "failed" if failed else "done", "models": models, "seconds": perf_counter() - started}

    def _log_change(self, outcome: Outcome, name: str, new: Names) -> None:
        model = new.get(name)
        what = "reloaded in part" if outcome == "failed" else outcome
        version, fingerprint = (model.release.version, model.manifest.fingerprint[:16]) if model else (None, None)
        log.info(f"model {what}", extra=fields(model=name, version=version, fingerprint=fingerprint, names=list(new)))

    async def _trim_later(self) -> None:
        """Give memory back: a replaced model is freed when its last request ends."""
        await asyncio.sleep(self._settings.request_timeout)
        await self._opener.aside(trim_allocator)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a reload broke off", exc_info=error)
