"""The command: what it lists, writes and refuses."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from training.analyses.analysis import Analysis, AnalysisError, Options, as_text, carry_out
from training.analyses.cli import all_analyses, analyse
from training.recipes import RECIPES

ANALYSES = all_analyses()


def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(analyse)
    return app


def curves_of(folder: Path, *recipes: str) -> None:
    for name in recipes:
        (folder / name / "seed-1").mkdir(parents=True)
        lines = [json.dumps({"epoch": i, "selection": 0.5 + i / 10}) for i in range(3)]
        (folder / name / "seed-1" / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def test_every_analysis_is_listed_and_looks_at_recipes_there_are() -> None:
    listed = CliRunner().invoke(command(), [], env={"COLUMNS": "200"}).output
    for analysis in ANALYSES.values():
        assert analysis.name in listed
        assert set(analysis.recipes) <= set(RECIPES)


def test_an_analysis_writes_data_pictures_and_a_page(tmp_path: Path) -> None:
    curves_of(tmp_path / "runs", "gran-avg", "gran-lstm")
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(command(), ["curves", "--recipe", "gran-avg,gran-lstm", *places])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "out" / "curves"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "data.json", "development.png"]
    page = (folder / "README.md").read_text()
    assert "python -m training analyse curves --recipe gran-avg,gran-lstm --seed 1" in page
    assert "| gran-lstm | Margin | 50.0 | 70.0 | 70.0 | 2 of 2 |" in page
    index = (tmp_path / "out" / "README.md").read_text()
    assert "[Development score during training](curves/README.md)" in index
    assert "gate" not in index  # it has no data here
    assert (folder / "development.png").read_bytes()[:4] == b"\x89PNG"


def test_drawing_alone_makes_the_same_files_again(tmp_path: Path) -> None:
    curves_of(tmp_path / "runs", "gran-avg")
    carry_out(ANALYSES["curves"], Options(("gran-avg",), 1, tmp_path / "runs"), tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "curves").iterdir()}
    result = CliRunner().invoke(command(), ["curves", "--draw-only", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in (tmp_path / "curves").iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["disagreements", "--recipe", "gran-avg"], "disagreements looks at 2 recipe(s), got 1: gran-avg"),
        (["gate", "--recipe", "gran-1,gran-avg"], "gate looks at 1 recipe(s), got 2"),
        (["curves", "--draw-only"], "data.json is not there"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(tmp_path: Path, arguments: list[str], expected: str) -> None:
    result = CliRunner().invoke(command(), [*arguments, "--out", str(tmp_path)], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert expected in result.output


def test_a_page_tells_what_was_looked_at(tmp_path: Path) -> None:
    toy = Analysis(
        "toy", "Title", "Source", ("a",), lambda _: {"n": 1}, lambda *_: None, lambda d: f"n is {d['n']}", {}
    )
    page = (carry_out(toy, Options(("a", "b"), 3, tmp_path), tmp_path) / "README.md").read_text()
    assert page.splitlines()[0] == "# Title"
    assert "Source. Made by `python -m training analyse toy --recipe a,b --seed 3` from `data.json`." in page
    assert page.endswith("n is 1\n")
    with pytest.raises(AnalysisError, match="toy looks at at least 1 recipe"):
        carry_out(toy, Options((), 1, tmp_path), tmp_path)


def test_numbers_of_a_list_share_a_line() -> None:
    data = {"a": [1, -2.5, 1e-07], "b": ["x"], "c": [[1, 2], [3, 4]], "d": []}
    text = as_text(data)
    assert json.loads(text) == data
    assert '"a": [1, -2.5, 1e-07]' in text
    assert "[3, 4]" in text
