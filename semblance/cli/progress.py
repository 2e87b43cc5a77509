"""How far a long command is: a bar on a terminal, elsewhere a line every half minute; both on standard error."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from semblance.cli.options import PATIENCE, ServiceOptions
from semblance.client.clients import AsyncClient
from semblance.tables.output_file import errors_of
from semblance.tables.rows import Say, Step

T = TypeVar("T")
EVERY = 30.0  # seconds
SKIPPED = 4  # the exit code where a command finished, but skipped rows


def run_shown(
    service: ServiceOptions,
    work: Callable[[AsyncClient, Step, Say], Coroutine[Any, Any, T]],
    patience: float = PATIENCE,
    *,
    resumable: bool = True,
) -> T:
    """Run it with a client, and show its steps; after Ctrl-C say whether the command can go on.

    Where all is done already, Ctrl-C stops nothing.
    A service that refuses a request because it is busy is asked again for `patience` seconds.
    """
    errors = Console(stderr=True)

    def say(line: str) -> None:
        errors.print(f"semblance: {line}", markup=False, highlight=False, soft_wrap=True)

    last_shown = monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        shown = bar.add_task("", total=1.0)

        def step(what: str, share: float) -> None:
            nonlocal last_shown
            bar.update(shown, description=what, completed=share)
            if not errors.is_terminal and monotonic() - last_shown >= EVERY:
                last_shown = monotonic()
                say(f"{what}, {share:.0%}")

        done: list[T] = []

        async def run() -> None:
            async with service.of_batch(patience) as client:
                done.append(await work(client, step, say))

        try:
            asyncio.run(run())
        except KeyboardInterrupt:
            if done:
                return done[0]
            say("interrupted; the same command " + ("goes on from here" if resumable else "begins again"))
            raise
        return done[0]


def print_end(lines: Sequence[str], summary: Mapping[str, Any], output: Path | None, as_json: bool) -> None:
    """Print how a command ended, and which file has the rows that were skipped; a code says that there are any.

    Args:
        lines: for people.
        summary: for programs; `skipped` is how many rows were.
        output: the file that was written; None: none was.
        as_json: print the summary.

    Raises:
        Exit: rows were skipped.
    """
    errors = "" if output is None else str(errors_of(output))
    if as_json:
        more = {} if output is None else {"output": str(output)}
        more |= {"errors": errors} if summary["skipped"] and errors else {}
        typer.echo(json.dumps({**summary, **more}))
    else:
        for line in lines:
            typer.echo(line)
        if errors and summary["skipped"]:
            typer.echo(f"skipped rows: {errors}")
    if summary["skipped"]:
        raise typer.Exit(SKIPPED)
