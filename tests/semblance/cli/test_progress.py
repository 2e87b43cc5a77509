"""How far a long command is, and how it ended."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from semblance.cli import progress
from semblance.cli.options import ServiceOptions
from semblance.client.clients import AsyncClient
from semblance.tables.rows import Say, Step

SERVICE = ServiceOptions(url="http://host")  # which is not asked


async def work(client: AsyncClient, step: Step, say: Say) -> str:
    step("reading [rows]", 0.25)
    say("a [bold]note[/bold]")
    step("reading [rows]", 1.0)
    return "done"


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (0.0, ["reading [rows], 25%", "a [bold]note[/bold]", "reading [rows], 100%"]),
        (progress.EVERY, ["a [bold]note[/bold]"]),
    ],
)
def test_steps_are_told_now_and_then_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: float, lines: list[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", seconds)
    assert progress.run_shown(SERVICE, work) == "done"
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", [f"semblance: {line}" for line in lines])


@pytest.mark.parametrize(("resumable", "end"), [(True, "goes on from here"), (False, "begins again")])
def test_an_interrupted_command_says_whether_it_goes_on(
    capsys: pytest.CaptureFixture[str], resumable: bool, end: str
) -> None:
    async def interrupted(client: AsyncClient, step: Step, say: Say) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        progress.run_shown(SERVICE, interrupted, resumable=resumable)
    assert capsys.readouterr().err == f"semblance: interrupted; the same command {end}\n"


def test_an_interruption_when_all_is_done_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async def interrupted_at_its_end(client: AsyncClient, step: Step, say: Say) -> str:
        signal.raise_signal(signal.SIGINT)
        return "done"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert progress.run_shown(SERVICE, interrupted_at_its_end) == "done"
    except KeyboardInterrupt:
        pytest.fail("what was done is lost")
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == ""


DONE, SKIPPED = {"rows": 3, "skipped": 0}, {"rows": 3, "skipped": 1}


@pytest.mark.parametrize(
    ("summary", "output", "more"),
    [
        (DONE, None, {}),
        (DONE, "out.csv", {"output": "out.csv"}),
        (SKIPPED, None, {}),
        (SKIPPED, "out.csv", {"output": "out.csv", "errors": "out.csv.errors.jsonl"}),
    ],
)
def test_an_end_is_told_to_people_and_to_programs(
    capsys: pytest.CaptureFixture[str], summary: Mapping[str, int], output: str | None, more: Mapping[str, str]
) -> None:
    for as_json in (False, True):
        try:
            progress.print_end(["3 rows of {}"], summary, None if output is None else Path(output), as_json)
            code = 0
        except typer.Exit as end:
            code = end.exit_code
        assert code == (4 if summary["skipped"] else 0)
    errors = f"skipped rows: {more['errors']}\n" if "errors" in more else ""
    assert capsys.readouterr().out == f"3 rows of {{}}\n{errors}{json.dumps({**summary, **more})}\n"
