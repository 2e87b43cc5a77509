"""The commands. Without a URL they open the models in this process; with one they ask the service there."""

import asyncio
import json
import logging
import os
import sys
from contextlib import AbstractContextManager
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from semblance import render
from semblance.client import AsyncClient, Client
from semblance.exits import SKIPPED
from semblance.extras import needs

app = typer.Typer(
    name="semblance",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How alike are two sentences? Which of these answers fits? Does this follow from that?\n\nWith --url, or "
    "SEMBLANCE_URL, a service is asked; otherwise the models are opened here. Exit codes: 0 done, 1 refused by the "
    "service, 2 wrong usage or files, 3 no service, 4 a batch with skipped rows, 130 interrupted.",
)

Url = Annotated[str | None, typer.Option(envvar="SEMBLANCE_URL", help="service to ask, such as http://127.0.0.1:8000")]
Local = Annotated[bool, typer.Option("--local", help="open the models here even if SEMBLANCE_URL is set")]
ModelsDir = Annotated[
    Path | None,
    typer.Option(help="folder of models to open here, as --local [default: SEMBLANCE_MODELS_DIR, or models]"),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        envvar="SEMBLANCE_API_KEY", show_envvar=True, help="of the service; in the variable other users do not see it"
    ),
]
Timeout = Annotated[float, typer.Option(min=0.001, help="seconds to wait for an answer of a service")]
Json = Annotated[bool, typer.Option("--json", help="print the answer as one line of JSON")]
ModelName = Annotated[str | None, typer.Option(help="who answers; see `semblance models` [default: the service's]")]
RerankModel = Annotated[str | None, typer.Option(help="a second model, which orders the best again")]
RerankTop = Annotated[int | None, typer.Option(min=1, help="how many the second model orders")]
TopK = Annotated[int | None, typer.Option(min=1, help="how many of the best to give; all without it")]


@app.command()
def score(
    a: Annotated[str, typer.Argument(metavar="A", help="a sentence")],
    b: Annotated[str, typer.Argument(metavar="B", help="another")],
    model: ModelName = None,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """How alike two sentences are, from 0 to 1."""
    with _client(url, local, models_dir, api_key, timeout) as client:
        answer = client.similarity([(a, b)], model=model)
    _print(answer, as_json, render.similarity)


@app.command()
def rank(
    query: Annotated[str, typer.Argument(help="a question, or any text")],
    candidates: Annotated[list[str] | None, typer.Argument(help="texts to order; without them see --file")] = None,
    file: Annotated[
        typer.FileText | None,
        typer.Option(
            encoding="utf-8", errors="surrogateescape", help="candidates, one a line; - or nothing for standard input"
        ),
    ] = None,
    top_k: TopK = None,
    model: ModelName = None,
    rerank_model: RerankModel = None,
    rerank_top: RerankTop = None,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """Order candidates by their similarity to a query, best first."""
    if candidates and file:
        raise typer.BadParameter("give candidates or --file, not both")
    if not candidates and file is None and sys.stdin.isatty():
        raise typer.BadParameter("give candidates, --file, or lines on standard input")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # what is not text is for the service to refuse, by its place
    texts = candidates or [text for line in file or sys.stdin if (text := line.strip())]
    with _client(url, local, models_dir, api_key, timeout) as client:
        answer = client.rank(query, texts, top_k=top_k, model=model, rerank_model=rerank_model, rerank_top=rerank_top)
    if as_json:
        found = _plain(answer)
        for result in found["results"]:
            result["text"] = texts[result["index"]]
        _print(found, as_json, str)
    else:
        _print(answer, as_json, lambda ranking: render.ranking(ranking, texts))


@app.command()
def entail(
    premise: Annotated[str, typer.Argument(help="what is taken to be true")],
    hypothesis: Annotated[str, typer.Argument(help="what may follow from it")],
    model: ModelName = None,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """Whether the second sentence follows from the first, contradicts it, or neither."""
    with _client(url, local, models_dir, api_key, timeout) as client:
        answer = client.entailment([(premise, hypothesis)], model=model)
    _print(answer, as_json, render.entailment)


@app.command()
def explain(
    a: Annotated[str, typer.Argument(metavar="A", help="a sentence")],
    b: Annotated[str, typer.Argument(metavar="B", help="another")],
    model: ModelName = None,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """What made the score of two sentences, word by word."""
    with _client(url, local, models_dir, api_key, timeout) as client:
        answer = client.explain(a, b, model=model)
    _print(answer, as_json, lambda explanation: render.explanation(explanation, Console().width))


@app.command()
def models(
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """The models, what each can do, and the limits of a request."""
    with _client(url, local, models_dir, api_key, timeout) as client:
        answer = client.models()
    _print(answer, as_json, render.models)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="address to listen on [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="port [default: 8000]")] = None,
    models_dir: ModelsDir = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="any setting of the service, such as max_pairs=512"),
    ] = None,
) -> None:
    """Run the service in this process, until it is told to stop."""
    with needs("serving", extra="service"):
        from service.__main__ import main
        from service.settings import PREFIX, Settings
    chosen = {"host": host, "port": port, "models_dir": models_dir}
    for each in setting or []:
        name, equals, value = each.partition("=")
        if not equals or name not in Settings.model_fields:
            known = ", ".join(sorted(Settings.model_fields))
            raise typer.BadParameter(f"{each!r}: expected NAME=VALUE, NAME being one of: {known}", param_hint="--set")
        chosen[name] = value
    os.environ.update({PREFIX + name.upper(): str(value) for name, value in chosen.items() if value is not None})
    raise typer.Exit(main())


class BatchTask(StrEnum):
    """What `batch` can ask of each row."""

    similarity = "similarity"
    entailment = "entailment"
    rank = "rank"
    embed = "embed"


@app.command()
def batch(
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
    prefix: Annotated[str, typer.Option(help="put before the names of the new columns")] = "",
    top_k: TopK = None,
    model: ModelName = None,
    rerank_model: RerankModel = None,
    rerank_top: RerankTop = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="begin again, and replace OUTPUT")] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="requests under way at once")] = 4,
    as_json: Json = False,
    url: Url = None,
    local: Local = False,
    models_dir: ModelsDir = None,
    api_key: ApiKey = None,
    timeout: Timeout = 30.0,
) -> None:
    """Ask about every row of a file.

    Interrupted or killed, the same command goes on where it stopped. A row that gets no answer is skipped, and said
    with its number and the reason in OUTPUT.errors.jsonl; then the exit code is 4.
    """
    from semblance.batch.job import run_batch
    from semblance.batch.tasks import DEFAULT_COLUMNS, Options

    options = Options(
        task.value,
        tuple(column) if column else DEFAULT_COLUMNS[task.value],
        model=model,
        prefix=prefix,
        top_k=top_k,
        rerank_model=rerank_model,
        rerank_top=rerank_top,
    )
    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())

    async def run() -> Any:
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
            shown = bar.add_task("0 rows", total=None)

            def watch(done: Any) -> None:
                bar.update(shown, completed=done.position, total=done.total, description=f"{done.rows:,} rows")

            async with _async_client(url, local, models_dir, api_key, timeout) as client:
                return await run_batch(
                    client, source, output, options, overwrite=overwrite, concurrency=concurrency, watch=watch
                )

    try:
        done = asyncio.run(run())
    except KeyboardInterrupt:
        typer.echo("semblance: interrupted; the same command goes on from here", err=True)
        raise
    errors_file = f"{output}.errors.jsonl"
    if as_json:
        summary = {"rows": done.rows, "skipped": done.skipped, "output": str(output)}
        typer.echo(json.dumps(summary | ({"errors": errors_file} if done.skipped else {})))
    else:
        skipped = f", {done.skipped} skipped (see {errors_file})" if done.skipped else ""
        typer.echo(f"{done.rows} rows{skipped}: {output}")
    if done.skipped:
        raise typer.Exit(SKIPPED)


def _client(
    url: str | None, local: bool, models_dir: Path | None, api_key: str | None, timeout: float
) -> AbstractContextManager[Client]:
    if url is None or local or models_dir is not None:
        _quiet()
        return Client.local(models_dir)
    try:
        return Client(url, api_key=api_key, timeout=timeout)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _async_client(
    url: str | None, local: bool, models_dir: Path | None, api_key: str | None, timeout: float
) -> AsyncClient:
    if url is None or local or models_dir is not None:
        _quiet()
        return AsyncClient.local(models_dir)
    try:
        return AsyncClient(url, api_key=api_key, timeout=timeout)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _quiet() -> None:
    """What a service logs is told by its errors here."""
    logging.getLogger("service").addHandler(logging.NullHandler())


def _plain(answer: object) -> Any:
    return TypeAdapter(type(answer)).dump_python(answer, mode="json", exclude_none=True)


def _print(answer: Any, as_json: bool, rendered: Any) -> None:
    if as_json:
        typer.echo(TypeAdapter(type(answer)).dump_json(answer, exclude_none=True))
    else:
        Console().print(rendered(answer))
