"""The command `semblance claims`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.console import Console

from semblance.cli import render
from semblance.cli.options import (
    PATIENCE,
    Json,
    ModelName,
    Patience,
    Prefix,
    QuoteFormulas,
    ServiceOptions,
    TextFile,
    expand_option_groups,
)
from semblance.cli.progress import SKIPPED, print_end, run_shown
from semblance.client.clients import AsyncClient
from semblance.jobs.claims import check, names_of
from semblance.tables.rows import Say, Step
from semblance.types import ClaimResult


@expand_option_groups
def claims(
    service: ServiceOptions,
    read_as: TextFile,
    documents: Annotated[list[Path], typer.Argument(metavar="DOCUMENT...", help=".txt, .md, .html or .pdf")],
    source: Annotated[
        Path, typer.Argument(metavar="CLAIMS", help=".jsonl, .csv, .tsv or .parquet; or .txt, a claim a line")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write a row for each claim: .jsonl, .csv, .tsv or .parquet")
    ] = None,
    column: Annotated[str, typer.Option(help="of the claims")] = "claim",
    prefix: Prefix = "",
    model: ModelName = None,
    encoder: Annotated[str | None, typer.Option(help="whose embeddings find the passages")] = None,
    quote_formulas: QuoteFormulas = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace OUTPUT")] = False,
    patience: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """What documents say of claims: entailed, contradicted or not stated, and where.

    Each claim is held against all DOCUMENTs, or against the one that a column `document` of CLAIMS names. New columns
    of OUTPUT: document, label, confidence, evidence, heading, start and end (characters of the document's text),
    differences (numbers and dates that are others), against (what speaks most for another label). Without --output
    the answers are shown.
    """

    async def run(client: AsyncClient, step: Step, say: Say) -> Any:
        return await check(
            client, documents, source, output, column, read_as,
            model=model, encoder=encoder, prefix=prefix, overwrite=overwrite, quote_formulas=quote_formulas, step=step,
            say=say,
        )  # fmt: skip

    checked, answers = run_shown(service, run, patience, resumable=False)
    if output is None:
        for problem in checked.problems:
            typer.echo(f"semblance: {source}, {problem}", err=True)
    if output is None and not as_json:
        Console().print(render.Printable(render.claims(answers, names_of(documents))))
    if output is None and as_json:
        plain = [
            {"claim": claim, **TypeAdapter(ClaimResult).dump_python(each, exclude_none=True)} for claim, each in answers
        ]
        typer.echo(json.dumps({**asdict(checked), "results": plain}, ensure_ascii=False))
        if checked.skipped:
            raise typer.Exit(SKIPPED)
        return
    skipped = f", {checked.skipped} skipped" if checked.skipped else ""
    counts = f"entailed: {checked.entailed}, contradicted: {checked.contradicted}, not stated: {checked.not_stated}"
    lines = [f"claims: {checked.claims}, {counts}{skipped}" + (f"; {output}" if output is not None else "")]
    print_end(lines, asdict(checked), output, as_json)
