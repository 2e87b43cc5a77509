"""Pairs with graded relatedness: SICK, the STS split, MaLSTM's pre-training pairs, pairs rated by a teacher."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.manifest import Figure, TrainingData
from training.data import mixtures, sts_split
from training.data.leakage import without_foreign_sentences, without_pairs
from training.data.pairs import Pair
from training.data.readers import labelled_pairs, sts
from training.data.synonyms import augment, open_thesaurus
from training.data.wordnet import wordnet_folder
from training.recipes.sources.credits import by_source, entry, wordnet
from training.recipes.sources.figures import PairScorer, sick_figures, split_figures
from training.recipes.sources.source import DataSource, needed
from training.teacher.encoder import Teacher
from training.teacher.pairs import PairsConfig, teacher_pairs
from training.teacher.tuning import load_heads, tuned

logger = logging.getLogger(__name__)


def supervised_pairs() -> list[Pair]:
    """SICK train without the pairs that its trial and test parts repeat."""
    return without_pairs(labelled_pairs.read("sick-train"), held_out())


def pairs_for_others() -> list[Pair]:
    """The same without sentences of another corpus' evaluation set: for teachers and for models measured on that other
    corpus."""
    return without_foreign_sentences(supervised_pairs(), "sick")


def held_out() -> list[Pair]:
    """SICK trial and test, which no training data may contain."""
    return [pair for split in ("dev", "test") for pair in labelled_pairs.read(f"sick-{split}")]


class SickRated(DataSource[Sequence[Pair], Sequence[Pair]]):
    """Pairs rated 1..5, none of them a pair of SICK's trial or test part; chosen on trial, measured on test."""

    def dev(self) -> Sequence[Pair]:
        """The trial part of SICK."""
        return labelled_pairs.read("sick-dev")

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """Figures on the test part of SICK."""
        return sick_figures(model)

    def vocabulary(self) -> list[str]:
        """The sentences of SICK train."""
        return [text for pair in supervised_pairs() for text in (pair.a, pair.b)]


@dataclass(frozen=True)
class SickPairs(SickRated):
    """SICK train, pairs that also occur in its trial or test part left out."""

    synonyms: int = 0  # number of copies with words replaced by synonyms (`training.data.synonyms`)
    seed: int = 0  # of the copies
    foreign: bool = True  # also pairs with a sentence of another corpus' evaluation set

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> list[Pair]:
        """The pairs and their copies; they need no teacher.

        Raises:
            WordNetMissing: there are copies to make.
        """
        pairs = supervised_pairs() if self.foreign else pairs_for_others()
        if self.synonyms:
            pairs += augment(pairs, self.synonyms, self.seed, open_thesaurus(wordnet_folder()))
        return without_pairs(pairs, held_out())

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """SICK, and WordNet if synonyms are used."""
        use = "train: relatedness and entailment; trial: choice of the epoch"
        if calibrated_on is not None:
            use += f"; calibration of the score on {calibrated_on}"
        yield entry("sick", use, len(supervised_pairs() if self.foreign else pairs_for_others()))
        if self.synonyms:
            yield wordnet("synonyms of words in copies of SICK train pairs", self.synonyms)


@dataclass(frozen=True)
class STSPairs(SickRated):
    """MaLSTM's released pre-training pairs without those of SICK."""

    only_2013: bool = False  # STS 2013 alone, as the paper has it; three of its four sets, the fourth is licensed

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> list[Pair]:
        """The pairs; they need no teacher."""
        return without_pairs(self._pairs(), held_out())

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The extras of MaLSTM's release, or STS 2013."""
        corpus = "sts-2013" if self.only_2013 else "malstm-extras"
        yield entry(corpus, "pre-training: rated pairs", len(self._pairs()))

    def _pairs(self) -> list[Pair]:
        """Pairs of STS, rated 1..5."""
        if not self.only_2013:
            return labelled_pairs.read("malstm-extras")
        pairs = [pair for rated in sts.read_year("2013-test").values() for pair in rated]
        return [replace(pair, target=1.0 + 0.8 * pair.target) for pair in pairs if pair.target is not None]


@dataclass(frozen=True)
class TeacherPairs(PairsConfig, SickRated):
    """Pairs of neighbouring sentences that a teacher rates on SICK's scale (`training.teacher.pairs`)."""

    def train(self, teacher: Path | None, cache: Path) -> list[Pair]:
        """The pairs, rated by the teacher after it was fine-tuned on SICK train."""
        given = needed(teacher, "these pairs need")
        sentences = mixtures.unlabelled_sentences(limit=None, seed=self.seed, shares={"captions": 1.0})
        captions = [sentence for _, sentence in sentences]
        rated = pairs_for_others()
        folder = tuned(given, rated, self.tuning, cache)
        encoder = Teacher(folder)
        heads = load_heads(folder, encoder.dim)
        return teacher_pairs(self, rated, held_out(), captions, encoder, heads, cache)

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The captions and SICK."""
        use = "pre-training: sentences of pairs that the teacher, fine-tuned on SICK train, rates"
        if self.tuning.entailment_weight > 0:
            use += " and labels"
        yield from by_source(Counter(captions=self.captions), use)
        yield entry("sick", use, len(pairs_for_others()))


@dataclass(frozen=True)
class STSSplitPairs(DataSource[Sequence[Pair], Sequence[Pair]]):
    """The train part of STS 2012-2015 (`training.data.sts_split`)."""

    seed: int = 0  # of the split

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> Sequence[Pair]:
        """The pairs; they need no teacher."""
        split = sts_split.read(self.seed)
        logger.info("STS split: train %d, dev %d, test %d pairs", *map(len, (split.train, split.dev, split.test)))
        return split.train

    def dev(self) -> Sequence[Pair]:
        """A tenth of each set."""
        return sts_split.read(self.seed).dev

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """Half of each set."""
        return split_figures(model, sts_split.read(self.seed).test)

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """STS, year by year."""
        use = "40 % of each set: similarity; 10 %: choice of the epoch"
        years = Counter(f"sts-{pair.group[:4]}" for pair in sts_split.read(self.seed).train)
        return [entry(name, use, count) for name, count in years.items()]

    def vocabulary(self) -> list[str]:
        """The sentences of its train part."""
        return [text for pair in sts_split.read(self.seed).train for text in (pair.a, pair.b)]
