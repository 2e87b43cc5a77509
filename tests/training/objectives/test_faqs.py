"""Questions that find their entries among those of a few FAQs, while other texts keep their vectors."""

import copy

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.corpora.readers.written import WrittenFAQ
from training.objectives.development import GradedSets
from training.objectives.faqs import FAQConfig, FAQObjective, FAQTexts
from training.objectives.imitation import Student
from training.objectives.parts.batches import Sentences

SMALL = BERTConfig(vocabulary=200, hidden=16, layers=2, attention_heads=2, inner=32, positions=40)
WORDS = toys.WORDS[2:14]
FAQS = [
    WrittenFAQ(
        str(n),
        [(f"{n}-{i}", f"{WORDS[n]} {WORDS[i]}", f"{WORDS[i]} {WORDS[i]} {WORDS[n]}") for i in range(4, 8)],
        [(f"{WORDS[i]} {WORDS[n]}", f"{n}-{i}") for i in (7, 4, 6)] + [("nobody knows", "")],
    )
    for n in range(4)
]
CONFIG = FAQConfig(faqs=2, questions=2, kept=6)


@pytest.fixture
def objective() -> FAQObjective:
    torch.manual_seed(0)
    student = Student(SentenceBERT(SentenceBERTConfig(SMALL)), SMALL.hidden)
    tokenizer = toys.tokenizer()
    texts = FAQTexts(FAQS, tokenizer, 30)
    kept = Sentences([" ".join(WORDS[i : i + 3]) for i in range(9)], tokenizer, 30)
    development = GradedSets({"toy": toys.RATED}, tokenizer, 30)
    return FAQObjective(student, copy.deepcopy(student.encoder), texts, kept, texts, development, CONFIG, seed=3)


def test_an_epoch_asks_of_each_faq_once_and_knows_the_right_entries(objective: FAQObjective) -> None:
    batches = list(objective.batches(0))
    assert len(batches) == objective.steps() == 2
    texts = objective.learnt
    assert len(texts.questions) == 12  # those without an entry are left out
    for batch in batches:
        assert len(batch.questions) == 2 * CONFIG.questions
        assert len(batch.entries) == 2 * 4
        assert len(batch.kept) == CONFIG.kept
        assert (batch.entries[batch.right] == texts.right[batch.questions]).all()
    asked = np.concatenate([texts.faq[batch.questions] for batch in batches])
    assert sorted(asked.tolist()) == sorted([0, 1, 2, 3] * CONFIG.questions)
    again, later = list(objective.batches(0)), list(objective.batches(1))
    assert all(
        (a.questions == b.questions).all() and (a.kept == b.kept).all() for a, b in zip(batches, again, strict=True)
    )
    assert any((a.questions != b.questions).any() for a, b in zip(batches, later, strict=True))


def test_questions_are_learnt_and_other_texts_stay(objective: FAQObjective) -> None:
    model = objective.model.eval()
    batch = next(objective.batches(0))
    assert objective.loss(batch)[1]["kept"] == pytest.approx(0.0, abs=1e-6)
    before = objective.loss(batch)[1]["entries"]
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for epoch in range(30):
        for batch in objective.batches(epoch):
            optimiser.zero_grad()
            objective.loss(batch)[0].backward()
            optimiser.step()
    assert objective.loss(batch)[1]["entries"] < 0.7 * before
    with torch.no_grad():
        found = objective.evaluate()
    assert set(found) == {"toy", "first", "selection"}
    assert found["selection"] == found["first"] == objective.held.first_right(model)
    moved = objective.loss(batch)[1]["kept"]
    objective.start = SentenceBERT(SentenceBERTConfig(SMALL)).eval()  # of other weights
    assert moved < 0.5 * objective.loss(batch)[1]["kept"]


def test_an_entry_of_another_faq_is_never_the_first(objective: FAQObjective) -> None:
    entries = [(str(i), f"{WORDS[i]} {WORDS[i + 1]}", f"{WORDS[-1]} {WORDS[i]}") for i in range(3)]
    alike = [WrittenFAQ(name, entries, [(title, key) for key, title, _ in entries]) for name in "ab"]
    assert FAQTexts(alike, toys.tokenizer(), 30).first_right(objective.model.eval()) == 1.0
