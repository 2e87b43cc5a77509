"""The wheel and the source distribution: what is in them, and that an empty environment answers with them."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from core.manifest import Manifest
from scripts.packages import MAX_BYTES, SERVING, build, copy_models, usual_models
from scripts.packages import TRAINING as OF_TRAINING
from semblance.extras import DISTRIBUTION, TRAINING
from service.service import Service
from service.settings import Settings
from tests.harness.service import free_port

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "service/published/"
WIDE = 300.0  # seconds: compressing takes ten of one CPU, and the machine may do much else

pytestmark = [pytest.mark.artifacts, pytest.mark.timeout(4 * WIDE)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The source distribution and the wheel of what serves, then those of what trains."""
    return build(tmp_path_factory.mktemp("packages"))


class Installed(NamedTuple):
    """An environment with the wheel alone; what the wheel needs is found in the environment of the tests."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(timeout=WIDE, check=False, **self.options(*command))

    def options(self, *command: str) -> dict[str, object]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEMBLANCE_", "PYTHON"))}
        program = [str(self.folder / "bin" / command[0]), *command[1:]]
        return {
            "args": program,
            "cwd": self.folder,
            "env": kept,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }


def install(folder: Path, wheel: Path) -> None:
    """Install a wheel alone into an environment."""
    python = folder / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "-q",
    ]
    subprocess.run([*command, str(wheel)], check=True)


@pytest.fixture(scope="module")
def installed(packages: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    install(folder, packages[1])
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(folder)


@pytest.fixture(scope="module")
def url(installed: Installed) -> Iterator[str]:
    """`semblance serve`, from a folder without models."""
    port = free_port()
    process = subprocess.Popen(**installed.options("semblance", "serve", "--port", str(port)))  # type: ignore[call-overload]
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if f"http://127.0.0.1:{port}" in line:
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def test_the_models_are_those_that_answer_when_none_is_named() -> None:
    service = Service(Settings(models_dir=ROOT / "models", models=tuple(usual_models())))
    try:
        assert {*service.defaults.values(), service.reranker} == set(usual_models())
    finally:
        service.queue.close()


def contents(source: Path, wheel: Path) -> tuple[dict[str, int], set[str]]:
    """Sizes of a wheel's files, and the names of those that are not metadata, which are all its source has."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name: info.file_size for name, info in zip(archive.namelist(), archive.infolist(), strict=True)}
    with tarfile.open(source) as archive:
        in_source = {member.name.partition("/")[2] for member in archive if member.isfile()}
    code = {name for name in in_wheel if ".dist-info/" not in name}
    assert code <= in_source
    others = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "training/pyproject.toml"}
    assert in_source - code <= others | {name for name in in_source if ".egg-info/" in name}
    assert not [name for name in in_wheel if re.search(r"__pycache__|\.pyc$|(^|/)tests?/|\.cache", name)]
    assert max(path.stat().st_size for path in (source, wheel)) < MAX_BYTES
    return in_wheel, code


def test_what_serves_holds_its_code_and_the_usual_models_alone(packages: list[Path]) -> None:
    in_wheel, code = contents(*packages[:2])
    assert {name.partition("/")[0] for name in code} == {"core", "semblance", "service"}
    expected = set()
    for name in usual_models():
        manifest = Manifest.load(ROOT / "models" / name)
        expected |= {f"{name}/manifest.json", f"{name}/README.md"}
        for file, entry in manifest.files.items():
            path = manifest.path_of(ROOT / "models" / name, file).relative_to(ROOT / "models").as_posix()
            expected.add(path)
            assert in_wheel[PREFIX + path] == entry.bytes
    assert {name.removeprefix(PREFIX) for name in code if name.startswith(PREFIX)} == expected
    assert {"service/playground/page.html", "service/playground/docs.html"} <= set(code)


def test_what_trains_is_a_distribution_of_its_own(packages: list[Path], installed: Installed) -> None:
    """Its commands say where they come from until it is installed."""
    _, code = contents(*packages[2:])
    assert {name.partition("/")[0] for name in code} == {"training", "workbench"}
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "training/data/written").glob("*.tsv")}
    assert files <= code
    without = installed.run("semblance", "tune", "pairs.csv", "--id", "mine")
    assert (without.returncode, without.stdout) == (2, "")
    assert "`semblance tune` needs semblance-training, which is not installed" in without.stderr
    install(installed.folder, packages[3])
    try:
        helped = installed.run("semblance", "tune", "--help")
        assert (helped.returncode, helped.stderr) == (0, "")
        assert "--id" in helped.stdout
    finally:
        pip = [sys.executable, "-m", "pip", "--python", str(installed.folder / "bin" / "python")]
        subprocess.run([*pip, "uninstall", "-q", "-y", TRAINING], check=True)


def test_both_distributions_are_of_one_version() -> None:
    serving, training = (tomllib.loads((ROOT / name).read_text(encoding="utf-8")) for name, _ in (SERVING, OF_TRAINING))
    assert (serving["project"]["name"], training["project"]["name"]) == (DISTRIBUTION, TRAINING)
    version = serving["project"]["version"]
    assert training["project"]["version"] == version
    extras_of = training["project"]["optional-dependencies"].values()
    for need in chain(training["project"]["dependencies"], *extras_of):
        extras = re.fullmatch(rf"{DISTRIBUTION}\[([a-z,]+)\]=={re.escape(version)}", need)
        assert extras is not None
        assert set(extras[1].split(",")) <= set(serving["project"]["optional-dependencies"])
    assert training["build-system"] == serving["build-system"]


def test_an_empty_environment_answers(url: str, installed: Installed) -> None:
    pairs = [{"a": "A man is playing a guitar.", "b": "Someone plays an instrument."}]
    found = httpx.post(f"{url}/similarity", json={"pairs": pairs}, timeout=WIDE).json()
    assert (found["model"], round(found["results"][0]["score"], 2)) == ("minilm-small", 0.44)
    facts = [{"premise": "Two dogs run through the snow.", "hypothesis": "Two animals are outdoors."}]
    found = httpx.post(f"{url}/entailment", json={"pairs": facts}, timeout=WIDE).json()
    assert (found["model"], found["results"][0]["label"]) == ("minilm-cross", "entailment")
    ranking = {"query": "How do I reset my password?", "candidates": ["We open at nine.", "Choose a new password."]}
    found = httpx.post(f"{url}/rank", json={**ranking, "rerank_top": 2}, timeout=WIDE).json()
    assert (found["rerank_model"], found["results"][0]["index"]) == ("minilm-cross", 1)
    assert httpx.get(url).text.startswith("<!doctype html>")
    listed = installed.run("semblance", "models", "--json", "--url", url)
    assert listed.stderr == ""
    assert sorted(model["id"] for model in json.loads(listed.stdout)["models"]) == sorted(usual_models())


def test_models_in_the_folder_come_before_those_of_the_wheel(installed: Installed) -> None:
    """A folder called models with something else in it does not."""
    here = installed.folder / "models"
    code = "from service.settings import Settings; print(*Settings().models_dir)"
    (here / "of-another-kind").mkdir(parents=True)
    assert installed.run("python", "-c", code).stdout.strip().endswith("service/published own-models")
    copy_models(["avg-sick"], ROOT / "models", here)
    try:
        assert installed.run("python", "-c", code).stdout.strip() == "models own-models"
    finally:
        (here / "avg-sick" / "manifest.json").unlink()


def test_the_package_is_found_beside_a_clone_that_is_named_like_it(tmp_path: Path) -> None:
    """A folder without code of that name is a namespace package, which must not come before the installed one."""
    (tmp_path / "semblance" / "semblance").mkdir(parents=True)
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for how in (["-c", "from semblance import Client"], ["-m", "semblance", "--help"]):
        done = subprocess.run(
            [sys.executable, *how], cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
