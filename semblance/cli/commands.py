"""Commands that are imported when they are called, or when all are listed."""

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperGroup

from semblance.extras import TRAINING, needs_distribution

# The workbench imports this package, so its commands are only named here.
COMMANDS = {
    "batch": "semblance.cli.batch:batch",
    "tune": "workbench.commands:tune",
    "import": "workbench.commands:import_model",
    "dedupe": "semblance.cli.dedupe:dedupe",
    "choose": "semblance.cli.choose:choose",
    "claims": "semblance.cli.claims:claims",
}
# Their options, --help too, are the workbench's own.
_OF_WORKBENCH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}


class LazyGroup(TyperGroup):
    """The commands of a Typer application, and then those of the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(dict.fromkeys((*super().list_commands(ctx), *COMMANDS)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, imported; None: there is none."""
        if cmd_name not in self.commands:
            for name in (cmd_name,) if cmd_name in COMMANDS else COMMANDS:  # all, for "Did you mean"
                self.commands.setdefault(name, self._imported(name))
        return super().get_command(ctx, cmd_name)

    def _imported(self, name: str) -> Any:
        of_workbench = COMMANDS[name].startswith("workbench.")
        settings = _OF_WORKBENCH if of_workbench else {}
        function = _not_installed if of_workbench and find_spec("workbench") is None else resolve_name(COMMANDS[name])
        one = typer.Typer(rich_markup_mode=self.rich_markup_mode, add_completion=False)
        one.command(name, context_settings=settings)(function)
        return typer.main.get_command(one)


def _not_installed(context: typer.Context) -> None:
    raise needs_distribution(f"`semblance {context.info_name}`", TRAINING)


_not_installed.__doc__ = f"Not installed: pip install {TRAINING}."
