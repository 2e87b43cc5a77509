"""Labelled pairs of many corpora, and those that a bi-encoder finds hard, for a model of several tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.manifest import Figure, TrainingData
from training.data import mixtures, tasks
from training.data.hard import Encode, Vectors, hard_groups, near_intents
from training.data.pairs import Pair
from training.data.readers import labelled_pairs
from training.data.tasks import COSINES, DEVELOPMENT, HARD, INTENTS, MADE_OF, TEACHES, WRITTEN
from training.recipes.sources.credits import TEACHER, entry, own_texts
from training.recipes.sources.figures import (
    PairScorer,
    entailment_figures,
    pairwise_figures,
    rated_figures,
    sick_figures,
    transfer_figures,
)
from training.recipes.sources.source import DataSource, needed
from training.teacher.encoder import Teacher, encode_cached
from training.teacher.pairs import partners

ByCorpus = Mapping[str, Sequence[Pair]]


@dataclass(frozen=True)
class TaskPairs(DataSource[ByCorpus, ByCorpus]):
    """The pairs of some corpora (`training.data.tasks`)."""

    corpora: tuple[str, ...]
    sentences: int = 25_000  # that the cosines are of, drawn as for the transfer models
    partners: int = 4  # of each sentence: near ones, less near ones, anyone
    seed: int = 0
    rated_by: str | None = None  # id of a published model of several tasks whose ratings are learnt too
    rated_pairs: int = 5_000  # of a corpus at most that it rates
    unrated: tuple[str, ...] = ()  # corpora whose labels follow a convention that it does not know

    def train(self, teacher: Path | None, cache: Path) -> ByCorpus:
        """The training pairs of each corpus; of questions in `HARD` whole groups, one after the other."""
        with_encoder = [name for name in self.corpora if name in (COSINES, *HARD, *INTENTS)]
        found = {name: tasks.read(name) for name in self.corpora if name not in with_encoder}
        if with_encoder:
            encoder = Teacher(needed(teacher, "cosines need"))

            def encode(texts: Sequence[str]) -> Vectors:
                vectors = encode_cached(encoder, texts, cache, what="texts").astype(np.float32)
                return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

            for name in with_encoder:
                if name == COSINES:
                    found[name] = self._cosines(encode)
                elif name in INTENTS:
                    found[name] = near_intents(tasks.requests(name), encode)
                else:
                    found[name] = hard_groups(tasks.read(HARD[name]), encode)
        return found

    def rated(self, pairs: ByCorpus) -> ByCorpus:
        """Those corpora that the model rates: not `unrated`, nor `HARD`, whose groups are learnt without ratings."""
        return {name: each for name, each in pairs.items() if name not in self.unrated and name not in HARD}

    def _cosines(self, encode: Encode) -> Sequence[Pair]:
        drawn = [text for _, text in mixtures.unlabelled_sentences(limit=self.sentences, seed=self.seed)]
        texts = tasks.without_entailment_texts(drawn)
        vectors = encode(texts)
        pairs = partners(vectors.astype(np.float16), self.partners, np.random.default_rng(self.seed))
        cosines = np.einsum("nd,nd->n", vectors[pairs[:, 0]], vectors[pairs[:, 1]]).clip(0.0, 1.0)
        return [Pair(texts[i], texts[j], float(c)) for (i, j), c in zip(pairs.tolist(), cosines, strict=True)]

    def dev(self) -> ByCorpus:
        """Development pairs of the tasks that these corpora teach; our own texts where they are among the corpora."""
        taught = {task for name in self.corpora for task in TEACHES[name]}
        return {
            name: tasks.development(name)
            for name, (task, _) in DEVELOPMENT.items()
            if task in taught and (name not in WRITTEN or name in self.corpora)
        }

    def test_figures(self, model: PairScorer) -> list[Figure]:
        """The transfer sets, SICK, MSRP, WikiQA, TrecQA; development parts of STS-B, SNLI, MultiNLI and SciTail."""
        return [
            *transfer_figures(model),
            *sick_figures(model),
            *pairwise_figures(model, "msrp", "paraphrase"),
            *pairwise_figures(model, "answers", "relevance"),
            *rated_figures(model, "STS-B", labelled_pairs.read("stsb-dev")),
            *entailment_figures(model, "SNLI", tasks.measured(labelled_pairs.read("snli-dev"))),
            *entailment_figures(model, "MultiNLI", tasks.measured(labelled_pairs.read("multinli"))),
            *entailment_figures(model, "SciTail", labelled_pairs.read("scitail-dev")),
        ]

    def sources(self, calibrated_on: str | None = None) -> Iterable[TrainingData]:
        """The corpora; MiniLM, whose weights the model starts from or whose cosines it learns; the model that rates."""
        yield TEACHER
        if self.rated_by is not None:
            yield TrainingData(
                name=self.rated_by,
                use=f"teacher: its ratings of up to {self.rated_pairs} pairs of each corpus",
                rows=0,
                licence="that of its own training data",
                source=f"the recipe {self.rated_by}",
            )
        for name in self.corpora:
            if name != COSINES:
                corpora = MADE_OF.get(name, ())
                together = f", of {len(corpora)} corpora together" if len(corpora) > 1 else ""
                made = f" ({name}{together})" if corpora else ""
                use = f"train: {' and '.join(TEACHES[name])}{made}"
                rows = len(tasks.requests(name) if name in INTENTS else tasks.read(HARD.get(name, name)))
                for source in corpora or (name,):
                    yield own_texts(use, rows) if source in WRITTEN else entry(source, use, rows)
