"""Shared files: there before whoever names them, gone after the last one that did."""

import fcntl
import os
from pathlib import Path

import pytest

from core.manifest import MANIFEST_NAME, SHARED_NAME, FileEntry, Manifest, describe_file
from training.publish.shared_files import alone, install, share, sweep


def draft(folder: Path, content: str) -> FileEntry:
    """A shared file of this content; returns its entry."""
    path = folder / "draft.npy"
    path.write_text(content)
    return share(path, folder)


def model(models: Path, name: str, *entries: FileEntry) -> None:
    """A model that names these shared files, as far as a manifest says so."""
    (models / name).mkdir(parents=True)
    (models / name / MANIFEST_NAME).write_text(" ".join(entry.sha256 for entry in entries))


@pytest.fixture(autouse=True)
def readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests of these tests list nothing but checksums."""

    def load(folder: Path) -> Manifest:
        found = (folder / MANIFEST_NAME).read_text().split()
        files = {f"{i}.npy": FileEntry(bytes=1, sha256=sha256, shared=True) for i, sha256 in enumerate(found)}
        files["own.npy"] = FileEntry(bytes=1, sha256="0" * 64)
        return Manifest.model_construct(id=folder.parent.name, files=files)

    monkeypatch.setattr(Manifest, "load", load)


def kept(models: Path) -> set[str]:
    return {path.read_text() for path in (models / SHARED_NAME).iterdir()}


def test_a_file_is_called_by_its_checksum_stays_as_it_is_and_is_written_again_where_it_is_not_whole(
    tmp_path: Path,
) -> None:
    drafts, models = tmp_path / "drafts", tmp_path / "models"
    drafts.mkdir()
    entry = draft(drafts, "one")
    (path,) = (drafts / SHARED_NAME).iterdir()
    assert path.name == f"{entry.sha256}.npy"
    assert describe_file(path).model_copy(update={"shared": True}) == entry
    assert not (drafts / "draft.npy").exists()
    first, second = entry, draft(drafts, "two")
    install(drafts, models)
    assert kept(models) == {"one", "two"}
    whole, broken = (models / SHARED_NAME / f"{entry.sha256}.npy" for entry in (first, second))
    broken.write_text("tw")
    before = whole.stat().st_ino
    install(drafts, models)
    assert kept(models) == {"one", "two"}
    assert whole.stat().st_ino == before


def test_only_what_no_model_names_is_swept(tmp_path: Path) -> None:
    one, two, _ = (draft(tmp_path, content) for content in ("one", "two", "three"))
    (tmp_path / SHARED_NAME / ".half.npy.new").write_text("half")
    model(tmp_path, "a", one)
    model(tmp_path, "b/1", one, two)  # a version
    model(tmp_path, ".c.old")  # what a kill may leave counts as a model too
    sweep(tmp_path)
    assert kept(tmp_path) == {"one", "two"}
    (tmp_path / "b" / "1" / MANIFEST_NAME).unlink()
    sweep(tmp_path)
    assert kept(tmp_path) == {"one"}


def test_one_process_at_a_time_changes_a_folder_of_models(tmp_path: Path) -> None:
    models = tmp_path / "models"

    def locked() -> bool:
        folder = os.open(models, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(folder)
        return False

    with alone(models):
        assert locked()
    assert not locked()
    assert not list(models.iterdir())
