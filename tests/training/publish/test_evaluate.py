"""Any published folder measured on the sets at hand, without its run."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ContractError
from core.manifest import Manifest
from tests.harness import toy_runs, toys
from training.__main__ import app
from training.data.files import CorpusMissing
from training.publish.evaluate import evaluate_model

MODELS = Path(__file__).parents[3] / "models"
pytestmark = pytest.mark.artifacts


@pytest.fixture(autouse=True)
def corpora(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Eight pairs stand for SICK test and for one STS set; nothing else is there."""
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))

    def read(name: str) -> list[object]:
        if name not in ("2014-test/images", "sick-test"):
            raise CorpusMissing(name)
        return list(toys.RATED)

    toy_runs.read_instead(monkeypatch, transfer=read, labelled=read)


def test_a_model_of_sick_is_measured_by_its_rating_and_its_labels() -> None:
    found = evaluate_model(MODELS / "avg-sick")
    by_task = {(f.task, f.corpus, f.split): f.rows for f in found.figures}
    assert by_task == {("similarity", "SICK", "test"): 8, ("entailment", "SICK", "test"): 8} | {
        ("similarity", "STS 2014", "images"): 8
    }
    assert {"mse", "accuracy"} <= {f.metric for f in found.figures}
    assert {"sts-2012-test/MSRvid", "pit2015-test", "wikiqa", "trecqa"} <= set(found.missing)
    assert "msrp" not in found.missing  # its scores are no probabilities


def test_a_model_without_sicks_scale_is_measured_by_its_raw_score() -> None:
    found = evaluate_model(MODELS / "avg-paraphrase", only=("sick",))
    assert [(f.corpus, f.metric) for f in found.figures] == [("SICK", "pearson"), ("SICK", "spearman")]
    assert found.missing == []


def test_the_command_sets_figures_beside_those_of_the_manifest() -> None:
    ended = CliRunner().invoke(app, ["evaluate-model", str(MODELS / "avg-sick"), "--only", "sick,images"])
    assert ended.exit_code == 0, ended.output
    assert "SICK" in ended.output
    assert "STS 2014" in ended.output
    known = next(f.value for f in Manifest.load(MODELS / "avg-sick").figures if f.metric == "accuracy")
    assert f"{known:.4f}" in ended.output


def test_a_folder_without_a_model_and_data_without_a_set_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"manifest\.json"):
        evaluate_model(tmp_path)
    asked = ["evaluate-model", str(MODELS / "avg-sick"), "--only", "wikiqa", "--record", str(tmp_path / "apart.jsonl")]
    nothing = CliRunner().invoke(app, asked)
    assert nothing.exit_code == 1
    assert not list(tmp_path.iterdir())
    assert "not in SEMBLANCE_DATA: wikiqa" in nothing.output
