"""The commands `semblance dedupe` and `semblance search`."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from semblance.batch.rows import Say, Step
from semblance.corpus.options import CorpusOptions, CorpusSession
from semblance.errors import BatchError
from semblance.options import Json, ServiceOptions, TextFile, expand_option_groups
from semblance.progress import run_shown, tell_end

Output = Annotated[Path, typer.Argument(help=".jsonl, .csv, .tsv or .parquet; columns of the input come along")]
INPUT = ".jsonl, .csv, .tsv or .parquet; or .txt, a text a line"
Score = Annotated[float, typer.Option(min=0, max=1, help="with --rerank: the score from which on a pair is kept")]
LARGE = 50  # rows of a cluster that is named


@expand_option_groups
def dedupe(
    service: ServiceOptions,
    asking: CorpusOptions,
    read_as: TextFile,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=INPUT)],
    output: Output,
    column: Annotated[str, typer.Option(help="of the texts")] = "sentence",
    cosine: Annotated[
        float | None,
        typer.Option(
            min=-1, max=1, help="join by this cosine alone, or with --rerank and --score [default: judge pairs]"
        ),
    ] = None,
    score: Score = 0.5,
    reviewed: Annotated[
        Path | None, typer.Option(help="the review file of an earlier run, answered: the verdict learns from it")
    ] = None,
    guard: Annotated[
        bool,
        typer.Option("--guard/--no-guard", help="keep texts apart that differ in a number, a size, a colour, a 'not'"),
    ] = True,
    only_first: Annotated[bool, typer.Option("--only-first", help="write only the first row of each cluster")] = False,
    as_json: Json = False,
) -> None:
    """Find near-duplicates in a file: each row gets its cluster.

    Without --cosine pairs of near texts are judged by their cosine, their words and a model that reads both, and the
    doubtful ones are written to OUTPUT's .review.csv: answer yes or no in its column `same`, and give it back by
    --reviewed. New columns: cluster, the number of the cluster's first row, from 1; cluster_size; cosine, with that
    first row; kept_apart, the nearest row that differs in a fact, and how. Interrupted while it asks, the same command
    goes on where it stopped.
    """
    from semblance.corpus.dedupe import Rule
    from semblance.corpus.dedupe import dedupe as run

    if cosine is not None and reviewed is not None:
        raise BatchError("--reviewed teaches the verdict on pairs; with --cosine there is none: leave one of them out")
    rule = None if cosine is None else Rule(cosine, score)

    async def ask(work: CorpusSession) -> Any:
        return await run(
            work, source, output, column, read_as, rule=rule, reviewed=reviewed, only_first=only_first, guarded=guard
        )

    done = _done(service, asking, ask)
    lines = [f"rows: {done.rows:,}, distinct texts: {done.texts:,}, clusters: {done.clusters:,}"]
    lines += done.chosen
    if done.largest > LARGE:
        lines.append(f"the largest cluster has {done.largest:,} rows; it begins with row {done.largest_first:,}")
    if done.review is not None:
        lines.append(f"doubtful pairs, to review: {done.review}")
    _tell(done, output, as_json, lines, "pairs")


@expand_option_groups
def search(
    service: ServiceOptions,
    asking: CorpusOptions,
    read_as: TextFile,
    corpus: Annotated[Path, typer.Argument(help=f"the file to search: {INPUT}")],
    queries: Annotated[Path, typer.Argument(help="the file of queries")],
    output: Output,
    column: Annotated[str, typer.Option(help="of the texts of CORPUS")] = "sentence",
    query_column: Annotated[str, typer.Option(help="of the texts of QUERIES")] = "query",
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="most texts of a query")] = 10,
    cosine: Annotated[float, typer.Option(min=-1, max=1, help="of the texts given, at least")] = -1.0,
    score: Score = 0.0,
    as_json: Json = False,
) -> None:
    """Find the nearest texts of a file for each query of another.

    One row of OUTPUT for each text found: the query's columns, and rank, row (of CORPUS, from 1), match and cosine;
    with --rerank the score of that model, which orders them.
    With --keep the embeddings of CORPUS stay for the next queries. Interrupted while it embeds, the same command goes
    on where it stopped.
    """
    from semblance.corpus.search import search as run

    async def ask(work: CorpusSession) -> Any:
        columns = (column, query_column)
        return await run(work, corpus, queries, output, columns, read_as, count=top_k, least=cosine, score=score)

    done = _done(service, asking, ask)
    left_out = f", left out of {corpus.name}: {done.left_out:,}" if done.left_out else ""
    line = f"queries: {done.queries:,}, distinct texts: {done.texts:,}{left_out}"
    _tell(done, output, as_json, [line], f"{top_k} nearest")


def _done(service: ServiceOptions, asking: CorpusOptions, ask: Callable[[CorpusSession], Awaitable[Any]]) -> Any:
    async def run(step: Step, say: Say) -> Any:
        async with service.of_batch(asking.patience) as client:
            return await ask(CorpusSession(client, asking, step, say))

    return run_shown(run)


def _tell(done: Any, output: Path, as_json: bool, lines: list[str], sought: str) -> None:
    skipped = f", skipped: {done.skipped:,} (see {{}})" if done.skipped else ""
    lines = [f"{lines[0]}{skipped}; {output}", *lines[1:]]
    if not done.exact:
        lines.append(f"approximate: {done.recall:.1%} of the {sought} were found in a sample; --exact compares all")
    tell_end(lines, asdict(done), output, as_json)
