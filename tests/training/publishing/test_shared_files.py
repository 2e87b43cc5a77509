"""Shared files: there before whoever names them, gone after the last one that did."""

import fcntl
import os
from pathlib import Path

import pytest

from contract.manifest import MANIFEST_NAME, SHARED_NAME, FileEntry, Manifest, describe_file
from training.publishing.shared_files import alone, install, share, sweep


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    folder = tmp_path / "drafts"
    folder.mkdir()
    return folder


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


def test_a_file_is_called_by_its_checksum_and_kind(drafts: Path) -> None:
    entry = draft(drafts, "words")
    (path,) = (drafts / SHARED_NAME).iterdir()
    assert path.name == f"{entry.sha256}.npy"
    assert describe_file(path).model_copy(update={"shared": True}) == entry
    assert not (drafts / "draft.npy").exists()


def test_what_is_there_stays_as_it_is_and_what_is_not_whole_is_written_again(drafts: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    first, second = draft(drafts, "one"), draft(drafts, "two")
    install(drafts, models)
    assert kept(models) == {"one", "two"}
    whole, broken = (models / SHARED_NAME / f"{entry.sha256}.npy" for entry in (first, second))
    broken.write_text("tw")
    before = whole.stat().st_ino
    install(drafts, models)
    assert kept(models) == {"one", "two"}
    assert whole.stat().st_ino == before


def test_only_what_no_model_names_is_swept(drafts: Path) -> None:
    one, two, _ = (draft(drafts, content) for content in ("one", "two", "three"))
    (drafts / SHARED_NAME / ".half.npy.new").write_text("half")
    model(drafts, "a", one)
    model(drafts, "b/1", one, two)  # a version
    model(drafts, ".c.old")  # what a kill may leave counts as a model too
    sweep(drafts)
    assert kept(drafts) == {"one", "two"}
    (drafts / "b" / "1" / MANIFEST_NAME).unlink()
    sweep(drafts)
    assert kept(drafts) == {"one"}


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
