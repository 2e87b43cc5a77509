"""Builds both distributions: the source distribution of each and, from it, the wheel.

`semblance-similarity` is what answers requests, `semblance-training` what makes models. Needs no network: setuptools is
here already.

python -m scripts.packages build/packages                # with the models that answer when none is named
python -m scripts.packages build/packages minilm-cross   # with others
"""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from core.manifest import MANIFEST_NAME, Manifest
from service.folders import PACKAGED
from service.models.defaults import USUAL, USUAL_RERANKERS

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 100_000_000  # of one file, on the Python package index
# Of each distribution: the file that becomes its pyproject.toml, and its folders.
SERVING = ("pyproject.toml", ("core", "semblance", "service"))
TRAINING = ("training/pyproject.toml", ("training", "workbench"))
_CARD = "README.md"  # of a model; it says under what licence the model is


def usual_models() -> list[str]:
    """The models that answer a request, or its second stage, that names none."""
    return list(dict.fromkeys([*(names[0] for names in USUAL.values()), USUAL_RERANKERS[-1]]))


def copy_models(names: Iterable[str], models: Path, target: Path) -> None:
    """Copy model folders and the shared files that they name; each is verified first.

    Raises:
        ContractError: there is no such model, or its files are not what its manifest says.
    """
    for name in names:
        folder = models / name
        manifest = Manifest.load(folder)
        manifest.verify(folder)
        paths = [manifest.path_of(folder, file) for file in manifest.files]
        for path in [folder / MANIFEST_NAME, folder / _CARD, *paths]:
            to = target / path.relative_to(models)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)


def build(out: Path, names: Sequence[str] = ()) -> list[Path]:
    """Build both distributions of this checkout.

    Args:
        out: folder for them.
        names: of the models to carry, from models/; those of `usual_models` if empty.

    Returns:
        The source distribution and the wheel of what serves, then those of what trains.

    Raises:
        ContractError: a model is missing or damaged.
        CalledProcessError: setuptools refuses.
        ValueError: a package is over the limit of the Python package index.
    """
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for project, folders in (SERVING, TRAINING):
        with TemporaryDirectory() as temporary:
            # A copy: setuptools keeps lists and old files in the folder that it builds.
            stage, unpacked = Path(temporary, "stage"), Path(temporary, "unpacked")
            stage.mkdir()
            for file, name in ((project, "pyproject.toml"), ("README.md", "README.md"), ("LICENSE", "LICENSE")):
                shutil.copyfile(ROOT / file, stage / name)
            for folder in folders:
                shutil.copytree(ROOT / folder, stage / folder, ignore=shutil.ignore_patterns("__pycache__"))
            if "service" in folders:
                copy_models(names or usual_models(), ROOT / "models", stage / PACKAGED.relative_to(ROOT))
            source = _made("build_sdist", stage, out)
            with tarfile.open(source) as archive:
                # Named where Python has it (3.11.4); the archive is our own, made a line above.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(unpacked)
            (folder_of_source,) = unpacked.iterdir()
            made += [source, _made("build_wheel", folder_of_source, out)]
    for path in made:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ValueError(f"{path}: {size:,} bytes, the limit is {MAX_BYTES:,}: carry fewer models")
    return made


def _made(hook: str, folder: Path, out: Path) -> Path:
    """What one hook of setuptools makes of a folder."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.{hook}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(out.resolve())]
    said = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    return out / said.splitlines()[-1]


if __name__ == "__main__":
    for path in build(Path(sys.argv[1]), sys.argv[2:]):
        sys.stdout.write(f"{path} ({path.stat().st_size / 1e6:.1f} MB)\n")
