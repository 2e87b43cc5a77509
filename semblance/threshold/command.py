"""The command `semblance threshold`: where to cut a model's scores."""

import asyncio
import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

from semblance.batch.formats import KNOWN
from semblance.options import Json, ModelName, Service, asks

SHOWN = np.arange(0.1, 1.0, 0.1)  # thresholds of the table, beside the recommended one


class ThresholdTask(StrEnum):
    """The tasks whose score may be cut."""

    similarity = "similarity"
    paraphrase = "paraphrase"
    relevance = "relevance"
    entailment = "entailment"


@asks
def threshold(
    service: Service,
    pairs: Annotated[Path, typer.Argument(help=f"labelled pairs: {KNOWN}")],
    model: ModelName = None,
    task: Annotated[ThresholdTask, typer.Option(help="whose score; of entailment its probability")] = (
        ThresholdTask.similarity
    ),
    column: Annotated[
        list[str] | None, typer.Option(help="three times: the two texts and the label [default: a, b, label]")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="the least wanted; without it the highest F1 is chosen")
    ] = None,
    resamples: Annotated[int, typer.Option(min=20, max=100_000, help="bootstrap samples behind the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the resampling")] = 1,
    plot: Annotated[Path | None, typer.Option(help="write a picture there: .png, .svg or .pdf")] = None,
    as_json: Json = False,
) -> None:
    """Choose a threshold of a model's score on labelled pairs of your own: docs/threshold.md."""
    from semblance.threshold.choice import choose, quality, resampled
    from semblance.threshold.labelled import COLUMNS, read_pairs, scores_of

    read = read_pairs(pairs, tuple(column) if column else COLUMNS)

    async def ask() -> tuple[str, npt.NDArray[np.float64], int]:
        async with service.of_batch() as client:
            return await scores_of(client, read, model, task.value)

    name, scores, cut = asyncio.run(ask())
    chosen = choose(scores, read.labels, precision)
    here = quality(scores, read.labels, chosen)
    sure = resampled(scores, read.labels, precision, resamples=resamples, seed=seed)
    positive = int(read.labels.sum())
    table = [quality(scores, read.labels, float(at)) for at in SHOWN]
    if plot is not None:
        from semblance.threshold.plot import plot as draw

        try:
            draw(
                plot, scores, read.labels, chosen, sure, f"{name}, {task.value}: {len(scores):,} pairs of {pairs.name}"
            )
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--plot") from None
    if as_json:
        said: dict[str, Any] = {"model": name, "task": task.value, "pairs": len(scores), "positive": positive}
        said |= {"truncated": cut, "recommended": asdict(here), "intervals": asdict(sure)}
        said["table"] = [asdict(each) for each in table]
        typer.echo(json.dumps(said))
        return
    console = Console()
    shown = Table("threshold", "precision", "recall", "F1", "pairs that pass", box=None, pad_edge=False)
    for each in sorted([*table, here], key=lambda q: q.threshold):
        style = "bold" if each is here else ""
        mark = "  <- recommended" if each is here else ""
        digits = 4 if each is here else 1
        shown.add_row(
            f"{each.threshold:.{digits}f}",
            *(f"{value:.3f}" for value in (each.precision, each.recall, each.f1)),
            f"{each.passing:,}{mark}",
            style=style,
        )
    console.print(f"{name}, {task.value}: {len(scores):,} pairs, {positive:,} with the label 1", highlight=False)
    if cut:
        console.print(f"{cut:,} pairs have a text that was cut at the model's limit", highlight=False)
    console.print(shown)
    why = "the highest F1" if precision is None else f"a precision of at least {precision:g}, and most recall"
    console.print(f"recommended: {chosen:.4f}, for {why}", soft_wrap=True, highlight=False)
    console.print(
        f"95 % of {sure.resamples:,} resamples choose {sure.threshold.low:.4f} to {sure.threshold.high:.4f}",
        highlight=False,
    )
    for measure, found in (("precision", sure.precision), ("recall", sure.recall), ("F1", sure.f1)):
        spread = f"({found.low:.3f} to {found.high:.3f})"
        console.print(f"{measure:<9} on other pairs: {found.mean:.3f} {spread}", highlight=False)
    if precision is not None and sure.precision.mean < precision:
        console.print(
            f"On other pairs expect less than the precision of {precision:g}: ask for more, or give more pairs.",
            soft_wrap=True,
            highlight=False,
        )
    if plot is not None:
        console.print(f"wrote {plot}", highlight=False)
