"""The models folder looked at again while the service runs: what is new or changed is proven, then swapped in.

A reload opens models in a thread of its own; the event loop only swaps, so no request waits and none fails: those
under way keep the scorer they have. What cannot be proven is refused, and what was served before goes on.
"""

import asyncio
import ctypes
import gc
import logging
import os
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

from contract.errors import ArtifactError, ContractError, ManifestError
from contract.manifest import MANIFEST_NAME, Manifest
from service.errors import ModelError, ServiceError
from service.logs import fields
from service.registry import Model, Need, Opener, Registry, unmet
from service.repository import Contents, Problem, Release, look, names_in, names_of, traces
from service.schemas import ReloadedModel, ReloadReport
from service.settings import LATEST, Settings
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

GONE_SECONDS = 0.5  # who replaces a folder may take it away for a moment
STUCK_SECONDS = 2.0  # beyond the time a request may take: what is still in memory then is in a cycle of references

Outcome = Literal["unchanged", "reloaded", "added", "removed", "failed"]
Names = Mapping[str, Model]
P = ParamSpec("P")
T = TypeVar("T")
Traces = Mapping[Path, tuple[int, int] | None]


class _Refusal(NamedTuple):
    """What a reload could not serve."""

    model: str  # its id, or the name of its folder
    reason: str
    traces: Traces  # of its files, when it was tried
    final: bool = True  # told to everybody; otherwise it may still be being copied


class _Attempt(NamedTuple):
    """What came of one model's releases, by their names."""

    models: dict[str, Model]  # opened now, or served already and unchanged
    refusals: dict[str, _Refusal]


class Reloader:
    """Keeps a registry as the models folder and the settings say."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        opener: Opener,
        telemetry: Telemetry,
        needs: Iterable[tuple[str, Need]],
    ) -> None:
        """Begin with nothing served; see `open_all`.

        Args:
            settings: of the service.
            registry: what is served.
            opener: of models.
            telemetry: where reloads are counted.
            needs: settings, and the names they give, which no reload may take away.
        """
        self._settings = settings
        self._registry = registry
        self._opener = opener
        self._telemetry = telemetry
        self._needs = [(setting, Need(name)) for setting, name in names_in(settings)] + list(needs)
        self._aliased = [("SEMBLANCE_MODEL_ALIASES", Need(name)) for name in settings.model_aliases.values()]
        self._refusals: dict[str, _Refusal] = {}  # by what was refused: a release, or a whole model
        # One thread for all reloads: the allocator keeps memory for each thread that has asked for much.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reload")
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[ReloadReport] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open_all(self) -> None:
        """Open and prove all that is to be served; strict, for a service that starts.

        Raises:
            ModelError: no folder, no models, a broken one, two of one name, a setting that is not met.
            ProviderError: CUDA does not start.
        """
        root = self._settings.models_dir
        contents = look(root)
        for problem in contents.problems.values():
            raise ModelError(problem.reason)
        if not contents.releases:
            raise ModelError(f"SEMBLANCE_MODELS_DIR: {root.absolute()} holds no model (a folder with {MANIFEST_NAME})")
        wanted = names_of(contents, self._settings)
        try:
            models = {release: self._opener.open(release) for release in dict.fromkeys(wanted.values())}
        except ContractError as error:
            raise ModelError(str(error)) from error
        names = {name: models[release] for name, release in wanted.items()}
        for _, problem_of_setting in unmet(self._needs, names):
            raise ModelError(problem_of_setting)
        self._serve(names, contents)
        self._telemetry.reload_success.set_to_current_time()

    def start(self) -> None:
        """Look at the folder from time to time, if the settings say so, and be ready to be told to."""
        self._loop = asyncio.get_running_loop()
        if self._settings.models_poll_seconds:
            self._begin(self._poll())

    async def close(self) -> None:
        """Give up what is under way."""
        self._loop = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def soon(self) -> None:
        """Reload; from any thread, or from a signal's handler. Before the start, and after the end, nothing happens."""
        if (loop := self._loop) is not None:
            loop.call_soon_threadsafe(lambda: self._begin(self.reload()))

    async def reload(self) -> ReloadReport:
        """Look at the folder, whatever was found there before; who asks during a reload gets the next one's report."""
        if self._next is None:
            self._next = self._begin(self._after_this_one())
        return await asyncio.shield(self._next)

    @property
    def problems(self) -> list[str]:
        """What the folder holds and is not served, for readiness."""
        return [f"model {r.model} is not reloaded: {r.reason}" for r in self._refusals.values() if r.final]

    async def _after_this_one(self) -> ReloadReport:
        async with self._one_at_a_time:
            self._next = None  # who asks from now on wants the folder as it will be then
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
        """Look, open, swap; one model after the other, so that no more than one is in memory twice.

        Args:
            patient: what is not whole is left until the next time, and refused only if it has not changed by then; and
                what was refused is not tried again before it changes.
        """
        started = perf_counter()
        ids = {model.release.id for model in self._registry.values()}
        refusals: dict[str, _Refusal] = {}
        outcomes: dict[str, Outcome] = {}
        try:
            contents = await self._apart(self._look, [model.release for model in self._registry.values()])
        except ModelError as error:
            for name in sorted(ids):
                outcomes[name], refusals[name] = "failed", _Refusal(name, self._short(error), {})
            self._note(refusals, patient)
            return self._report(outcomes, started)
        wanted = names_of(contents, self._settings)
        problems = self._by_id(contents)
        for name in sorted({*ids, *contents.releases, *problems}):
            old = _of(name, self._registry.names)
            if (problem := problems.get(name)) is not None:
                new = old
                found = {name: await self._apart(self._refused_folder, name, problem, patient)}
            else:
                releases = {n: release for n, release in wanted.items() if release.id == name}
                attempt = await self._apart(self._attempt, releases, old, patient)
                new, forbidden = self._names(name, old, releases, attempt.models)
                found = attempt.refusals | forbidden
            refusals |= found
            outcomes[name] = _outcome(old, new, found)
            if new != old:
                others = {n: m for n, m in self._registry.names.items() if m.release.id != name}
                self._serve(others | new, contents)
                self._log_change(outcomes[name], name, new)
                self._free([weakref.ref(m.scorer) for m in old.values() if m not in new.values()])
            del old, new  # or this frame would keep alive what is served no more
        self._serve(self._registry.names, contents)  # versions that are not served may have come and gone
        self._note(refusals, patient)
        return self._report(outcomes, started)

    async def _apart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))

    def _look(self, served: Iterable[Release]) -> Contents:
        """In a thread: what there is."""
        contents = look(self._settings.models_dir)
        if any(release.version not in contents.releases.get(release.id, {}) for release in served):
            time.sleep(GONE_SECONDS)
            contents = look(self._settings.models_dir)
        return contents

    def _by_id(self, contents: Contents) -> dict[str, Problem]:
        """What is wrong with folders, by the id of the model that was opened from each, or else by its own name."""
        root = self._settings.models_dir
        owners = {m.release.folder.relative_to(root).parts[0]: m.release.id for m in self._registry.values()}
        return {owners.get(folder, folder): problem for folder, problem in contents.problems.items()}

    def _refused_folder(self, name: str, problem: Problem, patient: bool) -> _Refusal:
        """In a thread: a folder that holds neither a model nor versions of one."""
        now = traces(problem.folder, None)
        known = self._refusals.get(name)
        changing = known is None or known.traces != now
        return _Refusal(name, self._short(problem.reason), now, not (patient and problem.incomplete and changing))

    def _attempt(self, wanted: Mapping[str, Release], old: Names, patient: bool) -> _Attempt:
        """In a thread: open what is new of one model."""
        served = {model.release.name: model for model in old.values()}
        attempt = _Attempt({}, {})
        for release in dict.fromkeys(wanted.values()):
            try:
                manifest = Manifest.load(release.folder)
            except ManifestError:
                manifest = None  # the opener says what is wrong
            current = served.get(release.name)
            if current is not None and current.manifest == manifest:
                attempt.models[release.name] = current
                continue
            now = traces(release.folder, manifest)
            known = self._refusals.get(release.name)
            if patient and known is not None and known.traces == now:
                attempt.refusals[release.name] = known._replace(final=True)
                continue
            try:
                attempt.models[release.name] = self._opener.open(release)
            except Exception as error:  # whatever is wrong with a new model, the old one must go on
                if not isinstance(error, ContractError | ServiceError):
                    log.exception("a model could not be opened", extra=fields(model=release.name))
                copying = patient and isinstance(error, ManifestError | ArtifactError)
                reason = self._short(error) or type(error).__name__
                attempt.refusals[release.name] = _Refusal(release.id, reason, now, final=not copying)
        return attempt

    def _names(
        self, name: str, old: Names, wanted: Mapping[str, Release], models: Mapping[str, Model]
    ) -> tuple[dict[str, Model], dict[str, _Refusal]]:
        """Who answers from now on to the names of one model, and what of that a setting forbids.

        Args:
            name: its id.
            old: who answers now.
            wanted: who should.
            models: those that can, by the names of their releases.
        """
        if not old and name in self._settings.model_aliases:
            other = self._settings.model_aliases[name]
            return {}, {name: _Refusal(name, f"SEMBLANCE_MODEL_ALIASES makes {name} a name of {other}", {})}
        new: dict[str, Model] = {}
        for called, release in wanted.items():
            if (model := models.get(release.name, old.get(called))) is not None:
                new[called] = model
        refusals: dict[str, _Refusal] = {}
        needs = [*self._needs, *self._aliased]
        for setting, need in needs:
            if need.name in old and need.name not in new:
                refusals.setdefault(name, _Refusal(name, f"{need.name} is gone, but {setting} needs it", {}))
                new[need.name] = old[need.name]
        if name not in new and name in old and new:
            new[name] = old[name]
        if name not in new:  # a version that the bare id says nothing about is no model
            return {}, refusals
        others = {n: model for n, model in self._registry.names.items() if model.release.id != name}
        for need, reason in unmet(needs, others | new):
            if need.name in old:  # what has its name can no longer do what it is there for
                return dict(old), {name: _Refusal(name, reason, {})}
        for model in list(new.values()):
            new.setdefault(model.release.name, model)
        return new, refusals

    def _serve(self, names: Names, contents: Contents) -> None:
        self._registry.replace(names, {name: contents.versions(name) for name in contents.releases})
        for model in names.values():
            self._telemetry.reload_failures.labels(model.release.id)

    def _note(self, refusals: dict[str, _Refusal], patient: bool) -> None:
        """Remember what was refused, and tell of what is new among it."""
        for key, refusal in refusals.items():
            known = self._refusals.get(key)
            if refusal.final and not (patient and refusal == known):
                self._telemetry.reload_failures.labels(refusal.model).inc()
                log.error("model not reloaded", extra=fields(model=refusal.model, reason=refusal.reason))
            elif known is None:
                log.warning("model not whole yet", extra=fields(model=refusal.model, reason=refusal.reason))
        self._refusals = refusals
        if not refusals:
            self._telemetry.reload_success.set_to_current_time()

    def _report(self, outcomes: Mapping[str, Outcome], started: float) -> ReloadReport:
        models: list[ReloadedModel] = []
        for name, outcome in outcomes.items():
            model = self._registry.get(name)
            reasons = [refusal.reason for refusal in self._refusals.values() if refusal.model == name]
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

    def _short(self, what: object) -> str:
        """A reason without the way to the models folder: readiness is open to everybody."""
        return str(what).replace(f"{self._settings.models_dir}{os.sep}", "")

    def _free(self, scorers: Iterable[weakref.ref[object]]) -> None:
        """See to it that a scorer leaves memory after the last request that holds it; all but always by itself."""
        if gc.get_freeze_count():  # see `service/__main__.py`: of the new models' vocabularies too
            gc.collect(1)
            gc.freeze()
        self._begin(self._collect(list(scorers)))

    async def _collect(self, scorers: list[weakref.ref[object]]) -> None:
        await asyncio.sleep(self._settings.request_timeout + STUCK_SECONDS)
        if any(scorer() is not None for scorer in scorers):
            log.warning("what a reload replaced is still in memory, and is collected: everything waits for that")
            frozen = gc.get_freeze_count()
            gc.unfreeze()
            gc.collect()
            if frozen:
                gc.freeze()
        await self._apart(_give_back)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a reload broke off", exc_info=error)


def _give_back() -> None:
    """Have the allocator return what it holds for nobody; glibc's, which by itself keeps most of it."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _of(name: str, names: Names) -> dict[str, Model]:
    return {called: model for called, model in names.items() if model.release.id == name}


def _outcome(old: Names, new: Names, refusals: Mapping[str, _Refusal]) -> Outcome:
    if any(refusal.final for refusal in refusals.values()):
        return "failed"
    # Whether the latest version may be called that hangs on whether there are others.
    before, after = ({n: model for n, model in names.items() if not n.endswith(LATEST)} for names in (old, new))
    if before == after:
        return "unchanged"
    return "reloaded" if old and new else "added" if new else "removed"
