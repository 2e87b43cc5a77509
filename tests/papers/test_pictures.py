"""The pictures of docs/papers show what they say they do."""

import re
from pathlib import Path

import pytest

from papers.pictures.curves import CURVES, draw_curve
from training.publish.figures import RunFigures
from training.records import read_records

PAGES = Path(__file__).parents[2] / "docs" / "papers"
REPEATS = PAGES.parents[1] / "papers" / "repeats.jsonl"


@pytest.mark.parametrize("page", CURVES)
def test_a_page_shows_the_learning_curve_of_its_repeated_run(page: str) -> None:
    recipe, seed, _ = CURVES[page]
    (run,) = (each for each in read_records(REPEATS, RunFigures) if (each.recipe, each.seed) == (recipe, seed))
    drawn = (PAGES / f"{page}-learning.svg").read_text(encoding="utf-8")
    assert f"{recipe}, seed {seed}" in drawn, "python -m papers draw"
    assert f"untrained: {run.curve[0]:.4f}" in drawn
    assert f"]({page}-learning.svg)" in (PAGES / f"{page}.md").read_text(encoding="utf-8")


def test_a_curve_rises_where_the_score_does(tmp_path: Path) -> None:
    draw_curve("pwim", tmp_path / "curve.svg", REPEATS)
    (run,) = (each for each in read_records(REPEATS, RunFigures) if each.recipe == "pwim-msrvid-alone")
    (line,) = re.findall(r'<path d="([^"]*)"[^>]*stroke: #3949ab; stroke-width', (tmp_path / "curve.svg").read_text())
    heights = [-float(point.split()[1]) for point in re.split("[ML]", line)[1:]]  # y counts from the top
    assert sorted(range(len(heights)), key=heights.__getitem__) == sorted(
        range(len(heights)), key=run.curve[1:].__getitem__
    )


def test_a_file_without_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no learning curve of sts-avg-dropout, seed 1"):
        draw_curve("gran", tmp_path / "curve.svg", tmp_path / "repeats.jsonl")
