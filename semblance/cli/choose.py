"""The command `semblance choose`: of which model, and where to cut its scores."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from semblance.cli.options import Json, ServiceOptions, TextFile, expand_option_groups
from semblance.cli.render import bar
from semblance.jobs import threshold
from semblance.jobs.threshold import ModelComparison, Quality, Scores, quality
from semblance.tables.formats import KNOWN

SHOWN = np.arange(0.1, 1.0, 0.1)  # thresholds of the table, beside the recommended one


class ThresholdTask(StrEnum):
    """The tasks whose score may be cut."""

    similarity = "similarity"
    paraphrase = "paraphrase"
    relevance = "relevance"
    entailment = "entailment"


@expand_option_groups
def choose(
    service: ServiceOptions,
    read_as: TextFile,
    pairs: Annotated[
        Path, typer.Argument(help=f"labelled pairs, or with --faq questions (question, expected or id): {KNOWN}")
    ],
    faq: Annotated[
        Path | None,
        typer.Option(help="an FAQ (columns question, answer and id) to choose for: models, texts and a confidence"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="with --faq: where to write what was chosen, for POST /rank and the client [default: faq.json]"
        ),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="once for each to compare [default: the main ones]")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="compare every model that is served, which takes longer")
    ] = False,
    task: Annotated[
        list[ThresholdTask] | None,
        typer.Option(help="once for each to compare [default: similarity, paraphrase and relevance]"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="three times: the two texts and the label [default: a, b, label]; with --faq once for each column of "
            "another name, such as answer=Reply: question, answer, id, asked (a question of people), expected (its id)",
        ),
    ] = None,
    precision: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="the least wanted; without it the highest F1 is chosen")
    ] = None,
    resamples: Annotated[int, typer.Option(min=20, max=100_000, help="bootstrap samples behind the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the resampling")] = 1,
    as_json: Json = False,
) -> None:
    """Choose a model, and a threshold of its score, on some 30 labelled pairs of your own: docs/threshold.md.

    The best model is recommended, and what each costs is a column. With --faq: how to answer from an FAQ, and when to
    say that it has no answer, on 20 to 200 questions of your own: docs/faq.md.
    """
    if faq is not None:
        for name, given in (("--task", task), ("--precision", precision)):
            if given is not None and given != []:
                raise typer.BadParameter("is not for an FAQ", param_hint=name)
        from semblance.cli.choose_faq import choose_for_faq

        choose_for_faq(
            service,
            read_as,
            faq,
            pairs,
            output or Path("faq.json"),
            models=model or None,
            every=every,
            columns=column or (),
            resamples=resamples,
            seed=seed,
            as_json=as_json,
        )
        return
    if output is not None:
        raise typer.BadParameter("is for an FAQ: give --faq too", param_hint="--output")
    read = threshold.read_pairs(pairs, column or threshold.COLUMNS, read_as)
    for note in read.notes:
        typer.echo(f"semblance: {note}", err=True)

    async def ask() -> tuple[list[threshold.Candidate], int]:
        tasks = [each.value for each in task or ()] or threshold.OF_A_PAIR
        with Console(stderr=True).status("opening the models") as status:  # at a terminal alone
            async with service.of_batch() as client:
                return await threshold.candidates(client, read, model, tasks, every=every, say=status.update)

    found, not_compared = asyncio.run(ask())
    compared = threshold.compare(found, read.labels, resamples=resamples, seed=seed)
    best = threshold.recommended(compared)
    scores = best.candidate.scores
    chosen = quality(scores, read.labels, threshold.choose(scores, read.labels, precision))
    interval = threshold.resampled(scores, read.labels, precision, resamples=resamples, seed=seed)
    table = [quality(scores, read.labels, float(at)) for at in SHOWN]
    if as_json:
        summary: dict[str, Any] = {"pairs": len(read.a), "positive": int(read.labels.sum())}
        summary["models"] = [_model_summary(each, recommended=each is best) for each in compared]
        summary |= {"recommended": asdict(chosen), "intervals": asdict(interval), "table": list(map(asdict, table))}
        typer.echo(json.dumps(summary))
        return
    counted = f"{len(read.a):,} pairs, {int(read.labels.sum()):,} with the label 1"
    console = Console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    if len(compared) > 1:
        say(counted)
        console.print(_model_table(compared, best))
        option = "" if best.candidate.task == "similarity" else f" --task {best.candidate.task}"
        say(f"recommended: --model {best.candidate.model}{option}, the best on these pairs")
    if not_compared and not model:
        say(f"not compared: {not_compared:,} other models; --all compares them too")
    say(f"{best.candidate.model}, {best.candidate.task}: {counted}")
    if best.candidate.truncated:
        say(f"{best.candidate.truncated:,} pairs have a text that was cut at the model's limit")
    console.print(_threshold_table(table, chosen, _cut(scores, chosen.threshold)))
    why = "the highest F1" if precision is None else f"a precision of at least {precision:g}, and most recall"
    say(f"recommended: {_cut(scores, chosen.threshold)}, for {why}")
    low, high = interval.threshold.low, interval.threshold.high
    say(f"95 % of {interval.resamples:,} resamples choose {_cut(scores, low)} to {_cut(scores, high)}")
    for measure, spread in (("precision", interval.precision), ("recall", interval.recall), ("F1", interval.f1)):
        say(f"{measure:<9} on other pairs: {spread.mean:.3f} ({spread.low:.3f} to {spread.high:.3f})")
    if precision is not None and interval.precision.mean < precision:
        say(f"On other pairs expect less than the precision of {precision:g}: ask for more, or give more pairs.")


def _model_summary(each: ModelComparison, *, recommended: bool) -> dict[str, Any]:
    return {
        "model": each.candidate.model,
        "task": each.candidate.task,
        "auc": each.auc,
        "auc_95": [each.low, each.high],
        "ms_a_pair": 1000 * each.candidate.seconds,
        "truncated": each.candidate.truncated,
        "recommended": recommended,
        **asdict(each.best),
    }


def _cut(scores: Scores, cut: float) -> str:
    """A threshold with four decimals, or as many as it takes to let the same pairs pass."""
    passing = scores >= cut
    written = (f"{cut:.{digits}f}" for digits in range(4, 18))
    return next((each for each in written if np.array_equal(scores >= float(each), passing)), repr(cut))


def _model_table(compared: Sequence[ModelComparison], best: ModelComparison) -> Table:
    table = Table("model", "AUC", "95 %", "", "threshold", "F1", "ms/pair", box=None, padding=(0, 1, 0, 0))
    for each in compared:
        task = "" if each.candidate.task == "similarity" else f", {each.candidate.task}"
        table.add_row(
            f"{each.candidate.model}{task}",
            f"{each.auc:.3f}",
            f"{each.low:.3f}-{each.high:.3f}",
            bar(2 * each.auc - 1, 6),  # of chance there is none
            _cut(each.candidate.scores, each.best.threshold),
            f"{each.best.f1:.3f}",
            f"{1000 * each.candidate.seconds:.3g}",
            style="bold" if each is best else "",
        )
    return table


def _threshold_table(qualities: Sequence[Quality], chosen: Quality, shown: str) -> Table:
    table = Table("threshold", "precision", "recall", "F1", "pairs that pass", box=None, pad_edge=False)
    for each in sorted([*qualities, chosen], key=lambda quality: quality.threshold):
        table.add_row(
            shown if each is chosen else f"{each.threshold:.1f}",
            *(f"{value:.3f}" for value in (each.precision, each.recall, each.f1)),
            f"{each.passing:,}{'  <- recommended' if each is chosen else ''}",
            style="bold" if each is chosen else "",
        )
    return table
