"""What holds for the repository as a whole: its imports, its sizes, its lock, and that it names no one machine."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.imports import imports

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


PINS = _pins("constraints.txt")
HASHED = _pins("requirements.txt")
ON_GPU = _pins("requirements-gpu.txt")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()

# This file, which must spell them, is the one that is not searched.
MACHINE = re.compile(
    r"(?<![\w.])/(?:(?:work|root|home|Users)/\w|mnt/\w)|/opt/(?:wheels|pypi)|\.\./shared"
    r"|pypi\.org|pythonhosted\.org|download\.pytorch\.org|registry\.npmjs|index-url|find-links"
    r"|^(?:<{7}|>{7}) ",
    re.MULTILINE,
)


def tracked() -> list[Path]:
    """Files that git knows and that are there."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: nothing says which files belong to it")
    return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(line) for group in lists for line in group]
    return [requirement for requirement in found if requirement.name != project["name"]]  # an extra made of extras


def test_no_tracked_file_names_a_machine_or_a_package_index_or_has_marks_of_an_unfinished_merge() -> None:
    found = []
    for path in tracked():
        with path.open("rb") as file:
            if path == Path(__file__) or b"\0" in (beginning := file.read(8192)):
                continue
            text = (beginning + file.read()).decode(errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE.finditer(text)]
    assert found == []


def test_no_tracked_file_is_large() -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 27 * MB] == []


def test_models_stay_small() -> None:
    sizes: dict[str, int] = {}
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "models":
            sizes[parts[1]] = sizes.get(parts[1], 0) + path.stat().st_size
    assert sum(sizes.values()) <= 260 * MB
    assert sizes.pop("minilm-cross") <= 20 * MB
    # What several models share is stored once, and counts in the sum.
    assert {name: size for name, size in sizes.items() if name != "shared" and size > 20 * MB} == {}


def test_contract_imports_numpy_and_pydantic_only() -> None:
    """And where a transformer's tokenizer is opened the library that reads it, which the base install lacks."""
    allowed = {"core", "numpy", "pydantic", *sys.stdlib_module_names}
    others = [place for place in imports("core") if place[0] not in allowed]
    assert [place[0] for place in others] == ["tokenizers"]
    assert "subwords" in str(others[0])


def test_only_an_import_asks_a_model_hub() -> None:
    packages = ("core", "service", "semblance", "training", "workbench", "papers", "benchmarks")
    found = {place for package in packages for name, place in imports(package) if name == "huggingface_hub"}
    assert {place.rpartition("/")[0] for place in found} == {"workbench/imports"}


@pytest.mark.parametrize("module", ["service.engine.graph", "training.publish.runtime"])
def test_the_runtime_keeps_no_record_of_its_user(module: str, tmp_path: Path) -> None:
    # ONNX Runtime's telemetry begins by leaving an identifier of the device in the user's cache.
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    _python(f"import {module}", environment | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert list(tmp_path.rglob("*")) == []


def test_the_lock_covers_what_is_declared() -> None:
    for requirement in requirements():
        version = PINS.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not in constraints.txt: make lock"
        assert requirement.specifier.contains(version), f"{requirement}: constraints.txt has {version}"


def test_the_image_runs_as_a_user_without_privileges() -> None:
    users = re.findall(r"^USER (\d+)(?::\d+)?$", DOCKERFILE, re.MULTILINE)
    assert users == ["10001"]
    assert DOCKERFILE.index("\nUSER ") < DOCKERFILE.index("\nCMD ")
    assert "torch" not in re.sub(r"^#.*$", "", DOCKERFILE, flags=re.MULTILINE)
    assert "# syntax" not in DOCKERFILE  # it would have the builder fetch a frontend


def test_the_lock_with_hashes_is_the_lock() -> None:
    assert HASHED
    assert {name: PINS.get(name) for name in HASHED | ON_GPU} == HASHED | ON_GPU
    for path in (ROOT / f"requirements{which}.txt" for which in ("", "-gpu", "-build")):
        pins = path.read_text().split("\n\n")[-1].replace("\\\n", "")
        for line in pins.splitlines():
            if not line.startswith("#"):
                assert re.fullmatch(r"[\w.-]+==\S+(?:\s+--hash=sha256:[0-9a-f]{64})+\s*", line), line


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_containers_are_confined(name: str) -> None:
    service: dict[str, Any] = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["mem_limit"]
    assert "privileged" not in service
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def _python(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )


def test_no_test_file_imports_another() -> None:
    """What tests share lies in `tests/harness`."""
    found = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    ]
    assert found == []
