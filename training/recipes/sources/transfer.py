"""Data of transfer training: unlabelled sentences and paraphrase pairs.

Epochs are chosen on STS 2016, as in the papers. Test sets are the other STS sets and SICK; neither is trained on.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.manifest import Figure, TrainingData
from core.text import split_words
from training.data import mixtures
from training.data.glosses import glosses
from training.data.pairs import Pair
from training.data.readers import sts
from training.data.wordnet import wordnet_folder
from training.recipes.sources.credits import by_source, entry, wordnet
from training.recipes.sources.figures import PairScorer, transfer_figures
from training.recipes.sources.source import DataSource, Train, needed
from training.teacher.encoder import Teacher, encode_cached

EncodedTexts = tuple[list[str], npt.NDArray[np.float16]]  # n texts and their teacher's encodings [n, E]


class TransferSource(DataSource[Train, dict[str, list[Pair]]]):
    """Base of transfer data: its development and test sets."""

    def dev(self) -> dict[str, list[Pair]]:
        """STS 2016, set by set."""
        return sts.read_year("2016-test")

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """The transfer sets of the papers."""
        return transfer_figures(model)

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The training corpora, then STS 2016."""
        yield from self.trained_on()
        rows = sum(map(len, self.dev().values()))
        yield entry("sts-2016", "choice of the epoch, calibration of the score", rows)

    @abstractmethod
    def trained_on(self) -> Iterable[TrainingData]:
        """The corpora of the training part."""


@dataclass(frozen=True)
class TeacherSentences(TransferSource[EncodedTexts]):
    """Unlabelled sentences for regression to a teacher (`training.data.mixtures.unlabelled_sentences`)."""

    limit: int
    seed: int = 0
    glosses: int = 0  # of WordNet, beside the limit (`training.data.glosses`)

    def train(self, teacher: Path | None, cache: Path) -> EncodedTexts:
        """The sentences that contain a word, and the teacher's encodings of them."""
        folder = needed(teacher, "this recipe needs")
        samples = [[sentence for _, sentence in self._sentences()]]
        if self.glosses:
            samples.append(glosses(wordnet_folder(), self.glosses, self.seed))
        readable = [[text for text in sample if split_words(text)] for sample in samples]
        encoder = Teacher(folder)
        # One cache per sample, so that runs with and without glosses share the other encodings.
        encodings = [encode_cached(encoder, texts, cache, what="sentences") for texts in readable]
        return [text for sample in readable for text in sample], np.concatenate(encodings)

    def trained_on(self) -> Iterable[TrainingData]:
        """The sources of the mixture, and WordNet."""
        use = "sentences, without labels, regressed to the teacher"
        yield from by_source(Counter(source for source, _ in self._sentences()), use)
        if self.glosses:
            rows = len(glosses(wordnet_folder(), self.glosses, self.seed))
            yield wordnet(f"definitions and examples: {use}", rows)

    def _sentences(self) -> list[tuple[str, str]]:
        return list(mixtures.unlabelled_sentences(limit=self.limit, seed=self.seed))


@dataclass(frozen=True)
class ParaphrasePairs(TransferSource[list[Pair]]):
    """Positive pairs for the margin loss (`training.data.mixtures.paraphrase_pairs`)."""

    limit: int | None
    seed: int = 0
    corpora: tuple[str, ...] = tuple(mixtures.PAIR_SHARES)

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> list[Pair]:
        """The pairs; they need no teacher."""
        return list(mixtures.paraphrase_pairs(limit=self.limit, seed=self.seed, sources=self.corpora))

    def trained_on(self) -> Iterable[TrainingData]:
        """The sources of the mixture."""
        sources = Counter(pair.group.split(":")[0] for pair in self.train())
        return by_source(sources, "paraphrase pairs of the margin loss")
