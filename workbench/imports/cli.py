"""`python -m workbench import`, which `semblance import` runs too."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from core.sequences import PoolingMode
from semblance.cli.options import Delimiter, Encoding, expand_option_groups
from semblance.tables.delimited import FileFormat
from workbench.imports.model import Head, ImportOptions, Storage


@expand_option_groups
def import_model(
    source: Annotated[
        str,
        typer.Argument(
            help="a folder of transformers, sentence-transformers or model2vec, or owner/name[@revision] of a model hub"
        ),
    ],
    model_id: Annotated[str | None, typer.Option("--id", help="id of the model [default: its name]")] = None,
    models: Annotated[Path, typer.Option(help="where the new model goes")] = Path("own-models"),
    int8: Annotated[bool, typer.Option("--int8", help="weights in int8: a quarter of the size")] = False,
    float16: Annotated[bool, typer.Option("--float16", help="weights in float16: half of the size")] = False,
    pairs: Annotated[
        Path | None, typer.Option(help="to calibrate on: columns a, b and score (or label: docs/own-model.md)")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="lowest and highest score there can be [default: in the file]")
    ] = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    head: Annotated[
        Head | None, typer.Option(help="what the one output of a cross-encoder means [default: relevance]")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="a classifier's labels in its order, separated by commas")] = None,
    pairs_head: Annotated[
        Literal["yes", "no"] | None,
        typer.Option(help="whether a model with labels reads two texts together [default: where its labels say so]"),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="of a text [default: what the model can read]")] = None,
    graph: Annotated[
        str | None, typer.Option(help="the ONNX file in the folder, which runs as it is [default: docs/own-model.md]")
    ] = None,
    pooling: Annotated[PoolingMode | None, typer.Option(help="where no modules.json says it")] = None,
    prompt: Annotated[str | None, typer.Option(help="before every text [default: what the folder says]")] = None,
    query_prompt: Annotated[str | None, typer.Option(help="before the query of /rank")] = None,
    passage_prompt: Annotated[str | None, typer.Option(help="before the candidates of /rank")] = None,
    licence: Annotated[str | None, typer.Option(help="of the model [default: what its README states]")] = None,
    languages: Annotated[
        str | None, typer.Option(help="ISO 639 codes, separated by commas [default: what its README states]")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="replace another model of that id: the same one is replaced anyway")
    ] = False,
) -> None:
    """Take a model that was trained elsewhere: check it against its library, write models/ID/ (docs/own-model.md)."""
    from workbench.imports.calibration import read_labelled
    from workbench.imports.folder import import_model as take

    read_as = FileFormat(encoding, delimiter)
    given: dict[str, object] = {"--pairs": pairs and pairs.name, "--max-tokens": max_tokens, "--graph": graph}
    given |= {"--head": head, "--labels": labels, "--pooling": pooling, "--pairs-head": pairs_head}
    given |= {"--encoding": encoding, "--delimiter": delimiter}
    given |= {"--prompt": prompt, "--query-prompt": query_prompt, "--passage-prompt": passage_prompt}
    given |= {"--licence": licence, "--languages": languages}
    if pairs is None and (scale is not None or encoding is not None or delimiter is not None):
        raise typer.BadParameter("--scale, --encoding and --delimiter are of --pairs: give that too")
    if int8 and float16:
        raise typer.BadParameter("give one of --int8 and --float16")
    storage: Storage = "int8" if int8 else "float16" if float16 else "float32"
    words = [f"--{storage}"] if storage != "float32" else []
    for option, value in given.items():
        words += [option, str(value)] if value is not None else []
    if scale is not None:
        words += ["--scale", *(f"{end:g}" for end in scale)]
    prompts = {"text": prompt, "query": query_prompt, "passage": passage_prompt}
    of_pairs = None if pairs_head is None else pairs_head == "yes"
    spoken = tuple(dict.fromkeys(languages.split(","))) if languages else None
    named = [each.strip() for each in labels.split(",")] if labels is not None else None
    done = take(
        source,
        model_id,
        models,
        storage=storage,
        options=ImportOptions(graph, max_tokens, head, named, of_pairs, pooling, prompts, licence, spoken),
        labelled=(lambda model: read_labelled(pairs, model.label, scale, read_as)) if pairs is not None else None,
        arguments=words,
        overwrite=overwrite,
    )
    console = Console()
    unchecked = "parity is not checked: the model's library is not installed"
    lines = [unchecked if done.parity is None else done.parity.describe(done.storage), *done.notes]
    lines.append(f"calibration: {done.calibration}" + ("" if pairs is not None else "; --pairs fits it on your own"))
    for line in [*lines, f"imported as {done.folder}"]:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
