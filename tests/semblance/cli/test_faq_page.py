"""docs/faq.md is followed with the published models: what it prints, and what its file answers."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.manifest import Manifest
from semblance import FAQ
from tests.harness.commands import Run
from tests.harness.printed import close, decimals

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
CHOOSE, ASK = re.findall(r"^```sh\n(.*?)\n```\n\n```(?:text|json)\n(.*?)\n```", PAGE, flags=re.DOTALL | re.MULTILINE)
SNIPPET, PRINTED = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)[0]
_ROW = re.compile(r"^(\S+)(?: > (\S+))? +(question|answer|both|either) +(built-in|own) +(.*)$")
_RANKS = ("avg-paraphrase", "minilm-small", "minilm", "minilm-cross")

pytestmark = pytest.mark.artifacts


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the command wrote `faq.json`."""
    return tmp_path_factory.mktemp("chosen")


def test_the_command_prints_what_the_page_says(chosen: Path, semblance: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of each row; not the milliseconds, nor the order of equals, which depends on them."""
    monkeypatch.chdir(chosen)
    for name in ("docs", "models", "own-models"):
        (chosen / name).symlink_to(ROOT / name)
    command, shown = CHOOSE
    program, *arguments = command.split()
    assert program == "semblance"
    ran = semblance(*arguments, "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    found: dict[tuple[str, str | None, str, str], dict[str, Any]] = {
        (each["model"], each["rerank_model"], each["match"], each["fit"]): each for each in said["configurations"]
    }
    rows = [row for line in shown.splitlines() if (row := _ROW.match(line)) and row[1] in _RANKS]
    assert len(rows) == 3
    for row in rows:
        each = found[row[1], row[2], row[3], row[4]]
        printed = [float(number) for number in re.findall(r"\d+\.\d+|\d+", row[5])]
        values = [each["first_right"], each["decisions_right"], *each["decisions_right_95"]]
        values += [each[name] for name in ("wrong_given", "refused_known")]
        assert printed[: len(values)] == pytest.approx(values, abs=0.03)
    (taken,) = [each for each in said["configurations"] if each["recommended"]]
    (default,) = [each for each in said["configurations"] if each["default"]]
    assert taken["decisions_right"] >= default["decisions_right"]
    assert f"recommended: {taken['model']}, matching {taken['match']}" in shown
    assert float(re.findall(r"confidence of ([\d.]+) on", shown)[0]) == pytest.approx(taken["threshold"], abs=2e-3)
    listed = [line.strip() for line in shown.splitlines() if line.startswith("  ")]
    assert f"had not seen ({len(said['wrong'])}):" in shown
    assert listed
    for line in listed:
        (each,) = [each for each in said["wrong"] if line.startswith(each["question"][:50])]
        assert ("refused" in line) == (not each["answered"])


def test_the_file_is_the_body_of_a_request(chosen: Path, published: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the page asks with curl: install curl")
    command, printed = ASK
    script = command.replace("127.0.0.1:8000", published)
    done = subprocess.run(["bash", "-eu"], cwd=chosen, input=script, capture_output=True, text=True, check=True)
    assert close(json.loads(done.stdout), decimals(printed)), done.stdout


def test_the_snippet_prints_what_it_says(
    chosen: Path, printed_by: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(chosen)
    assert FAQ.load("faq.json").entries[0].id == "card"
    assert printed_by(SNIPPET) == PRINTED


def test_the_published_fits_are_for_the_published_models() -> None:
    """Another version of a model: `python -m workbench confidence` fits anew."""
    manifests = {name: Manifest.load(ROOT / "models" / name) for name in _RANKS}
    for name, manifest in manifests.items():
        for fit in manifest.confidence:
            second = fit.rerank_model
            named = None if second is None else (second, manifests[second].fingerprint)
            assert fit.is_for((name, manifest.fingerprint), named, fit.rerank_top)
