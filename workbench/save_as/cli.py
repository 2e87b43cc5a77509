"""`python -m workbench save-as`."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

_SHOWN = 20  # words


def save_as(
    form: Annotated[Literal["sentence-transformers", "model2vec", "onnx"], typer.Argument(help="of which library")],
    model_id: Annotated[str, typer.Argument(help="id of a model, or ID/VERSION")],
    folder: Annotated[Path, typer.Argument(help="a new folder")],
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
) -> None:
    """Write a model of ours in the form of another library, and measure how near it is (docs/elsewhere.md)."""
    from workbench.save_as.save import save_as as save

    done = save(form, models / model_id, folder)
    console = Console()
    if done is None:
        console.print(f"[yellow]parity is not measured:[/yellow] {form} is not installed", soft_wrap=True)
    else:
        console.print(done.sentence, soft_wrap=True, highlight=False)
        if done.unread:
            more = f" and {len(done.unread) - _SHOWN} more" if len(done.unread) > _SHOWN else ""
            shown = ", ".join(done.unread[:_SHOWN])
            console.print(
                f"words that only our tokenizer reads: {shown}{more}", soft_wrap=True, highlight=False, markup=False
            )
    console.print(f"saved in {folder}", soft_wrap=True, highlight=False)
