"""The command line: faults told in one line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from training.__main__ import run_cli
from training.console import console
from training.publishing.publish import commands_for
from training.recipes import RECIPES, find


@pytest.fixture
def training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`python -m training` in this process, for another one imports for seconds: its exit code and what it prints."""
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    monkeypatch.setattr(console, "_width", 200)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["training", *arguments])
        with pytest.raises(SystemExit) as ended:
            run_cli()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "xyzzy"), "no recipe 'xyzzy'; `python -m training recipes` lists all"),
        (("train", "avg-paraphrases"), "no recipe 'avg-paraphrases'; did you mean avg-paraphrase"),
        (("train", "avg-sick", "--runs", "{tmp}"), "run `python -m training distill minilm-256`"),
        (("train", "pwim-sick-glove", "--runs", "{tmp}"), "run `python -m training vectors glove-sick-300`"),
        (
            ("distill", "glove-sick-300", "--teacher", "{tmp}"),
            "no table to distil 'glove-sick-300'; there are minilm-256",
        ),
        (("vectors", "minilm-256"), "no table of published word vectors 'minilm-256'; there are glove-sick-300"),
        (("vectors", "--runs", "{tmp}"), "glove-sick: {tmp}/vectors/glove840b-sick-vocab-300d.npz not found"),
        (("publish", "avg-sick", "--runs", "{tmp}"), "python -m training train avg-sick --seed 1"),
        (("results", "--figures", "{tmp}", "--tables", "{tmp}/tables"), "no figures here"),
    ],
)
def test_a_fault_is_one_line_without_a_traceback(
    tmp_path: Path, training: Callable[..., tuple[int, str]], arguments: tuple[str, ...], expected: str
) -> None:
    code, shown = training(*(a.format(tmp=tmp_path) for a in arguments))
    assert code in (1, 2)
    assert expected.format(tmp=tmp_path) in shown.replace("\n", " ")


def test_recipes_are_listed_under_the_names_they_are_found_by(training: Callable[..., tuple[int, str]]) -> None:
    _, shown = training("recipes")
    for name in RECIPES:
        assert name in shown
        assert find(name).name == name


def test_the_commands_of_a_card_retrain_what_a_run_starts_from_first() -> None:
    assert commands_for(find("avg-sick"), 3) == (
        "python -m training distill minilm-256",
        "python -m training train avg-paraphrase --seed 3",
        "python -m training train avg-sick --seed 3",
        "python -m training publish avg-sick --seed 3",
    )
    assert commands_for(find("pwim-sick-glove"), 1)[:2] == (
        "python -m training vectors glove-sick-300",
        "python -m training train pwim-sick-glove --seed 1",
    )
    # Its encoder is the teacher's: no command makes it. What rates its pairs is kept beside published weights.
    assert commands_for(find("minilm-cross"), 1) == (
        "python -m training weights all-mpnet-base-v2",
        "python -m training rate minilm-cross",
        "python -m training train minilm-cross --seed 1",
        "python -m training publish minilm-cross --seed 1",
    )
