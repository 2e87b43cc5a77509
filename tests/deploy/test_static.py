"""deploy/static.sh finds what is wrong with the deployment's files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
FILES = ("docker-compose.yml", "docker-compose.gpu.yml", "docker-bake.hcl", "Dockerfile", "deploy", "scripts", ".ci")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that are looked at, to be changed."""
    for name in FILES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    # All tests of rules take seconds in every run of this file; `make check` runs them. Here one alert's are enough.
    for path in (tmp_path / "deploy/prometheus/tests").glob("*.yml"):
        content = yaml.safe_load(path.read_text())
        content["tests"] = [test for test in content["tests"] if test["name"].startswith("SemblanceModelRefused ")]
        path.write_text(yaml.safe_dump(content)) if content["tests"] else path.unlink()
    # Likewise one example of the chart's values.
    for path in (tmp_path / "deploy/chart/ci").glob("*.yaml"):
        if path.name != "hpa-values.yaml":
            path.unlink()
    # No test installs packages: without promtool or helm its part is skipped, with a line saying so.
    (tmp_path / "scripts/helm.py").write_text("")
    (tmp_path / "scripts/ensure.sh").write_text(
        '#!/bin/sh\ncommand -v "$1" >/dev/null || { echo "SKIPPED: $3"; exit 1; }\n'
    )
    return tmp_path


def static(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "deploy/static.sh"], cwd=checkout, env={"PATH": TOOLS}, capture_output=True, text=True, check=False
    )


# A run takes seconds, so each has faults for several tools, and is the proof that the others find nothing in files that
# are well: (file, what stands there, the fault, who finds it).
RUNS = (
    (
        ("docker-compose.yml", "mem_limit: 384m", "mem_limits: 384m", "check-jsonschema"),
        ("Dockerfile", "WORKDIR /app", "WORKDIR app", "hadolint"),
        ("deploy/check.sh", '"$work/first.json"', "$work/first.json", "shellcheck"),
        ("deploy/prometheus.yml", "scrape_interval:", "scrape_intervall:", "promtool"),
        ("deploy/chart/templates/service.yaml", "targetPort:", "targetPorts:", "kubernetes"),
        ("deploy/alertmanager.yml", "receiver: team", "receiver: nobody-knows", "amtool"),
    ),
    (
        ("docker-compose.gpu.yml", "device_ids:", "device_idz:", "check-jsonschema"),
        (
            "deploy/prometheus/rules/alerts.yml",
            "semblance_models_refused > 0",
            "semblance_models_refused > 1",
            "promtool",
        ),
    ),
)
INSTALL = {
    "promtool": "apt-get install prometheus",
    "amtool": "apt-get install prometheus-alertmanager",
    "helm": "python scripts/helm.py",
}


@pytest.mark.parametrize("faults", RUNS)
def test_faults_are_found_and_nothing_else(checkout: Path, faults: tuple[tuple[str, str, str, str], ...]) -> None:
    missing = {name for name in INSTALL if shutil.which(name, path=TOOLS) is None}
    for name, before, after, _ in faults:
        content = (checkout / name).read_text()
        assert before in content
        (checkout / name).write_text(content.replace(before, after))
    found = static(checkout)
    assert found.returncode == 1
    said = [line.rpartition(" ")[2] for line in found.stderr.splitlines() if " found by " in line]
    tools = [tool for *_, tool in faults if {"kubernetes": "helm"}.get(tool, tool) not in missing]
    assert sorted(said) == sorted(tools), found.stdout + found.stderr


def test_a_machine_without_a_daemon_is_told_from_a_failure(checkout: Path) -> None:
    (checkout / "deploy/stand-ins.sh").write_text("start_docker() { return 1; }\nstop_docker() { :; }\n")
    run = subprocess.run(["bash", "deploy/check.sh", "--stand-ins"], cwd=checkout, capture_output=True, check=False)
    assert run.returncode == 77
