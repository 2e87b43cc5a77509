"""The commands `semblance dedupe` and `semblance search`."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from semblance.batch.job import PATIENCE, Say
from semblance.exits import SKIPPED
from semblance.options import (
    ApiKey,
    Concurrency,
    Json,
    Local,
    ModelName,
    ModelsDir,
    Overwrite,
    Patience,
    Timeout,
    Url,
    async_client_of,
)

T = TypeVar("T")
Output = Annotated[Path, typer.Argument(help=".jsonl, .csv, .tsv or .parquet; columns of the input come along")]
Prefix = Annotated[str, typer.Option(help="put before the names of the new columns")]
Keep = Annotated[
    Path | None,
    typer.Option(help="folder in which the file's embeddings stay, for the next time [default: they are removed]"),
]
Exact = Annotated[
    bool | None,
    typer.Option(
        "--exact/--approximate", help="compare all texts, or only likely ones [default: all, up to 100,000 texts]"
    ),
]


def dedupe(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=".jsonl, .csv, .tsv or .parquet")],
    output: Output,
    column: Annotated[str, typer.Option(help="of the texts")] = "sentence",
    cosine: Annotated[float, typer.Option(min=-1, max=1, help="from which on two texts are near-duplicates")] = 0.9,
    only_first: Annotated[bool, typer.Option("--only-first", help="write only the first row of each cluster")] = False,
    prefix: Prefix = "",
    model: ModelName = None,
    exact: Exact = None,
    keep: Keep = None,
    overwrite: Overwrite = False,
    concurrency: Concurrency = 4,
    patience: Patience = PATIENCE,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """Find near-duplicates in a file: each row gets its cluster.

    Two texts are joined if the cosine of their embeddings is at least --cosine, and so are texts that are joined to
    the same one. New columns: cluster, the number of the cluster's first row, from 1; cluster_size; cosine, with that
    first row. Interrupted while it embeds, the same command goes on where it stopped.
    """
    from semblance.corpus.dedupe import dedupe as run
    from semblance.corpus.work import Asking

    asking = Asking(model, concurrency, patience, overwrite, keep)

    async def ask(step: Callable[[str, float], None], say: Say) -> Any:
        async with async_client_of(url, local, models_dir, api_key, timeout) as client:
            return await run(
                client,
                source,
                output,
                column,
                asking,
                least=cosine,
                only_first=only_first,
                prefix=prefix,
                exact=exact,
                step=step,
                say=say,
            )

    done = _shown(ask)
    _tell(
        done,
        output,
        as_json,
        f"rows: {done.rows:,}, distinct texts: {done.texts:,}, clusters: {done.clusters:,}",
        "pairs" if not done.exact else None,
    )


def search(
    corpus: Annotated[Path, typer.Argument(help="the file to search: .jsonl, .csv, .tsv or .parquet")],
    queries: Annotated[Path, typer.Argument(help="the file of queries")],
    output: Output,
    column: Annotated[str, typer.Option(help="of the texts of CORPUS")] = "sentence",
    query_column: Annotated[str, typer.Option(help="of the texts of QUERIES")] = "query",
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="most texts of a query")] = 10,
    cosine: Annotated[float, typer.Option(min=-1, max=1, help="of the texts given, at least")] = -1.0,
    prefix: Prefix = "",
    model: ModelName = None,
    exact: Exact = None,
    keep: Keep = None,
    overwrite: Overwrite = False,
    concurrency: Concurrency = 4,
    patience: Patience = PATIENCE,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """Find the nearest texts of a file for each query of another.

    One row of OUTPUT for each text found: the query's columns, and rank, row (of CORPUS, from 1), match and cosine.
    With --keep the embeddings of CORPUS stay for the next queries. Interrupted while it embeds, the same command goes
    on where it stopped.
    """
    from semblance.corpus.search import search as run
    from semblance.corpus.work import Asking

    asking = Asking(model, concurrency, patience, overwrite, keep)

    async def ask(step: Callable[[str, float], None], say: Say) -> Any:
        async with async_client_of(url, local, models_dir, api_key, timeout) as client:
            return await run(
                client,
                corpus,
                queries,
                output,
                (column, query_column),
                asking,
                count=top_k,
                least=cosine,
                prefix=prefix,
                exact=exact,
                step=step,
                say=say,
            )

    done = _shown(ask)
    left_out = f", left out of {corpus.name}: {done.left_out:,}" if done.left_out else ""
    _tell(
        done,
        output,
        as_json,
        f"queries: {done.queries:,}, distinct texts: {done.texts:,}{left_out}",
        f"{top_k} nearest" if not done.exact else None,
    )


def _shown(ask: Callable[[Callable[[str, float], None], Say], Coroutine[Any, Any, T]]) -> T:
    """Run it under a progress bar on standard error."""
    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        shown = bar.add_task("", total=1.0)
        try:
            return asyncio.run(
                ask(
                    lambda what, share: bar.update(shown, description=what, completed=share),
                    lambda line: errors.print(f"semblance: {line}", markup=False, highlight=False, soft_wrap=True),
                )
            )
        except KeyboardInterrupt:
            typer.echo("semblance: interrupted; the same command goes on from here", err=True)
            raise


def _tell(done: Any, output: Path, as_json: bool, line: str, approximate: str | None) -> None:
    errors_file = f"{output}.errors.jsonl"
    if as_json:
        typer.echo(
            json.dumps(asdict(done) | {"output": str(output)} | ({"errors": errors_file} if done.skipped else {}))
        )
    else:
        skipped = f", skipped: {done.skipped:,} (see {errors_file})" if done.skipped else ""
        typer.echo(f"{line}{skipped}; {output}")
        if approximate is not None:
            typer.echo(
                f"approximate: {done.recall:.1%} of the {approximate} were found in a sample; --exact compares all"
            )
    if done.skipped:
        raise typer.Exit(SKIPPED)
