"""Word tables on disk, `runs/tables/<name>/`: made once, loaded by all runs that use them."""

import re
from collections.abc import Iterator
from pathlib import Path

from training.corpora import mixtures
from training.corpora.readers import wikipedia
from training.runs.folder import RecipeChangedError, RunMissing
from training.sources.tables import OwnVectors, PretrainedEncoder, PublishedTable, ServedTable, TableRecipe
from training.teacher.distill import count_words, distil_table
from training.teacher.encoder import Teacher
from training.words.published import alike, published_table
from training.words.tables import ROWS_NAME, WordTable
from training.words.vectors import VectorsError, WordVectors, read_vectors

Table = TableRecipe | PublishedTable | OwnVectors | ServedTable | PretrainedEncoder
PIECES, BUCKETS = 6_000, 1_024  # of a table of somebody's own vectors


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
    """Make a word table from published word vectors; an existing one is kept if it is the same.

    Raises:
        RecipeChangedError: a table of that name exists and differs.
        CorpusError: the file of vectors is missing or malformed.
    """
    try:
        table = published_table(recipe.vectors(), pieces=recipe.pieces, buckets=recipe.buckets)
    except ValueError as error:
        raise VectorsError(f"{recipe.corpus}: {error}") from error
    return _kept(table, recipe.name, runs, recipe.corpus)


def table_name(file: Path) -> str:
    """The name of a table after its file: `glove.6B.50d.txt.gz` gives `glove-6b-50d`."""
    plain = re.sub(r"(\.(gz|txt|bin|vec|npz))+$", "", file.name.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def make_own_table(name: str, file: Path, runs: Path, *, most: int) -> WordTable:
    """Make a word table of any file that `training.words.vectors` reads.

    Args:
        name: of the table; `on_words` of `training.recipes` names it in a recipe.
        file: of word vectors, its words by falling frequency.
        runs: where the table goes.
        most: words, the first ones of the file.

    Raises:
        RecipeChangedError: a table of that name exists and differs.
        VectorsError: the file cannot be read, or holds no word that can stand in a sentence.
    """
    vectors = read_vectors(file)
    try:
        first = WordVectors(vectors.words[:most], vectors.vectors[:most])
        table = published_table(first, pieces=PIECES, buckets=BUCKETS)
    except ValueError as error:
        raise VectorsError(f"{file}: {error}") from error
    return _kept(table, name, runs, str(file))


def _kept(table: WordTable, name: str, runs: Path, source: str) -> WordTable:
    """The table in its folder, where there may be the same one already."""
    folder = runs / "tables" / name
    if not (folder / ROWS_NAME).is_file():
        table.save(folder)
    elif not alike(table, WordTable.load(folder)):
        raise RecipeChangedError(f"{folder} holds another table than {source} gives: move it away")
    return WordTable.load(folder)


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
    if (mismatch := recipe.mismatch(table)) is not None:
        raise RecipeChangedError(f"{folder} holds a table of {mismatch}: move it away and distil it again")
    return table
