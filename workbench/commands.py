"""`semblance tune` and `semblance import`."""

from importlib import import_module

import typer

from semblance.extras import needs


def tune(context: typer.Context) -> None:
    """Tune a published model on labelled pairs of your own: `semblance tune --help`, docs/tune.md."""
    with needs("tuning", extra="training"):
        import_module("torch")  # before the command begins
        from workbench.__main__ import run_cli
    run_cli(["tune", *context.args], name="semblance")


def import_model(context: typer.Context) -> None:
    """Take a model that was trained elsewhere: `semblance import --help`, docs/own-model.md."""
    with needs("importing", extra="import"):
        import_module("huggingface_hub")  # before the command begins
        from workbench.__main__ import run_cli
    run_cli(["import", *context.args], name="semblance")
