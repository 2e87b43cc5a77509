"""The command `semblance batch`: shows its progress, prints one line or JSON at the end."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from semblance.batch.job import Progress, run_batch
from semblance.batch.rows import Say, Step
from semblance.batch.tasks import DEFAULT_COLUMNS, Options
from semblance.exits import SKIPPED
from semblance.options import (
    PATIENCE,
    Concurrency,
    Json,
    ModelName,
    Overwrite,
    Patience,
    RerankModel,
    RerankTop,
    Service,
    TopK,
    asks,
)
from semblance.progress import run_shown


class BatchTask(StrEnum):
    """The tasks of `batch`."""

    similarity = "similarity"
    paraphrase = "paraphrase"
    relevance = "relevance"
    entailment = "entailment"
    rank = "rank"
    embed = "embed"


@asks
def batch(
    service: Service,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=".jsonl, .csv, .tsv or .parquet")],
    output: Annotated[Path, typer.Argument(help="one of these too; columns of the input come along")],
    task: Annotated[BatchTask, typer.Option(help="what to ask of each row")] = BatchTask.similarity,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="a column to read; twice where two are [default: a, b; premise, hypothesis; query, candidates; "
            "sentence]"
        ),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="put before the names of the new columns")] = None,
    top_k: TopK = None,
    model: ModelName = None,
    rerank_model: RerankModel = None,
    rerank_top: RerankTop = None,
    overwrite: Overwrite = False,
    concurrency: Concurrency = 4,
    patience: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Ask about every row of a file.

    Interrupted or killed, the same command goes on where it stopped. A row that gets no answer is skipped, and said
    with its number and the reason in OUTPUT.errors.jsonl; then the exit code is 4.
    """
    options = Options(
        task.value,
        tuple(column) if column else DEFAULT_COLUMNS[task.value],
        model=model,
        prefix=prefix,
        top_k=top_k,
        rerank_model=rerank_model,
        rerank_top=rerank_top,
    )

    async def run(step: Step, say: Say) -> Progress:
        def watch(done: Progress) -> None:
            step(f"{done.rows:,} rows", done.position / max(1, done.total))

        async with service.of_batch(patience) as client:
            return await run_batch(
                client,
                source,
                output,
                options,
                overwrite=overwrite,
                concurrency=concurrency,
                watch=watch,
                say=say,
            )

    done = run_shown(run)
    errors_file = f"{output}.errors.jsonl"
    if as_json:
        summary = {"rows": done.rows, "skipped": done.skipped, "output": str(output)}
        typer.echo(json.dumps(summary | ({"errors": errors_file} if done.skipped else {})))
    else:
        skipped = f", {done.skipped} skipped (see {errors_file})" if done.skipped else ""
        typer.echo(f"{done.rows} rows{skipped}: {output}")
    if done.skipped:
        raise typer.Exit(SKIPPED)
