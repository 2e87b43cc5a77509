"""Lists the models folders; opens nothing."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from core.errors import ContractError
from core.manifest import MANIFEST_NAME, SHARED_NAME, Manifest
from service.errors import ModelError
from service.folders import OWN

FileStamps = Mapping[Path, tuple[int, ...] | None]


class ModelFolder(NamedTuple):
    """One folder with a manifest."""

    id: str
    folder: Path

    @property
    def root(self) -> Path:
        """The models folder that it is in."""
        return self.folder.parent


class FolderProblem(NamedTuple):
    """Why a folder cannot be served."""

    folder: Path
    reason: str


@dataclass
class RepositoryContents:
    """The content of the models folders."""

    releases: dict[str, ModelFolder] = field(default_factory=dict)  # by id
    problems: dict[str, FolderProblem] = field(default_factory=dict)  # by the name of the folder; of a second: its path


def list_folders(roots: Iterable[Path], only: Collection[str] = ()) -> RepositoryContents:
    """List the models folders, without hidden folders and those of shared files.

    Args:
        roots: the models folders; of two models with one id that of the first folder is listed, within one folder that
            which is named like its id, and the other is a problem. That of one's own models need not be there yet.
        only: ids, or names of folders that cannot be read, to list; all if empty.

    Raises:
        ModelError: a folder is missing or cannot be read.
    """
    contents = RepositoryContents()
    for root in roots:
        if root.name == OWN.name and not root.exists():
            continue
        try:
            paths = sorted(root.iterdir())
        except OSError as error:
            raise ModelError(f"SEMBLANCE_MODELS_DIR: {root.absolute()}: {error.strerror or error}") from error
        for path in paths:
            if path.name != SHARED_NAME and not path.name.startswith(".") and _may_be_folder(path):
                _add(contents, root, path)
    if only:
        contents.releases = {name: release for name, release in contents.releases.items() if name in only}
        contents.problems = {name: problem for name, problem in contents.problems.items() if name in only}
    return contents


def _may_be_folder(path: Path) -> bool:
    """Whether it is a folder, or a link to what is not there or cannot be looked at: why is said where it is read."""
    try:
        return path.is_dir() or (path.is_symlink() and not path.exists())
    except OSError:
        return True


def _add(contents: RepositoryContents, root: Path, folder: Path) -> None:
    try:
        folder.name.encode()
    except UnicodeEncodeError:  # no JSON or metric could hold it
        shown = os.fsencode(folder.name).decode(errors="replace")
        contents.problems[shown] = FolderProblem(folder, f"{shown}: the folder's name is not UTF-8")
        return
    try:
        confine(root, folder)
        confine(root, folder / MANIFEST_NAME)
        found = Manifest.load(folder).id
    except (ModelError, ContractError) as error:
        contents.problems[folder.name] = FolderProblem(folder, str(error))
        return
    new = ModelFolder(found, folder)
    first = contents.releases.setdefault(found, new)
    if first is not new:
        kept, other = (new, first) if folder.name == found and first.root == root else (first, new)
        contents.releases[found] = kept
        names = [f"{each.root.name}/{each.folder.name}" for each in (other, kept)]
        reason = f"{names[0]}: a second model with the id {found!r}, that of {names[1]}"
        contents.problems[names[0]] = FolderProblem(other.folder, reason)  # the model of that id has no problem


def confine(root: Path, path: Path) -> None:
    """Check that a path is within the models folder, also after links.

    Raises:
        ModelError: it is not.
    """
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        raise ModelError(f"{path}: a link that leads nowhere") from error
    if not target.is_relative_to(root.resolve()):
        raise ModelError(f"{path}: leads out of SEMBLANCE_MODELS_DIR, to {target}")


def file_stamps(folder: Path, manifest: Manifest) -> FileStamps:
    """Size, times, inode and device of each file of a model, which change when it is written or replaced."""
    paths = [folder / MANIFEST_NAME, *(manifest.path_of(folder, name) for name in manifest.files)]
    found: dict[Path, tuple[int, ...] | None] = {}
    for path in paths:
        try:
            status = path.stat()
            found[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        except OSError:
            found[path] = None
    return found
