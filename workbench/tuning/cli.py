"""`python -m workbench tune`, which `semblance tune` runs too."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from semblance.cli.options import Delimiter, Encoding, expand_option_groups
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import KNOWN


@expand_option_groups
def tune_model(
    pairs: Annotated[Path, typer.Argument(help=f"labelled pairs, columns as in docs/tune.md: {KNOWN}")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            help="id of the published model to start from, or ID/VERSION; minilm-small takes longer and ends better",
        ),
    ] = "avg-paraphrase",
    model_id: Annotated[str, typer.Option("--id", help="id of the new model")] = ...,  # type: ignore[assignment]
    models: Annotated[Path, typer.Option(help="where the new model goes; starts are also in models/")] = (
        Path("own-models")
    ),
    runs: Annotated[Path, typer.Option(help="where the run is kept, which resumes when killed")] = Path("runs"),
    column: Annotated[
        list[str] | None, typer.Option(help="three times: the two texts and the score or label [default: as found]")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="lowest and highest score there can be [default: in the file]")
    ] = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    seed: Annotated[int, typer.Option(min=0, help="of the split and the order of batches")] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="at most [default: by the kind of model]")] = None,
    rate: Annotated[float | None, typer.Option(min=0.0, help="learning rate [default: by the kind of model]")] = None,
    even_if_worse: Annotated[
        bool, typer.Option("--even-if-worse", help="publish a model that is worse than its start on held-out pairs")
    ] = False,
) -> None:
    """Tune a published model on labelled pairs of your own (docs/tune.md); a killed run resumes with the same end."""
    from workbench.tuning.tune import TuningOptions, tune

    done = tune(
        TuningOptions(
            start=start,
            model_id=model_id,
            models=models,
            runs=runs,
            pairs=pairs,
            columns=tuple(column) if column else None,
            scale=scale,
            seed=seed,
            epochs=epochs,
            rate=rate,
            even_if_worse=even_if_worse,
            read_as=FileFormat(encoding, delimiter),
        )
    )
    console = Console()
    shown = Table(f"held out: {len(done.material.parts.held_out):,} pairs", start, model_id, box=None, pad_edge=False)
    for name, value in done.after.items():
        before = done.before.get(name)
        shown.add_row(name.replace("_", " "), "" if before is None else f"{before:.4f}", f"{value:.4f}")
    console.print(shown)
    found = done.result
    lines = [f"best epoch {found.best_epoch} of {found.epochs}, {found.seconds:.0f} s of training"]
    if not found.best_epoch:
        lines.append("no epoch was better than the start on the pairs to choose on: only the calibration is new")
    if done.cut:
        lines.append(f"{done.cut:,} texts are longer than the model reads, and were cut")
    lines.append(f"published {done.folder}")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
