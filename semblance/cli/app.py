"""The commands of one request each, and `serve`; the others have a module each.

Without a URL they open the models in this process; with one they ask that service.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from pydantic import TypeAdapter
from rich.console import Console

from semblance.cli import render
from semblance.cli.batch import batch
from semblance.cli.choose import choose
from semblance.cli.claims import claims
from semblance.cli.dedupe import dedupe
from semblance.cli.options import (
    NOT_UTF_8,
    File,
    Json,
    ModelName,
    ModelsDir,
    RerankModel,
    RerankTop,
    ServiceOptions,
    TopK,
    expand_option_groups,
)
from semblance.errors import BatchError
from semblance.extras import TRAINING, needs, needs_distribution, version

# Their options, --help too, are the workbench's own.
_OF_WORKBENCH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}

app = typer.Typer(
    rich_markup_mode="markdown",  # of the default, brackets would be styles
    name="semblance",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"semblance {version()}")
        raise typer.Exit


@app.callback()
def common(
    _: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version, and end")
    ] = False,
) -> None:
    """How alike are two sentences? Which of these answers fits? Does this follow from that?

    With --url, or SEMBLANCE_URL, a service is asked; otherwise the models are opened here. Exit codes: 0 done,
    1 refused by the service, 2 wrong usage or files, 3 no service, 4 a batch with skipped rows, 130 interrupted.
    """


@app.command()
@expand_option_groups
def score(
    service: ServiceOptions,
    a: Annotated[str, typer.Argument(metavar="A", help="a sentence")],
    b: Annotated[str, typer.Argument(metavar="B", help="another")],
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """How alike two sentences are, from 0 to 1."""
    with service.client() as client:
        answer = client.similarity([(a, b)], model=model)
    _print(answer, as_json, render.similarity)


@app.command()
@expand_option_groups
def rank(
    service: ServiceOptions,
    query: Annotated[str, typer.Argument(help="a question, or any text")],
    candidates: Annotated[list[str] | None, typer.Argument(help="texts to order; without them see --file")] = None,
    file: File = None,
    top_k: TopK = None,
    model: ModelName = None,
    rerank_model: RerankModel = None,
    rerank_top: RerankTop = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="where the best has a lower score, there is no answer")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="likewise, where the confidence is lower: docs/faq.md")
    ] = None,
    as_json: Json = False,
) -> None:
    """Order candidates by their similarity to a query, best first."""
    texts = _texts(candidates, file, "candidates")
    with service.client() as client:
        answer = client.rank(
            query,
            texts,
            top_k=top_k,
            model=model,
            rerank_model=rerank_model,
            rerank_top=rerank_top,
            min_score=min_score,
            min_confidence=min_confidence,
        )
    found = _plain(answer)
    for result in found["results"]:
        result["text"] = texts[result["index"]]
    _print(found, as_json, lambda _: render.ranking(answer, texts))


@app.command()
@expand_option_groups
def entail(
    service: ServiceOptions,
    premise: Annotated[str, typer.Argument(help="what is taken to be true")],
    hypothesis: Annotated[str, typer.Argument(help="what may follow from it")],
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """Whether the second sentence follows from the first, contradicts it, or neither."""
    with service.client() as client:
        answer = client.entailment([(premise, hypothesis)], model=model)
    _print(answer, as_json, render.entailment)


@app.command()
@expand_option_groups
def classify(
    service: ServiceOptions,
    texts: Annotated[list[str] | None, typer.Argument(help="texts to label; without them see --file")] = None,
    file: File = None,
    label: Annotated[
        list[str] | None, typer.Option(help="a label, once for each; without any, those that a model has itself")
    ] = None,
    template: Annotated[
        str | None, typer.Option(help="a sentence with {} for the label [default: This text is about {}.]")
    ] = None,
    multi_label: Annotated[bool, typer.Option("--multi-label", help="judge each label by itself")] = False,
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """Label texts: with labels of your own, or with those that a model has itself."""
    given = _texts(texts, file, "texts")
    with service.client() as client:
        answer = client.classify(given, label or None, template=template, multi_label=multi_label, model=model)
    _print(answer, as_json, lambda labels: render.labels(labels, given))


@app.command()
@expand_option_groups
def explain(
    service: ServiceOptions,
    a: Annotated[str, typer.Argument(metavar="A", help="a sentence")],
    b: Annotated[str, typer.Argument(metavar="B", help="another")],
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """What made the score of two sentences, word by word."""
    with service.client() as client:
        answer = client.explain(a, b, model=model)
    _print(answer, as_json, render.explanation)


@app.command()
@expand_option_groups
def embed(
    service: ServiceOptions,
    sentences: Annotated[list[str] | None, typer.Argument(help="texts to embed; without them see --file")] = None,
    file: File = None,
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """Sentence embeddings: the first numbers of each, or with --json all of them."""
    texts = _texts(sentences, file, "sentences")
    with service.client() as client:
        answer = client.embed(texts, model=model)
    found = {"model": answer.model, "dim": answer.dim, "embeddings": answer.embeddings.tolist()}
    found["truncated"] = answer.truncated
    _print(found, as_json, lambda _: render.embeddings(answer, texts))


@app.command()
@expand_option_groups
def models(service: ServiceOptions, as_json: Json = False) -> None:
    """The models, what each can do, and the limits of a request."""
    with service.client() as client:
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
    help_settings: Annotated[bool, typer.Option("--help-settings", help="print every setting and end")] = False,
) -> None:
    """Run the service in this process, until it is told to stop."""
    with needs("serving", extra="service"):
        from service.__main__ import main
        from service.settings import PREFIX, Settings
    if help_settings:
        raise typer.Exit(main(["--help-settings"]))
    chosen = {"host": host, "port": port, "models_dir": models_dir}
    for each in setting or []:
        name, equals, value = each.partition("=")
        if not equals or name not in Settings.model_fields:
            known = ", ".join(sorted(Settings.model_fields))
            raise typer.BadParameter(f"{each!r}: expected NAME=VALUE, NAME being one of: {known}", param_hint="--set")
        chosen[name] = value
    os.environ.update({PREFIX + name.upper(): str(value) for name, value in chosen.items() if value is not None})
    raise typer.Exit(main())


app.command("batch")(batch)
app.command("dedupe")(dedupe)
app.command("choose")(choose)
app.command("claims")(claims)


@app.command("tune", context_settings=_OF_WORKBENCH)
def tune(context: typer.Context) -> None:
    """Tune a published model on labelled pairs of your own: `semblance tune --help`, docs/tune.md."""
    _of_workbench("tuning", "training", "torch", context)


@app.command("import", context_settings=_OF_WORKBENCH)
def import_model(context: typer.Context) -> None:
    """Take a model that was trained elsewhere: `semblance import --help`, docs/own-model.md."""
    _of_workbench("importing", "import", "huggingface_hub", context)


def _of_workbench(what: str, extra: str, library: str, context: typer.Context) -> None:
    """Run a command of the workbench, which imports this package, and may be absent."""
    if find_spec("workbench") is None:
        raise needs_distribution(f"`semblance {context.info_name}`", TRAINING)
    with needs(what, extra=extra):
        import_module(library)  # before the command begins
        run_cli = import_module("workbench.__main__").run_cli
    run_cli([context.info_name, *context.args], name="semblance")


def _texts(given: list[str] | None, file: TextIO | None, what: str) -> list[str]:
    """The texts given, or the lines of a file or of standard input, without empty ones.

    Raises:
        BadParameter: both are given, standard input is a terminal, or there is no text.
        BatchError: they are not UTF-8, or those of a device.
    """
    if given and file:
        raise typer.BadParameter(f"give {what} or --file, not both")
    if given:
        return given
    if file is None and sys.stdin.isatty():
        raise typer.BadParameter(f"give {what}, --file, or lines on standard input")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    name = getattr(file or sys.stdin, "name", "<stdin>")
    where = "standard input" if name == "<stdin>" else name
    if Path(where).is_char_device():
        raise BatchError(f"{where} is a device, which may have no end")
    texts, number = [], 0
    for number, line in enumerate(file or sys.stdin, 1):
        if bad := NOT_UTF_8.search(line):
            byte = ord(bad[0]) - 0xDC00
            raise BatchError(f"{where}: line {number}: byte {byte:02X} is not UTF-8: save it as UTF-8")
        if text := line.removeprefix("\ufeff" if number == 1 else "").strip():  # the mark of UTF-8
            texts.append(text)
    if not texts:
        raise typer.BadParameter(f"there are no {what}: none were given, and {where} has no line with text")
    if number > len(texts):
        typer.echo(f"semblance: lines without text are left out: {number - len(texts)} of {number}", err=True)
    return texts


def _plain(answer: object) -> Any:
    return TypeAdapter(type(answer)).dump_python(answer, mode="json", exclude_none=True)


def _print(answer: Any, as_json: bool, rendered: Any) -> None:
    if as_json:
        typer.echo(TypeAdapter(type(answer)).dump_json(answer, exclude_none=True))
    else:
        Console().print(render.Printable(rendered(answer)))
