"""`semblance tune` and `semblance import`: commands of `workbench`."""

from importlib import import_module

import typer

from semblance.extras import needs

# Their options, --help too, are the workbench's own.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}


def tune(context: typer.Context) -> None:
    """Tune a published model on labelled pairs of your own: `semblance tune --help`, docs/tune.md."""
    with needs("tuning", extra="training"):
        import_module("torch")  # before the command begins
        from workbench.__main__ import run_cli
    run_cli(["tune", *context.args], name="semblance")


def import_model(context: typer.Context) -> None:
    """Take a model that was trained elsewhere: `semblance import --help`, docs/own-model.md."""
    with needs("importing", extra="import"):
        from workbench.__main__ import run_cli
    run_cli(["import", *context.args], name="semblance")
