"""A bi-encoder learns questions as people ask them: each finds its entry among those of a few FAQs.

Softmax over the entries of a batch: M. Henderson et al., "Efficient Natural Language Response Suggestion for Smart
Reply", 2017, section 4.4; here once over the entries' own questions and once over their answers. Other texts keep the
vectors, and the cosines within a batch, that they had at the start.

Shapes: Q questions, E entries, K other texts, D dimensions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from core.subwords import AnyTokenizer
from training.data.readers.written import WrittenFAQ
from training.models.kinds import SiameseModel, device_of
from training.objectives.batches import Indices, Sentences, shuffled
from training.objectives.development import GradedSets, encode_all
from training.objectives.imitation import PRODUCTS, SHARPNESS
from training.objectives.losses import cosine_matrix_loss, total_of
from training.objectives.objective import GradedObjective


@dataclass(frozen=True)
class FAQConfig:
    """How questions are learnt."""

    epochs: int = 8
    faqs: int = 2  # of a batch
    questions: int = 24  # of each of them, at most; drawn anew for each batch
    kept: int = 80  # other texts of a batch
    keeping: float = 3.0  # weight of what they lose
    learning_rate: float = 1e-4
    clip: float = 1.0
    max_tokens: int = 96  # texts are cut there
    start_share: float = 0.5  # of the weights it began with, in the mean with the taught ones


class FAQBatch(NamedTuple):
    """Places of the questions [Q], of the entries [E], and of other texts [K]; `right` [Q] counts among the entries."""

    questions: Indices
    right: Indices
    entries: Indices
    kept: Indices


class FAQTexts:
    """FAQs, tokenised: their answered questions, and their entries in one list."""

    def __init__(self, faqs: Sequence[WrittenFAQ], tokenizer: AnyTokenizer, max_tokens: int) -> None:
        """Questions without an entry are left out."""
        entries = [entry for faq in faqs for entry in faq.entries]
        asked: list[tuple[str, int, int]] = []  # question, place of its entry, place of its FAQ
        start = 0
        for number, faq in enumerate(faqs):
            place = {key: start + i for i, (key, _, _) in enumerate(faq.entries)}
            asked += [(question, place[right], number) for question, right in faq.questions if right]
            start += len(faq.entries)
        self.questions = Sentences([question for question, _, _ in asked], tokenizer, max_tokens)
        self.titles = Sentences([title for _, title, _ in entries], tokenizer, max_tokens)
        self.answers = Sentences([answer for _, _, answer in entries], tokenizer, max_tokens)
        self.right = np.array([right for _, right, _ in asked])
        self.faq = np.array([number for _, _, number in asked])
        self.faq_of_entry = np.repeat(np.arange(len(faqs)), [len(faq.entries) for faq in faqs])

    @torch.no_grad()
    def first_right(self, model: SiameseModel) -> float:
        """Share of the questions whose entry is first of its FAQ, by the better cosine of its question and answer."""
        asked, titles, answers = (
            normalize(encode_all(model, texts), dim=1) for texts in (self.questions, self.titles, self.answers)
        )
        cosines = torch.maximum(asked @ titles.T, asked @ answers.T).cpu().numpy()
        cosines[self.faq[:, None] != self.faq_of_entry[None, :]] = -np.inf
        return float(np.mean(cosines.argmax(1) == self.right))


@dataclass(eq=False)
class FAQObjective(GradedObjective):
    """The loss on the entries of questions, and on what other texts lose."""

    model: SiameseModel
    start: nn.Module  # the encoder before, frozen
    learnt: FAQTexts
    kept: Sentences  # that keep their vectors
    held: FAQTexts  # to measure by
    development: GradedSets
    config: FAQConfig
    seed: int

    def __post_init__(self) -> None:
        super().__init__(int(self.learnt.faq_of_entry[-1]) + 1, self.config.faqs, self.seed, drop_last=True)
        self.start.eval()

    def batches(self, epoch: int) -> Iterator[FAQBatch]:  # type: ignore[override]
        """FAQs in a random order, of each some questions, and other texts; drawn by seed and epoch alone."""
        rng = np.random.default_rng((self.seed, epoch, 1))
        for faqs in shuffled(self.examples, self.batch_size, self.seed, epoch, drop_last=True):
            entries = np.flatnonzero(np.isin(self.learnt.faq_of_entry, faqs))
            drawn = [rng.permutation(np.flatnonzero(self.learnt.faq == faq))[: self.config.questions] for faq in faqs]
            questions = np.concatenate(drawn)
            right = np.searchsorted(entries, self.learnt.right[questions])
            yield FAQBatch(questions, right, entries, rng.integers(0, len(self.kept), self.config.kept))

    def loss(self, batch: FAQBatch) -> tuple[Tensor, dict[str, float]]:
        """The weighted sum of both terms, and each of them."""
        learnt = self.learnt
        asked = normalize(self.model.encode(learnt.questions.batch(batch.questions)), dim=1)
        right = torch.from_numpy(batch.right).to(asked.device)
        entries = (normalize(self.model.encode(s.batch(batch.entries)), dim=1) for s in (learnt.titles, learnt.answers))
        found = sum(cross_entropy(SHARPNESS * asked @ each.T, right) for each in entries)
        texts = self.kept.batch(batch.kept)
        own = self.model.encode(texts)
        with torch.no_grad():
            before = self.start(*(each.to(device_of(self.model)) for each in texts))
        lost = (1 - cosine_similarity(own, before)).mean() + PRODUCTS * cosine_matrix_loss(own, before)
        assert isinstance(found, Tensor)
        return total_of({"entries": found / 2, "kept": self.config.keeping * lost})

    def evaluate(self) -> dict[str, float]:
        """Pearson r of each rated set, and the share of `first_right`, which selects."""
        first = self.held.first_right(self.model)
        return {**super().evaluate(), "first": first, "selection": first}
