"""Lists the models folder, and the names under which the settings serve its models; opens nothing.

A model's folder has the model's files, or a folder for each of its versions (docs/models.md).
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from contract.errors import ContractError, ManifestError
from contract.manifest import MANIFEST_NAME, SHARED_NAME, VERSION_NAME, Manifest
from service.errors import ModelError
from service.parsing import ALL, AT, LATEST, Version
from service.settings import Settings

FileStamps = Mapping[Path, tuple[int, ...] | None]


class Release(NamedTuple):
    """One folder with a manifest."""

    id: str
    version: int | None  # None: the model has no versions
    folder: Path

    @property
    def name(self) -> str:
        """The id, or ID@VERSION."""
        return self.id if self.version is None else f"{self.id}{AT}{self.version}"

    @property
    def root(self) -> Path:
        """The models folder that it is in."""
        return self.folder.parent if self.version is None else self.folder.parent.parent


class Problem(NamedTuple):
    """Why a folder cannot be served."""

    folder: Path
    reason: str
    incomplete: bool = False  # the folder may still be being copied


@dataclass
class Contents:
    """The content of the models folders."""

    releases: dict[str, dict[int | None, Release]] = field(default_factory=dict)  # by id, then by version
    problems: dict[str, Problem] = field(default_factory=dict)  # by the name of the folder

    def versions(self, name: str) -> tuple[int, ...]:
        """The versions in the folder of a model, ascending."""
        return tuple(sorted(version for version in self.releases.get(name, ()) if version is not None))


def look(roots: Iterable[Path], only: Collection[str] = ()) -> Contents:
    """List the models folders, without hidden folders and those of shared files.

    Args:
        roots: the models folders; of two models with one id the first is listed, the other a problem.
        only: ids, or names of folders that cannot be read, to list; all if empty.

    Raises:
        ModelError: a folder is missing or cannot be read.
    """
    contents = Contents()
    for root in roots:
        try:
            for folder in _folders(root):
                if folder.name != SHARED_NAME:
                    _add(contents, root, folder)
        except OSError as error:
            raise ModelError(f"SEMBLANCE_MODELS_DIR: {root.absolute()}: {error.strerror or error}") from error
    if only:
        contents.releases = {name: releases for name, releases in contents.releases.items() if name in only}
        contents.problems = {name: problem for name, problem in contents.problems.items() if name in only}
    return contents


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _add(contents: Contents, root: Path, folder: Path) -> None:
    try:
        folder.name.encode()
    except UnicodeEncodeError:  # no JSON or metric could hold it
        shown = os.fsencode(folder.name).decode(errors="replace")
        contents.problems[shown] = Problem(folder, f"{shown}: the folder's name is not UTF-8")
        return
    try:
        confine(root, folder)
        within = _folders(folder)
    except ModelError as error:
        contents.problems[folder.name] = Problem(folder, str(error))
        return
    has_manifest = (folder / MANIFEST_NAME).exists()
    versions = [path for path in within if VERSION_NAME.fullmatch(path.name)]
    if not versions:
        _add_single(contents, root, folder)
        return
    others = [path.name for path in within if path not in versions]
    if has_manifest or others:
        what = MANIFEST_NAME if has_manifest else f"the folder {others[0]!r}, which is no version (1, 2, 3 ...)"
        numbers = ", ".join(path.name for path in versions)
        contents.problems[folder.name] = Problem(folder, f"{folder}: holds {what} beside versions ({numbers})")
        return
    if folder.name in contents.releases:
        contents.problems[folder.name] = Problem(folder, f"{folder}: a second model with the id {folder.name!r}")
        return
    contents.releases[folder.name] = {
        int(path.name): Release(folder.name, int(path.name), path)
        for path in sorted(versions, key=lambda path: int(path.name))
    }


def _add_single(contents: Contents, root: Path, folder: Path) -> None:
    try:
        confine(root, folder / MANIFEST_NAME)
        found = Manifest.load(folder).id
    except (ModelError, ContractError) as error:
        contents.problems[folder.name] = Problem(folder, str(error), incomplete=isinstance(error, ManifestError))
        return
    if found in contents.releases:
        contents.problems[folder.name] = Problem(folder, f"{folder}: a second model with the id {found!r}")
        return
    contents.releases[found] = {None: Release(found, None, folder)}


def names_of(contents: Contents, settings: Settings) -> dict[str, Release]:
    """The names of models in requests: name -> release.

    `ID` is the pinned or latest version, `ID@N` each served version, `ID@latest` the highest version if it is served.
    Versions in the settings that do not exist are left out.
    """
    names: dict[str, Release] = {}
    for name, releases in contents.releases.items():
        if None in releases:
            names[name] = releases[None]
            continue
        pin = settings.model_versions.get(name, LATEST)
        versions = contents.versions(name)
        if bare := _chosen((pin,), versions):
            names[name] = releases[bare[0]]
        served = _chosen((pin, *settings.model_versions_also.get(name, ())), versions)
        names |= {releases[version].name: releases[version] for version in served}
        if versions[-1] in served:
            names[f"{name}{AT}{LATEST}"] = releases[versions[-1]]
    return names


def _chosen(wanted: Sequence[Version], versions: Sequence[int]) -> list[int]:
    """The existing versions that are wanted."""
    if ALL in wanted:
        return list(versions)
    numbers = {versions[-1] if version == LATEST else version for version in wanted}
    return [version for version in versions if version in numbers]


def confine(root: Path, path: Path) -> None:
    """Check that a path is within the models folder, also after links.

    Raises:
        ModelError: it is not.
    """
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        raise ModelError(f"{path}: leads out of SEMBLANCE_MODELS_DIR, to {target}")


def file_stamps(folder: Path, manifest: Manifest | None) -> FileStamps:
    """Size, times, inode and device of each file of a model, which change when it is written or replaced.

    Without a manifest: of all files in the folder.
    """
    if manifest is None:
        try:
            paths = sorted(folder.iterdir())
        except OSError:
            paths = []
    else:
        paths = [folder / MANIFEST_NAME, *(manifest.path_of(folder, name) for name in manifest.files)]
    found: dict[Path, tuple[int, ...] | None] = {}
    for path in paths:
        try:
            status = path.stat()
            found[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        except OSError:
            found[path] = None
    return found
