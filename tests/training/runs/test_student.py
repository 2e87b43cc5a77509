"""A student of some of a transformer's layers: how it begins, what it learns from, and that it learns."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.objectives.development import GradedSets
from training.objectives.imitation import AnswersObjective, ImitationObjective, Student
from training.objectives.parts.batches import Sentences
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import train
from training.runs.student import begin
from training.sources import imitated

SMALL = BERTConfig(vocabulary=200, hidden=16, layers=6, attention_heads=2, inner=32, positions=40)
TEXTS = [f"{a} {b} {c}" for a in toys.WORDS[2:6] for b in toys.WORDS[6:10] for c in toys.WORDS[10:14]]  # 64
TEXTS += [" ".join(text.split() * 3) for text in TEXTS]


@pytest.fixture
def teacher() -> SentenceBERT:
    torch.manual_seed(0)
    return SentenceBERT(SentenceBERTConfig(SMALL)).eval()


def objective(teacher: SentenceBERT) -> ImitationObjective:
    sentences = Sentences(TEXTS, toys.tokenizer(), 30)
    with torch.inference_mode():
        vectors = teacher(*sentences.batch(np.arange(len(TEXTS)))).numpy().astype(np.float16)
    development = GradedSets({"toy": toys.RATED}, toys.tokenizer(), 30)
    return ImitationObjective(Student(begin(teacher, (0, 2, 5))), sentences, vectors, development, 8, seed=0)


def test_a_student_begins_with_the_layers_words_and_positions_named(teacher: SentenceBERT) -> None:
    student = begin(teacher, (0, 2, 5))
    assert student.config.bert.layers == len(student.bert.layers) == 3
    for new, old in enumerate((0, 2, 5)):
        for name, value in student.bert.layers[new].state_dict().items():
            assert torch.equal(value, teacher.bert.layers[old].state_dict()[name])
    for name in ("words", "positions", "segments"):
        assert torch.equal(getattr(student.bert, name).weight, getattr(teacher.bert, name).weight)


def test_batches_hold_every_text_once_and_are_of_like_length(teacher: SentenceBERT) -> None:
    subject = objective(teacher)
    batches = list(subject.batches(0))
    assert len(batches) == subject.steps() == 16
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(TEXTS)))
    assert all(np.ptp(subject.sentences.lengths[batch]) == 0 for batch in batches)
    assert [b.tolist() for b in subject.batches(0)] == [b.tolist() for b in batches]
    assert [b.tolist() for b in subject.batches(1)] != [b.tolist() for b in batches]


def test_the_loss_falls_and_the_words_stay(teacher: SentenceBERT, tmp_path: Path) -> None:
    subject = objective(teacher)
    batch = np.arange(16)
    before = float(subject.loss(batch)[0].detach())
    optimiser = OptimiserConfig("adamw", learning_rate=1e-3, embedding_learning_rate=None)
    schedule = Schedule(3, 8, decay="linear", keep="last")
    train(subject, optimiser, schedule, tmp_path, seed=0)
    subject.model.eval()
    assert float(subject.loss(batch)[0].detach()) < 0.7 * before
    assert torch.equal(subject.model.encoder.bert.words.weight, teacher.bert.words.weight)


def answering(teacher: SentenceBERT) -> AnswersObjective:
    subject = objective(teacher)
    pairs = np.array([(i, i + 64) for i in range(64)])
    return AnswersObjective(
        subject.model, subject.sentences, subject.teacher, pairs, subject.development, batch_size=8, seed=0
    )


def test_a_step_towards_the_right_answers_helps(teacher: SentenceBERT) -> None:
    subject = answering(teacher)
    batch = np.arange(8)
    optimiser = torch.optim.SGD([p for p in subject.model.parameters() if p.requires_grad], lr=1e-3)
    loss, parts = subject.loss(batch)
    assert set(parts) == {"answers", "vectors"}
    loss.backward()
    optimiser.step()
    assert float(subject.loss(batch)[0].detach()) < float(loss.detach())


def test_what_the_teacher_rates_above_the_right_answer_is_not_counted_as_wrong(teacher: SentenceBERT) -> None:
    subject = answering(teacher)
    subject.teacher = np.ones_like(subject.teacher)  # all alike: every other answer may be right as well
    assert subject.loss(np.arange(8))[1]["answers"] == pytest.approx(0.0, abs=1e-6)


def test_right_answers_alone_are_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "faq" / "faq.tsv.gz"
    file.parent.mkdir()
    with gzip.open(file, "wt", encoding="utf-8") as out:
        out.write("question\tanswer\tlabel\nwhen?\tnow\t1\nwhen?\tnever\t0\nwhen?\tnow\t1\n")
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    monkeypatch.setattr(imitated, "_FILES", {"faq": ("faq/faq.tsv.gz", ("question", "answer")), "b": ("b", ("text",))})
    monkeypatch.setattr(imitated, "WITH_ANSWERS", {"faq"})
    assert imitated.answers() == [("when?", "now")]


def test_texts_leave_out_evaluation_sentences_and_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: str) -> Iterator[str]:
        yield from ("A man plays a flute.", "a man plays a flute", "A measured sentence!", "...", f"About {source}.")

    monkeypatch.setattr(imitated, "_texts", read)
    monkeypatch.setattr(imitated, "evaluation_sentences", lambda: frozenset({"a measured sentence"}))
    found = imitated.imitated_texts(1000, 1)
    texts = [text for _, text in found]
    assert texts.count("A man plays a flute.") == 1
    assert set(texts) == {"A man plays a flute.", *(f"About {source}." for source in imitated.SHARES)}
    assert imitated.imitated_texts(1000, 1) == found
    assert imitated.imitated_texts(1000, 2) != found
