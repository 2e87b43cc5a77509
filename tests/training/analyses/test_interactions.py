"""The command writes data, a picture and a page, and refuses what shows nothing."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from training.analyses.interactions import AnalysisError, analyse


def run(*arguments: str) -> BaseException | None:
    app = typer.Typer()
    app.command()(analyse)
    return CliRunner().invoke(app, arguments).exception


def test_it_writes_data_a_picture_and_a_page_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert run("--model", "pwim-sick", "--out", str(tmp_path / folder)) is None
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert set(one) == {"README.md", "data.json", "interactions.png"}
    assert one == two
    assert one["interactions.png"][:4] == b"\x89PNG"
    page = one["README.md"].decode()
    assert "python -m training analyse --model pwim-sick" in page
    assert "drum - drum" in page  # a word meets itself


@pytest.mark.parametrize(
    ("model", "expected"),
    [("no-such-model", "no-such-model is not published"), ("minilm", "minilm shows nothing")],
)
def test_a_model_that_shows_nothing_is_refused_in_a_line(tmp_path: Path, model: str, expected: str) -> None:
    refused = run("--model", model, "--out", str(tmp_path))
    assert isinstance(refused, AnalysisError)
    assert expected in str(refused)
