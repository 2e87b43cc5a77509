"""`python -m training evaluate-model`: figures of any published model folder."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from core.manifest import Manifest


def evaluate_model(
    folder: Annotated[Path, typer.Argument(help="a model folder, as models/avg-sick")],
    only: Annotated[str, typer.Option(help="sets whose name contains one of these, separated by commas")] = "",
    record: Annotated[
        Path | None,
        typer.Option(
            help="file of JSON Lines for a record of the figures, as papers/apart.jsonl, which the report reads"
        ),
    ] = None,
) -> None:
    """Measure any published model folder on the evaluation sets in SEMBLANCE_DATA; writes nothing unless asked."""
    from training.publish.evaluate import evaluate_model as measure
    from training.publish.figures import record_apart

    console = Console()
    found = measure(folder, tuple(filter(None, only.split(","))))
    said = {(f.task, f.corpus, f.split, f.metric): f.value for f in Manifest.load(folder).figures}
    shown = Table("task", "corpus", "split", "metric", "value", "in the manifest", "rows")
    for f in found.figures:
        before = said.get((f.task, f.corpus, f.split, f.metric))
        known = "" if before is None else f"{before:.4f}"
        shown.add_row(f.task, f.corpus, f.split, f.metric, f"{f.value:.4f}", known, str(f.rows))
    console.print(shown)
    if found.missing:
        console.print(f"not in SEMBLANCE_DATA: {', '.join(found.missing)}", soft_wrap=True, highlight=False)
    if record is not None and found.figures:
        console.print(f"wrote {record_apart(record, folder, only, found.figures)}")
    if not found.figures:
        console.print("[red]error:[/red] nothing was measured")
        raise typer.Exit(1)
