"""`python -m workbench domain`: states in a published manifest what a task is worth on text of other kinds."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from contract.manifest import Manifest, TaskDomain
from training.publishing.domain import domains_of


class DomainTask(StrEnum):
    """The tasks of a manifest."""

    similarity = "similarity"
    entailment = "entailment"
    paraphrase = "paraphrase"
    relevance = "relevance"
    classification = "classification"


class Worth(StrEnum):
    """What a task is worth on text of other kinds."""

    good = "good"
    chance = "chance"
    unmeasured = "unmeasured"


def state(manifest: Manifest, task: DomainTask, elsewhere: Worth, measured_on: tuple[str, ...]) -> Manifest:
    """The same manifest, with what it states of that task replaced; scores and fingerprint stay.

    Raises:
        ValueError: the model lacks the task, or nothing is named that says so.
    """
    if task.value not in manifest.tasks:
        raise ValueError(f"model {manifest.id} has no {task.value}; its tasks: {', '.join(manifest.tasks)}")
    if (elsewhere is Worth.unmeasured) != (not measured_on):
        raise ValueError("good and chance name what they were measured on, and unmeasured names nothing")
    learnt = next(each.learnt_from for each in domains_of(manifest) if each.task == task.value)
    own = TaskDomain(task=task.value, learnt_from=learnt, elsewhere=elsewhere.value, measured_on=measured_on)
    others = [each for each in manifest.domain or () if each.task != task.value]
    return Manifest.model_validate({**manifest.model_dump(), "domain": [*others, own]})


def domain(
    folder: Annotated[Path, typer.Argument(help="a model folder, as models/avg-sick")],
    task: Annotated[
        DomainTask | None, typer.Option(help="the task to state it of; without it nothing is written")
    ] = None,
    elsewhere: Annotated[Worth, typer.Option(help="what it is worth on text of other kinds")] = Worth.unmeasured,
    measured_on: Annotated[list[str] | None, typer.Option(help="a corpus that says so, once for each")] = None,
) -> None:
    """Show for what text each task of a model is, as GET /models does, or state it where its figures do not say it."""
    manifest = Manifest.load(folder)
    if task is not None:
        try:
            manifest = state(manifest, task, elsewhere, tuple(measured_on or ()))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        manifest.save(folder)
    shown = Table("task", "learnt from", "elsewhere", "measured on")
    for each in domains_of(manifest):
        shown.add_row(each.task, ", ".join(each.learnt_from), each.elsewhere, ", ".join(each.measured_on))
    Console().print(shown)
