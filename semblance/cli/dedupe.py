"""The command `semblance dedupe`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

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
    ServiceOptions,
    TextFile,
    expand_option_groups,
)
from semblance.cli.progress import print_end, run_shown
from semblance.client.clients import AsyncClient
from semblance.tables.rows import Say, Step

Output = Annotated[Path, typer.Argument(help=".jsonl, .csv, .tsv or .parquet; columns of the input come along")]
INPUT = ".jsonl, .csv, .tsv or .parquet; or .txt, a text a line"
LARGE = 50  # rows of a cluster that is named


@expand_option_groups
def dedupe(
    service: ServiceOptions,
    read_as: TextFile,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=INPUT)],
    output: Output,
    column: Annotated[str, typer.Option(help="of the texts")] = "sentence",
    cosine: Annotated[
        float | None,
        typer.Option(min=-1, max=1, help="join by this cosine alone; no model reads pairs [default: judge pairs]"),
    ] = None,
    reviewed: Annotated[
        Path | None, typer.Option(help="pairs of rows of an earlier run, answered yes or no in the column same")
    ] = None,
    guard: Annotated[
        bool,
        typer.Option("--guard/--no-guard", help="keep texts apart that differ in a number, a size, a colour, a 'not'"),
    ] = True,
    only_first: Annotated[bool, typer.Option("--only-first", help="write only the first row of each cluster")] = False,
    rerank: Annotated[
        str | None,
        typer.Option(help="the model that reads near pairs [default: the first main one with paraphrase, entailment]"),
    ] = None,
    prefix: Prefix = "",
    model: ModelName = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="folder in which the file's embeddings stay, for the next time [default: they are removed]"),
    ] = None,
    quote_formulas: QuoteFormulas = False,
    overwrite: Overwrite = False,
    concurrency: Concurrency = 4,
    patience: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Find near-duplicates in a file: each row gets its cluster.

    Rows with the same words are one. Near pairs are judged by their cosine and a model that reads both texts. Of those
    that are in doubt OUTPUT's .review.csv has the best questions: answer yes or no in its column `same`, and give it
    back by --reviewed. All other near pairs that were left apart are in .apart.csv, with the reason. New columns:
    cluster, the number of the cluster's first row, from 1; cluster_size; cosine, with that first row; kept_apart, the
    nearest row that differs in a fact, and how. Interrupted while it asks, the same command goes on where it stopped.
    """
    from semblance.jobs.dedupe import dedupe as job
    from semblance.jobs.dedupe.session import DedupeOptions, DedupeSession

    options = DedupeOptions(
        column,
        read_as,
        cosine,
        reviewed,
        guard,
        only_first,
        prefix,
        model,
        rerank,
        keep,
        quote_formulas,
        overwrite,
        concurrency,
    )

    async def run(client: AsyncClient, step: Step, say: Say) -> Any:
        return await job.dedupe(DedupeSession(source, output, client, options, step, say))

    done = run_shown(service, run, patience)
    skipped = f", skipped: {done.skipped:,}" if done.skipped else ""
    lines = [f"rows: {done.rows:,}, distinct texts: {done.texts:,}, clusters: {done.clusters:,}{skipped}; {output}"]
    lines += done.chosen
    if done.largest > LARGE:
        lines.append(f"the largest cluster has {done.largest:,} rows; it begins with row {done.largest_first:,}")
    if done.review is not None:
        lines.append(f"doubtful pairs, to review: {done.review}")
    if done.apart is not None:
        lines.append(f"near pairs that were left apart: {done.apart}")
    if done.recall < 1:
        lines.append(f"approximate: {done.recall:.1%} of the near pairs were found in a sample")
    print_end(lines, asdict(done), output, as_json)
