"""The report is generated from measured figures, and says which targets were missed."""

from datetime import date
from pathlib import Path

import pytest

from contract.manifest import Figure
from training.figures import FigureFile
from training.results import _paper_xxl, write_report


def sick_figures(pearson: float) -> FigureFile:
    """Figures of a supervised run."""
    values = {"pearson": pearson, "spearman": 0.8, "mse": 0.25}
    figures = [
        Figure(task="similarity", corpus="SICK", split="test", metric=m, value=v, rows=4927) for m, v in values.items()
    ]
    accuracy = Figure(task="entailment", corpus="SICK", split="test", metric="accuracy", value=0.85, rows=4927)
    return FigureFile(
        recipe="avg-sick",
        seed=1,
        storage="int8",
        command="python -m training publish avg-sick --seed 1",
        measured=date(2026, 1, 2),
        figures=(*figures, accuracy),
    )


def test_a_miss_is_marked_and_a_hit_is_not(tmp_path: Path) -> None:
    sick_figures(pearson=0.8612).save(tmp_path)
    write_report(tmp_path, tmp_path / "RESULTS.md")
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    (pearson,) = [line for line in lines if "| pearson | 0.8612 |" in line]
    (accuracy,) = [line for line in lines if "| accuracy | 0.8500 |" in line]
    assert "**missed**" in pearson
    assert "0.8684" in pearson  # the paper's figure stands beside ours
    assert "reached" in accuracy
    assert "- avg-sick seed 1 int8: `python -m training publish avg-sick --seed 1`, 2026-01-02" in lines


def test_the_same_figures_give_the_same_report(tmp_path: Path) -> None:
    sick_figures(pearson=0.9).save(tmp_path)
    for name in ("one.md", "two.md"):
        write_report(tmp_path, tmp_path / name)
    assert (tmp_path / "one.md").read_bytes() == (tmp_path / "two.md").read_bytes()


def test_the_papers_means_leave_out_the_set_we_do_not_have() -> None:
    assert _paper_xxl("STS 2013", "mean of sets") == pytest.approx((0.739 + 0.738 + 0.477) / 3)
    assert _paper_xxl("STS 2012", "mean of sets") == pytest.approx(0.615, abs=5e-4)  # complete: as the paper prints
    assert _paper_xxl("STS 2012", "MSRpar") == pytest.approx(0.448)


def test_without_figures_the_report_says_how_to_get_some(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="python -m training evaluate"):
        write_report(tmp_path, tmp_path / "RESULTS.md")
