"""Word tables on disk, `runs/tables/<name>/`: made once, loaded by all runs that use them."""

from collections.abc import Iterator
from pathlib import Path

from training.data import mixtures
from training.data.readers import wikipedia
from training.data.words.published import published_table
from training.data.words.tables import ROWS_NAME, WordTable
from training.recipes.sources.tables import PretrainedEncoder, PublishedTable, ServedTable, TableRecipe
from training.teacher.distill import count_words, distil_table
from training.teacher.encoder import Teacher
from training.train.folder import RecipeChangedError, RunMissing

Table = TableRecipe | PublishedTable | ServedTable | PretrainedEncoder


def make_table(recipe: TableRecipe, teacher: Teacher, runs: Path) -> WordTable:
    """Distil a word table, or load it if it exists.

    Words are counted on Wikipedia and on the sentences of the transfer mixture, not on evaluation sentences.

    Raises:
        RecipeChangedError: a table of that name exists with another size.
    """
    folder = runs / "tables" / recipe.name
    if (folder / ROWS_NAME).is_file():
        return load_table(recipe, runs)

    def texts() -> Iterator[str]:
        yield from wikipedia.paragraphs()
        for _, sentence in mixtures.unlabelled_sentences(limit=400_000, seed=0):
            yield sentence

    table = distil_table(
        teacher,
        count_words(texts()),
        teacher.whole_words(),
        words=recipe.words,
        dim=recipe.dim,
        pieces=recipe.pieces,
        buckets=recipe.buckets,
        sif=recipe.sif,
        cache=runs / "teacher",
    )
    table.save(folder)
    return table


def make_published_table(recipe: PublishedTable, runs: Path) -> WordTable:
    """Make a word table from published word vectors, or load it if it exists.

    Raises:
        CorpusError: the file of vectors is missing or malformed.
    """
    folder = runs / "tables" / recipe.name
    if not (folder / ROWS_NAME).is_file():
        published_table(recipe.vectors(), pieces=recipe.pieces, buckets=recipe.buckets).save(folder)
    return load_table(recipe, runs)


def load_table(recipe: Table, runs: Path) -> WordTable:
    """Load a word table.

    Raises:
        TypeError: a transformer has none.
        RunMissing: it does not exist; names the command.
        RecipeChangedError: it was distilled in another size.
    """
    if isinstance(recipe, PretrainedEncoder):
        raise TypeError(f"{recipe.name} brings its own words: there is no table of them")
    folder = runs / "tables" / recipe.name
    try:
        table = WordTable.load(folder)
    except FileNotFoundError as error:
        command = f"python -m training {recipe.command} {recipe.name}"
        raise RunMissing(f"no word table {recipe.name!r}: run `{command}`") from error
    if isinstance(recipe, TableRecipe) and (mismatch := recipe.mismatch(table)) is not None:
        raise RecipeChangedError(f"{folder} holds a table of {mismatch}: move it away and distil it again")
    return table
