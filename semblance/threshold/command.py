"""The commands `semblance threshold` and `semblance choose`: where to cut a model's scores, and of which model."""

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
from semblance.render import bar

SHOWN = np.arange(0.1, 1.0, 0.1)  # thresholds of the table, beside the recommended one


class ThresholdTask(StrEnum):
    """The tasks whose score may be cut."""

    similarity = "similarity"
    paraphrase = "paraphrase"
    relevance = "relevance"
    entailment = "entailment"


Pairs = Annotated[Path, typer.Argument(help=f"labelled pairs: {KNOWN}")]
PairColumns = Annotated[
    list[str] | None, typer.Option("--column", help="three times: the two texts and the label [default: a, b, label]")
]
Resamples = Annotated[int, typer.Option(min=20, max=100_000, help="bootstrap samples behind the intervals")]
Seed = Annotated[int, typer.Option(min=0, help="of the resampling")]


@asks
def threshold(
    service: Service,
    pairs: Pairs,
    model: ModelName = None,
    task: Annotated[ThresholdTask, typer.Option(help="whose score; of entailment its probability")] = (
        ThresholdTask.similarity
    ),
    column: PairColumns = None,
    precision: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="the least wanted; without it the highest F1 is chosen")
    ] = None,
    resamples: Resamples = 1000,
    seed: Seed = 1,
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


@asks
def choose(
    service: Service,
    pairs: Pairs,
    model: Annotated[list[str] | None, typer.Option(help="once for each to compare [default: the main ones]")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="compare every model that is served, which takes longer")
    ] = False,
    task: Annotated[
        list[ThresholdTask] | None,
        typer.Option(help="once for each to compare [default: similarity, paraphrase and relevance]"),
    ] = None,
    column: PairColumns = None,
    resamples: Resamples = 1000,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Choose a model and its threshold on some 30 labelled pairs of your own: docs/threshold.md.

    Of the models within one standard error of the best the cheapest is recommended.
    """
    from semblance.threshold.choice import resampled
    from semblance.threshold.labelled import COLUMNS, read_pairs
    from semblance.threshold.models import OF_A_PAIR, Candidate, candidates, compare, recommended

    read = read_pairs(pairs, tuple(column) if column else COLUMNS)

    async def ask() -> tuple[list[Candidate], int]:
        tasks = [each.value for each in task or ()] or OF_A_PAIR
        with Console(stderr=True).status("opening the models") as shown:  # at a terminal alone
            async with service.of_batch() as client:
                return await candidates(client, read, model, tasks, every=every, told=shown.update)

    found, others = asyncio.run(ask())
    compared = compare(found, read.labels, resamples=resamples, seed=seed)
    taken = recommended(compared)
    sure = resampled(taken.candidate.scores, read.labels, resamples=resamples, seed=seed)
    if as_json:
        rows = [
            {
                "model": each.candidate.model,
                "task": each.candidate.task,
                "auc": each.auc,
                "auc_95": [each.low, each.high],
                "ms_a_pair": 1000 * each.candidate.seconds,
                "truncated": each.candidate.truncated,
                "recommended": each is taken,
                **asdict(each.best),
            }
            for each in compared
        ]
        said = {"pairs": len(read.a), "positive": int(read.labels.sum()), "models": rows, "intervals": asdict(sure)}
        typer.echo(json.dumps(said))
        return
    console = Console()
    shown = Table("model", "AUC", "95 %", "", "threshold", "F1", "ms/pair", box=None, padding=(0, 1, 0, 0))
    for each in compared:
        task_of = "" if each.candidate.task == "similarity" else f", {each.candidate.task}"
        shown.add_row(
            f"{each.candidate.model}{task_of}",
            f"{each.auc:.3f}",
            f"{each.low:.3f}-{each.high:.3f}",
            bar(2 * each.auc - 1, 6),  # of chance there is none
            f"{each.best.threshold:.4f}",
            f"{each.best.f1:.3f}",
            f"{1000 * each.candidate.seconds:.3g}",
            style="bold" if each is taken else "",
        )
    console.print(f"{len(read.a):,} pairs, {int(read.labels.sum()):,} with the label 1", highlight=False)
    console.print(shown)
    best = taken.candidate
    option = "" if best.task == "similarity" else f" --task {best.task}"
    for line in (
        f"recommended: --model {best.model}{option}, from {taken.best.threshold:.4f} on: the cheapest within one "
        "standard error of the best",
        f"F1 on other pairs: {sure.f1.mean:.3f} ({sure.f1.low:.3f} to {sure.f1.high:.3f}); 95 % of {sure.resamples:,} "
        f"resamples choose {sure.threshold.low:.4f} to {sure.threshold.high:.4f}",
        *([f"{best.truncated:,} pairs have a text that it cuts at its limit"] if best.truncated else []),
        *([f"not compared: {others:,} other models; --all compares them too"] if others and not model else []),
    ):
        console.print(line, soft_wrap=True, highlight=False)
