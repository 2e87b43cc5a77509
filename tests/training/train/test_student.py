"""A student of some of a transformer's layers: how it begins, that it learns, and then the questions of FAQs."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.harness import toy_runs, toys
from tests.harness.toy_wordpiece import wordpiece_json
from training.data.readers.written import WrittenFAQ
from training.models.kinds import SiameseModel
from training.models.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig, words_of
from training.objectives.batches import Sentences
from training.objectives.development import GradedSets
from training.objectives.faqs import FAQConfig, FAQObjective, FAQTexts
from training.objectives.imitation import AnswersObjective, ImitationObjective
from training.recipes.recipe import OptimiserConfig, Schedule
from training.recipes.sources import imitated
from training.train import student as students
from training.train.loop import train
from training.train.student import begin, mean_with, teach_faqs

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
    return ImitationObjective(SiameseModel(begin(teacher, (0, 2, 5))), sentences, vectors, development, 8, seed=0)


def test_a_student_begins_with_the_layers_words_and_positions_named(teacher: SentenceBERT) -> None:
    student = begin(teacher, (0, 2, 5))
    assert student.config.bert.layers == len(student.bert.encoder.layer) == 3
    for new, old in enumerate((0, 2, 5)):
        for name, value in student.bert.encoder.layer[new].state_dict().items():
            assert torch.equal(value, teacher.bert.encoder.layer[old].state_dict()[name])
    for name, value in student.bert.embeddings.state_dict().items():
        assert torch.equal(value, teacher.bert.embeddings.state_dict()[name])


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
    assert torch.equal(words_of(subject.model.encoder.bert).weight, words_of(teacher.bert).weight)


def test_a_step_towards_the_right_answers_helps_and_what_the_teacher_rates_above_them_is_not_wrong(
    teacher: SentenceBERT,
) -> None:
    given = objective(teacher)
    pairs = np.array([(i, i + 64) for i in range(64)])
    subject = AnswersObjective(
        given.model, given.sentences, given.teacher, pairs, given.development, batch_size=8, seed=0
    )
    batch = np.arange(8)
    optimiser = torch.optim.SGD([p for p in subject.model.parameters() if p.requires_grad], lr=1e-3)
    loss, parts = subject.loss(batch)
    assert set(parts) == {"answers", "order", "vectors"}
    loss.backward()
    optimiser.step()
    assert float(subject.loss(batch)[0].detach()) < float(loss.detach())
    subject.teacher = np.ones_like(subject.teacher)  # all alike: every other answer may be right as well
    assert subject.loss(np.arange(8))[1]["answers"] == pytest.approx(0.0, abs=1e-6)

    # The order of answers that the teacher has costs nothing.
    with torch.no_grad():
        subject.teacher = subject.model.encode(subject.sentences.batch(np.arange(len(TEXTS)))).numpy()
    assert subject.loss(batch)[1]["order"] == pytest.approx(0.0, abs=1e-5)
    subject.teacher = subject.teacher[::-1].copy()
    assert subject.loss(batch)[1]["order"] > 1e-3


def test_weights_are_moved_back_towards_the_start(teacher: SentenceBERT) -> None:
    start = {name: torch.zeros_like(value) for name, value in teacher.state_dict().items()}
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    mean_with(teacher, start, 0.25)
    for name, value in teacher.state_dict().items():
        assert torch.allclose(value, 0.75 * before[name]), name


def test_no_text_is_imitated_twice_and_none_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: str) -> Iterator[str]:
        yield from ("A man plays a flute.", "a man plays a flute", "A measured sentence!", "...")
        yield from (f"About {source} {i}." for i in range(9))

    monkeypatch.setattr(imitated, "_texts", read)
    monkeypatch.setattr(imitated, "evaluation_sentences", lambda: frozenset({"a measured sentence"}))
    found = imitated.imitated_texts(1000, 1)
    texts = [text for _, text in found]
    assert texts.count("A man plays a flute.") == 1
    assert set(texts) == {
        *("A man plays a flute.", *(f"About {source} {i}." for source in imitated.SHARES for i in range(9)))
    }
    assert imitated.imitated_texts(1000, 1) == found
    assert imitated.imitated_texts(1000, 2) != found


def test_right_answers_alone_are_answers(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("when?", answer, label, "1", "") for answer, label in (("now", "1"), ("never", "0"), ("now", "1"))]
    write("counsel-chat/counsel-chat.tsv.gz", ("question", "answer", "label", "group", "topic"), *rows)
    monkeypatch.setattr(imitated, "WITH_ANSWERS", ("counsel-chat",))
    assert imitated.answers() == [("when?", "now")]


def test_questions_are_taught_and_half_of_what_they_change_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faqs = [
        WrittenFAQ(name, [(word, f"the {word}", f"a big {word}") for word in words], [(word, word) for word in words])
        for name, words in {"a": ("man", "dog", "guitar"), "b": ("woman", "flute", "park"), "c": ("sofa", "is")}.items()
    ]
    monkeypatch.setattr(students.written, "faqs", lambda part: faqs)
    toy_runs.read_instead(monkeypatch, labelled={"stsb-dev": toys.RATED}.__getitem__)
    monkeypatch.setattr(students, "imitated_texts", lambda limit, seed: [("snli-train", text) for text in TEXTS])
    (tmp_path / "tokenizer.json").write_text(wordpiece_json())
    torch.manual_seed(0)
    start = SentenceBERT(SentenceBERTConfig(SMALL)).eval()

    def taught(share: float, runs: str) -> SentenceBERT:
        encoder = copy.deepcopy(start)
        config = FAQConfig(epochs=2, questions=2, kept=4, max_tokens=20, learning_rate=1e-3, start_share=share)
        result = teach_faqs(config, "toy", encoder, tmp_path / "tokenizer.json", tmp_path / runs, seed=1)
        assert set(result.best) == {"stsb-dev", "first", "selection"}
        return encoder

    whole, half, again = taught(0.0, "whole"), taught(0.5, "half"), taught(0.5, "half")  # the last one resumes
    began, moved = start.state_dict(), whole.state_dict()
    assert any(not torch.equal(value, began[name]) for name, value in moved.items())
    for name, value in half.state_dict().items():
        assert torch.allclose(value, (began[name] + moved[name]) / 2, atol=1e-6), name
        assert torch.equal(value, again.state_dict()[name])


SMALLER = BERTConfig(vocabulary=200, hidden=16, layers=2, attention_heads=2, inner=32, positions=40)
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
def of_faqs() -> FAQObjective:
    torch.manual_seed(0)
    student = SiameseModel(SentenceBERT(SentenceBERTConfig(SMALLER)))
    tokenizer = toys.tokenizer()
    texts = FAQTexts(FAQS, tokenizer, 30)
    kept = Sentences([" ".join(WORDS[i : i + 3]) for i in range(9)], tokenizer, 30)
    development = GradedSets({"toy": toys.RATED}, tokenizer, 30)
    return FAQObjective(student, copy.deepcopy(student.encoder), texts, kept, texts, development, CONFIG, seed=3)


def test_an_epoch_asks_of_each_faq_once_and_knows_the_right_entries(of_faqs: FAQObjective) -> None:
    batches = list(of_faqs.batches(0))
    assert len(batches) == of_faqs.steps() == 2
    texts = of_faqs.learnt
    assert len(texts.questions) == 12  # those without an entry are left out
    for batch in batches:
        assert len(batch.questions) == 2 * CONFIG.questions
        assert len(batch.entries) == 2 * 4
        assert len(batch.kept) == CONFIG.kept
        assert (batch.entries[batch.right] == texts.right[batch.questions]).all()
    asked = np.concatenate([texts.faq[batch.questions] for batch in batches])
    assert sorted(asked.tolist()) == sorted([0, 1, 2, 3] * CONFIG.questions)
    again, later = list(of_faqs.batches(0)), list(of_faqs.batches(1))
    assert all(
        (a.questions == b.questions).all() and (a.kept == b.kept).all() for a, b in zip(batches, again, strict=True)
    )
    assert any((a.questions != b.questions).any() for a, b in zip(batches, later, strict=True))


def test_questions_are_learnt_and_other_texts_stay(of_faqs: FAQObjective) -> None:
    model = of_faqs.model.eval()
    batch = next(of_faqs.batches(0))
    assert of_faqs.loss(batch)[1]["kept"] == pytest.approx(0.0, abs=1e-6)
    before = of_faqs.loss(batch)[1]["entries"]
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for epoch in range(30):
        for batch in of_faqs.batches(epoch):
            optimiser.zero_grad()
            of_faqs.loss(batch)[0].backward()
            optimiser.step()
    assert of_faqs.loss(batch)[1]["entries"] < 0.7 * before
    with torch.no_grad():
        found = of_faqs.evaluate()
    assert set(found) == {"toy", "first", "selection"}
    assert found["selection"] == found["first"] == of_faqs.held.first_right(model)
    moved = of_faqs.loss(batch)[1]["kept"]
    of_faqs.start = SentenceBERT(SentenceBERTConfig(SMALLER)).eval()  # of other weights
    assert moved < 0.5 * of_faqs.loss(batch)[1]["kept"]


def test_an_entry_of_another_faq_is_never_the_first(of_faqs: FAQObjective) -> None:
    entries = [(str(i), f"{WORDS[i]} {WORDS[i + 1]}", f"{WORDS[-1]} {WORDS[i]}") for i in range(3)]
    alike = [WrittenFAQ(name, entries, [(title, key) for key, title, _ in entries]) for name in "ab"]
    assert FAQTexts(alike, toys.tokenizer(), 30).first_right(of_faqs.model.eval()) == 1.0
