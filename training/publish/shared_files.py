"""Files that several models share: stored once in `models/shared/`, named by their checksums."""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import ManifestError
from core.files import replacing
from core.manifest import MANIFEST_NAME, SHARED_NAME, FileEntry, Manifest, describe_file

logger = logging.getLogger(__name__)


def share(draft: Path, models: Path) -> FileEntry:
    """Move a file to `shared/` of a models folder; returns its entry for a manifest."""
    entry = describe_file(draft).model_copy(update={"shared": True})
    shared = models / SHARED_NAME
    shared.mkdir(exist_ok=True)
    draft.replace(shared / f"{entry.sha256}{draft.suffix}")
    return entry


def install(new: Path, models: Path) -> None:
    """Copy shared files from one models folder to another, if missing or different there."""
    target = models / SHARED_NAME
    for path in sorted((new / SHARED_NAME).glob("*")):
        kept = target / path.name
        if kept.is_file() and describe_file(kept) == describe_file(path):
            continue
        target.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as arriving:
            shutil.copyfile(path, arriving)


def sweep(models: Path) -> None:
    """Remove the shared files that no manifest names; none if a manifest cannot be read."""
    named = set()
    for path in [*models.glob(f"*/{MANIFEST_NAME}"), *models.glob(f"*/*/{MANIFEST_NAME}")]:  # models, and versions
        try:
            manifest = Manifest.load(path.parent)
        except ManifestError as error:
            logger.warning("no shared file is removed: %s", error)
            return
        named |= {manifest.path_of(path.parent, name).name for name, file in manifest.files.items() if file.shared}
    for path in (models / SHARED_NAME).glob("*"):
        if path.name not in named:
            path.unlink()
            logger.info("removed %s, which no model uses", path)


@contextmanager
def alone(models: Path) -> Iterator[None]:
    """Hold an exclusive lock on this models folder."""
    models.mkdir(parents=True, exist_ok=True)
    folder = os.open(models, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
