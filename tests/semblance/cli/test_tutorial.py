"""The tutorial is followed: each command runs as it is printed, but for the port and the environment."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.harness.printed import close, decimals, shortened

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
_NUMBER = re.compile(r"(\d+\.\d+)")
_TIMED = re.compile(r"^(minilm-small .*?)\S+ *$", flags=re.MULTILINE)  # a row that ends with milliseconds
STEPS = re.findall(r"^```sh\n(.*?)^```(?:\n+```(?:json|text)\n(.*?)^```)?", PAGE, flags=re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.artifacts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's checkout: what one step writes, the next one reads."""
    checkout = tmp_path_factory.mktemp("checkout")
    for name in ("models", "docs"):
        (checkout / name).symlink_to(ROOT / name)
    tools = checkout / ".venv-serve" / "bin"
    tools.mkdir(parents=True)
    command = tools / "semblance"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m semblance "$@"\n')
    command.chmod(0o755)
    return checkout


def test_the_first_step_is_the_service_and_the_last_the_container() -> None:
    (serve, _), (prepare, _), *_, (container, _) = STEPS
    assert serve == "make serve\n"
    done = subprocess.run(["make", "-n", "serve"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m service" in done.stdout
    (extra,) = re.findall(r"^pip install --quiet -c constraints.txt -e '\.\[(\w+)\]'", prepare, flags=re.MULTILINE)
    assert extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert len(STEPS) == 7
    subprocess.run(["bash", "-n"], input=container, text=True, check=True)
    assert [line.split()[0] for line in container.splitlines()] == ["docker", "curl", "docker"]
    (port,) = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["api"]["ports"]
    assert port == "127.0.0.1:${API_PORT:-8000}:8000"


@pytest.mark.parametrize("step", [2, 3, 4, 5], ids=["choose", "ask", "duplicates", "claims"])
def test_a_step_prints_what_it_says(step: int, published: str, folder: Path) -> None:
    script, printed = STEPS[step]
    if "curl " in script and shutil.which("curl") is None:
        pytest.skip("the tutorial asks with curl: install curl")
    script = script.replace("127.0.0.1:8000", published.removeprefix("http://"))
    tools = f"{folder / '.venv-serve' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": tools, "SEMBLANCE_URL": published, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-eu"], cwd=folder, env=environment, input=script, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "curl " in script:
        assert close(json.loads(done.stdout), decimals(printed)), done.stdout
        return
    said, expected = (_NUMBER.split(_TIMED.sub(r"\1", text)) for text in (shortened(done.stdout, printed), printed))
    assert [part.split() for part in said[::2]] == [part.split() for part in expected[::2]]
    # A score's last digits hang on the CPU and on the other texts of its batch, an interval on a question or two.
    assert list(map(float, said[1::2])) == pytest.approx(list(map(float, expected[1::2])), abs=0.03)
    if "dedupe" in script:
        (shown,) = re.findall(r"```text\n(id,text.*?)```", README, flags=re.DOTALL)
        with (folder / "clusters.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names, *of_readme = shown.splitlines()
        assert of_readme == [",".join(row[name] for name in names.split(",")) for row in rows[: len(of_readme)]]
