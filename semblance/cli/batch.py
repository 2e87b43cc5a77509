"""The command `semblance batch`: shows its progress, prints one line or JSON at the end."""

from pathlib import Path
from typing import Annotated

import typer

from semblance.cli.options import (
    PATIENCE,
    Concurrency,
    Json,
    ModelName,
    Overwrite,
    Patience,
    Prefix,
    QuoteFormulas,
    RerankModel,
    RerankTop,
    ServiceOptions,
    TextFile,
    TopK,
    expand_option_groups,
)
from semblance.cli.progress import print_end, run_shown
from semblance.client.clients import AsyncClient
from semblance.jobs.batch.job import BatchProgress, run_batch
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, Name
from semblance.tables.rows import Say, Step


@expand_option_groups
def batch(
    service: ServiceOptions,
    read_as: TextFile,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=".jsonl, .csv, .tsv or .parquet")],
    output: Annotated[Path, typer.Argument(help="one of these too; columns of the input come along")],
    task: Annotated[Name, typer.Option(help="what to ask of each row")] = "similarity",
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="a column to read; twice where two are [default: a, b; premise, hypothesis; query, candidates; "
            "sentence]"
        ),
    ] = None,
    prefix: Prefix = "",
    top_k: TopK = None,
    model: ModelName = None,
    rerank_model: RerankModel = None,
    rerank_top: RerankTop = None,
    quote_formulas: QuoteFormulas = False,
    overwrite: Overwrite = False,
    concurrency: Concurrency = 4,
    patience: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Ask about every row of a file.

    Interrupted or killed, the same command goes on where it stopped. A row that gets no answer is skipped, and said
    with its number and the reason in OUTPUT.errors.jsonl; then the exit code is 4.
    """
    options = BatchOptions(
        task,
        tuple(column) if column else DEFAULT_COLUMNS[task],
        model=model,
        prefix=prefix,
        top_k=top_k,
        rerank_model=rerank_model,
        rerank_top=rerank_top,
    )

    async def run(client: AsyncClient, step: Step, say: Say) -> BatchProgress:
        def watch(done: BatchProgress) -> None:
            step(f"{done.rows:,} rows", done.position / max(1, done.total))

        return await run_batch(
            client, source, output, options,
            read_as=read_as, overwrite=overwrite, quote_formulas=quote_formulas, concurrency=concurrency,
            watch=watch, say=say,
        )  # fmt: skip

    done = run_shown(service, run, patience)
    skipped = f", {done.skipped} skipped" if done.skipped else ""
    summary = {"rows": done.rows, "skipped": done.skipped}
    rows = "1 row" if done.rows == 1 else f"{done.rows} rows"
    print_end([f"{rows}{skipped}: {output}"], summary, output, as_json)
