"""Human labels of pairs and sentences (the corpora of the interaction models, SST), and answers graded by a teacher."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.manifest import Figure, TrainingData
from training.data import pairwise
from training.data.leakage import contains_evaluation_sentence, normalise_for_overlap
from training.data.pairs import Pair
from training.data.pairwise import Corpus
from training.data.readers import sst
from training.recipes.sources.credits import entry
from training.recipes.sources.figures import PairScorer, pairwise_figures, sentiment_figures
from training.recipes.sources.source import DataSource, RecipeError, needed
from training.teacher.answers import teacher_answers
from training.teacher.encoder import Teacher

_ANSWERS: tuple[Corpus, ...] = ("wikiqa", "trecqa", "answers")
_SAID: dict[Corpus, str] = {
    **dict.fromkeys(_ANSWERS, "answers or not"),
    **dict.fromkeys(("msrp", "twitter-labelled"), "paraphrases or not"),
}  # others: ratings


class OfCorpus(DataSource[Sequence[Pair], Sequence[Pair]]):
    """Data whose development and test parts are those of one corpus."""

    @property
    @abstractmethod
    def measured_on(self) -> Corpus:
        """The corpus whose parts are used."""

    def dev(self) -> Sequence[Pair]:
        """The development part of the corpus."""
        return pairwise.read(self.measured_on).dev

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """Figures on the test parts of the corpus."""
        self.check_test()
        return pairwise_figures(model, self.measured_on)

    def check_test(self) -> None:
        """Raise RecipeError for a corpus without a test part."""
        if not pairwise.read(self.measured_on).test:
            raise RecipeError(f"{self.measured_on} has no test part to measure on")


@dataclass(frozen=True)
class CorpusPairs(OfCorpus):
    """The training pairs of a corpus with their human labels or ratings (`training.data.pairwise`)."""

    corpus: Corpus

    @property
    def measured_on(self) -> Corpus:
        """The corpus of the training pairs."""
        return self.corpus

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> Sequence[Pair]:
        """Its training part; it needs no teacher."""
        return pairwise.read(self.corpus).train

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The corpora of the training pairs; all of them have a development part."""
        corpus = self.corpus
        rows = Counter(_catalogued(corpus, pair.group) for pair in pairwise.read(corpus).train)
        chosen = "its development part" if corpus in ("sick", *_ANSWERS) else "pairs held out of it"
        use = f"train: {_SAID.get(corpus, 'ratings')}; {chosen}: choice of the epoch"
        return [entry(name, use, count) for name, count in rows.items()]


@dataclass(frozen=True)
class TeacherAnswers(OfCorpus):
    """Questions with their candidate answers, each pair's target the teacher's cosine (`training.teacher.answers`)."""

    corpora: tuple[Corpus, ...] = ("wikiqa", "trecqa")
    limit: int | None = None  # so many pairs of each corpus at most, drawn at random
    seed: int = 0  # of the draw
    selection: Corpus = "wikiqa"  # whose development part chooses the epoch

    @property
    def measured_on(self) -> Corpus:
        """Where the epoch was chosen."""
        return self.selection

    def train(self, teacher: Path | None, cache: Path) -> list[Pair]:
        """Pairs of question and answer with the teacher's targets."""
        encoder = Teacher(needed(teacher, "these answers need"))
        return teacher_answers(encoder, self.corpora, self.limit, self.seed, cache)

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The corpora of the questions."""
        for corpus in self.corpora:
            rows = len(pairwise.read(corpus).train)
            use = "train: questions and candidates, without labels, graded by the teacher"
            if corpus == self.selection:
                use += "; development part: choice of the epoch"
            yield entry(corpus, use, rows if self.limit is None else min(rows, self.limit))


@dataclass(frozen=True)
class SSTSentences(DataSource[list[tuple[str, int]], list[tuple[str, int]]]):
    """SST train: its sentences (`training.data.readers.sst`), and the phrases that they are made of."""

    labels: sst.Labels = "binary"
    phrases: bool = False  # as K. S. Tai, R. Socher, C. D. Manning (ACL 2015, section 5.1) train

    def train(self, teacher: Path | None = None, cache: Path = Path()) -> list[tuple[str, int]]:
        """Sentences and classes, then phrases and theirs; they need no teacher.

        A phrase that is a sentence of the other parts is left out.
        """
        return [*sst.read("train", self.labels), *self._phrases()]

    def _phrases(self) -> list[tuple[str, int]]:
        if not self.phrases:
            return []
        others = {normalise_for_overlap(text) for split in ("dev", "test") for text, _ in sst.read(split, "fine")}
        return [row for row in sst.phrases(self.labels) if not contains_evaluation_sentence(row[0], others)]

    def dev(self) -> list[tuple[str, int]]:
        """The development part of SST."""
        return sst.read("dev", self.labels)

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """Figures on the test part of SST."""
        return sentiment_figures(model)

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """SST with its rows and uses."""
        rows = len(sst.read("train", self.labels))
        yield entry("sst", "train: sentiment; dev: choice of the epoch, temperature", rows)
        if self.phrases:
            which = " that are not neutral" if self.labels == "binary" else ""
            yield entry("sst-phrases", f"train: sentiment of phrases{which}", len(self._phrases()))


def _catalogued(corpus: Corpus, group: str) -> str:
    """The name in the catalogue of the corpus that a pair comes from."""
    if corpus in ("msrvid", "sts2014"):
        return f"sts-{group[:4]}"
    return group.partition(":")[0] if corpus == "answers" else corpus
