"""The interface of every kind of training data."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Generic, TypeVar

from core.manifest import Figure, TrainingData
from training.errors import UserError
from training.recipes.sources.figures import PairScorer

Train = TypeVar("Train")
Dev = TypeVar("Dev")


class RecipeError(UserError, ValueError):
    """A recipe lacks what is requested: a test part, a teacher, a task or a storage format."""


class DataSource(ABC, Generic[Train, Dev]):
    """One kind of training data. Subclasses are frozen dataclasses: their fields are recorded in `recipe.json`."""

    @abstractmethod
    def train(self, teacher: Path | None, cache: Path) -> Train:
        """The training part of the data.

        Args:
            teacher: folder of a sentence-transformers model, where one was given.
            cache: folder in which a teacher's encodings and ratings are kept.

        Raises:
            RecipeError: the data need a teacher and none was given.
            CorpusError: a corpus is missing or malformed.
        """

    @abstractmethod
    def dev(self) -> Dev:
        """The development part, on which the epoch is chosen."""

    @abstractmethod
    def test_figures(self, model: PairScorer) -> list[Figure]:
        """Measure an exported model on the test part.

        Raises:
            RecipeError: there is no test part.
        """

    @abstractmethod
    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The corpora of the data, with rows, licences and uses.

        Args:
            calibrated_on: the part of the data on which the score is calibrated, for the description.
        """

    def check_test(self) -> None:
        """Raise RecipeError if there is no test part; called before the export, unlike `test_figures`."""

    def vocabulary(self) -> list[str]:
        """Texts whose words a published model always keeps."""
        return []


def needed(teacher: Path | None, what: str) -> Path:
    """The folder of the teacher, which must be given.

    Raises:
        RecipeError: there is none.
    """
    if teacher is None:
        raise RecipeError(f"{what} a teacher: give --teacher, the folder of a model")
    return teacher
