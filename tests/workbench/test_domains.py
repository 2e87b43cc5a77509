"""`python -m workbench domain` states for what text a task is."""

from pathlib import Path

from typer.testing import CliRunner

from contract.manifest import Manifest
from tests import fakes
from workbench.__main__ import app


def test_it_is_shown_and_stated(tmp_path: Path) -> None:
    before = fakes.graded_model(tmp_path / "avg-sick")
    ran = CliRunner().invoke(app, ["domain", str(tmp_path / "avg-sick")])
    assert (ran.exit_code, Manifest.load(tmp_path / "avg-sick")) == (0, before)
    assert "unmeasured" in ran.output
    asked = ["domain", str(tmp_path / "avg-sick"), "--task", "entailment", "--elsewhere", "chance"]
    for on in (["SNLI"], ["SNLI", "SciTail"]):  # the second one replaces the first
        ran = CliRunner().invoke(app, [*asked, *(part for each in on for part in ("--measured-on", each))])
        assert ran.exit_code == 0, ran.output
        after = Manifest.load(tmp_path / "avg-sick")
        assert [(each.elsewhere, each.measured_on) for each in after.domain or ()][1:] == [("chance", tuple(on))]
    assert after.fingerprint == before.fingerprint


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    asked = ["domain", str(tmp_path / "avg-paraphrase"), "--task"]
    ran = CliRunner().invoke(app, [*asked, "entailment", "--elsewhere", "chance", "--measured-on", "SNLI"])
    assert (ran.exit_code, "has no entailment" in ran.output) == (2, True)
    ran = CliRunner().invoke(app, [*asked, "similarity", "--elsewhere", "good"])
    assert (ran.exit_code, "name what they were" in ran.output) == (2, True)
