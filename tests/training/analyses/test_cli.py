"""The command: what it lists, writes and refuses."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from training.analyses.analysis import Analysis, Options, as_text, carry_out, rounded
from training.analyses.cli import all_analyses, analyse
from training.recipes import RECIPES

ANALYSES = all_analyses()


def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(analyse)
    return app


def test_every_analysis_is_listed_and_looks_at_recipes_there_are() -> None:
    listed = CliRunner().invoke(command(), [], env={"COLUMNS": "200"}).output
    for analysis in ANALYSES.values():
        assert analysis.name in listed
        assert set(analysis.recipes) <= set(RECIPES)


def test_an_analysis_writes_data_pictures_and_a_page_and_draws_them_again(tmp_path: Path) -> None:
    result = CliRunner().invoke(command(), ["interactions", "--recipe", "pwim-sick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "interactions"
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(written) == {"README.md", "data.json", "interactions.png"}
    assert written["interactions.png"][:4] == b"\x89PNG"
    page = written["README.md"].decode()
    assert "python -m training analyse interactions --recipe pwim-sick --seed 1" in page
    assert "drum - drum" in page  # a word meets itself
    index = (tmp_path / "README.md").read_text()
    assert "(interactions/README.md)" in index
    assert "malstm-space" not in index  # it has no data here
    result = CliRunner().invoke(command(), ["interactions", "--draw-only", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == written


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["malstm-space", "--recipe", "malstm-sick,malstm-paper"], "malstm-space looks at 1 recipe, got 2"),
        (["interactions", "--recipe", "no-such-model"], "no-such-model is not published"),
        (["interactions", "--recipe", "minilm"], "minilm shows nothing: it is no interaction model"),
        (["length", "--draw-only"], "data.json is not there"),
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


def test_numbers_of_a_list_share_a_line() -> None:
    data = {"a": [1, -2.5, 1e-07], "b": ["x"], "c": [[1, 2], [3, 4]], "d": []}
    text = as_text(data)
    assert json.loads(text) == data
    assert '"a": [1, -2.5, 1e-07]' in text
    assert "[3, 4]" in text


def test_values_are_rounded_all_the_way_down() -> None:
    assert rounded({"a": [0.1234567, {"b": (2.0000001, 3)}]}) == {"a": [0.12346, {"b": [2.0, 3]}]}
