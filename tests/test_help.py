"""What `--help` of every command prints is what its texts say."""

import logging
import re
from collections.abc import Iterator, Sequence

import click
import pytest
import typer
from typer.testing import CliRunner

from semblance.cli import app as client
from training.__main__ import app as training
from workbench.__main__ import app as workbench

ELSEWHERE = {("tune",), ("import",)}  # they hand their options, --help too, to another program


def commands(app: typer.Typer) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    def below(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        yield path, command
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, (*path, name))

    return below(typer.main.get_command(app), ())


def letters(text: str) -> str:
    """Without spaces, frames and code marks, which depend on the width of the terminal."""
    return re.sub(r"[^\w=<>\[\]{}:;,./']+", "", text)


@pytest.mark.parametrize(
    ("app", "left_out"),
    [(client, ELSEWHERE), (training, set()), (workbench, set())],
    ids=["semblance", "training", "workbench"],
)
def test_no_text_of_the_help_is_lost(
    app: typer.Typer, left_out: Sequence[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)  # `python -m training` sets it for its process
    seen = 0
    for path, command in commands(app):
        if path in left_out:
            continue
        shown = letters(CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "400"}).output)
        for text in (command.help, *(getattr(each, "help", None) for each in command.params)):
            assert letters(text or "") in shown, path
            seen += 1
    assert seen > 40
