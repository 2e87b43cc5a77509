"""`python -m workbench import`."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from training.words.storage import Storage


def import_model(
    folder: Annotated[Path, typer.Argument(help="of sentence-transformers or model2vec, or with an ONNX encoder")],
    model_id: Annotated[str, typer.Option("--id", help="id of the model")],
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
    version: Annotated[
        int | None, typer.Option(min=1, max=999_999_999, help="write models/ID/VERSION/: docs/models.md")
    ] = None,
    storage: Annotated[
        Storage | None, typer.Option(help="of the weights [default: int8; of an ONNX encoder as they are]")
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option(help="labelled pairs: columns a, b and score (or label: docs/own-model.md)")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="lowest and highest score there can be [default: in the file]")
    ] = None,
    head: Annotated[
        Literal["similarity", "relevance"], typer.Option(help="what the one output of a cross-encoder means")
    ] = "similarity",
    labels: Annotated[
        str | None, typer.Option(help="a cross-encoder's three labels in its order, separated by commas")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="of a text [default: what the model can read]")] = None,
) -> None:
    """Take a model that was trained elsewhere: check it against its library, write models/ID/ (docs/own-model.md)."""
    from workbench.imports.calibration import read_labelled
    from workbench.imports.folder import import_model as take
    from workbench.imports.folder import read_model

    options = {"--storage": storage, "--calibrate": calibrate and calibrate.name, "--max-tokens": max_tokens}
    options |= {"--head": head if head != "similarity" else None, "--labels": labels}
    words = ["python", "-m", "workbench", "import", folder.resolve().name, "--id", model_id]
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    if scale is not None:
        words += ["--scale", *(f"{end:g}" for end in scale)]
    done = take(
        folder,
        model_id,
        models,
        version=version,
        storage=storage,
        read=partial(read_model, max_tokens=max_tokens, head=head, labels=labels.split(",") if labels else None),
        labelled=(lambda model: read_labelled(calibrate, model.label, scale)) if calibrate is not None else None,
        command=shlex.join(words),
    )
    console = Console()
    unchecked = "[yellow]parity is not checked:[/yellow] the model's library is not installed"
    lines = [unchecked if done.parity is None else done.parity.sentence(done.storage), *done.notes]
    if not done.calibrated:
        lines.append("its scores are uncalibrated: give --calibrate pairs.csv")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    console.print(f"imported as {done.folder}", soft_wrap=True, highlight=False)
