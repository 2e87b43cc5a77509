"""`minilm` and `minilm-small`: MiniLM, whole or three of its six layers, taught the vectors of all-mpnet-base-v2.

Then they learn to find the answers of questions. The word table is frozen (few texts would move common words only).
Every step resumes: the teacher's vectors lie in chunks, the training in checkpoints.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from contract.subwords import Subwords
from training.architectures.models import Precision
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig, load_weights
from training.corpora.readers import stsb
from training.objectives.development import GradedSets
from training.objectives.imitation import AnswersObjective, ImitationObjective, Student
from training.objectives.parts.batches import Indices, Sentences
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import train
from training.sources.imitated import answers, texts_with_answers
from training.teacher.encoder import Teacher, bfloat16_is_fast, encode_cached

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class StudentConfig:
    """What is taught, and how long."""

    name: str  # of the run and the model
    layers: tuple[int, ...]  # of all-MiniLM-L6-v2
    learning_rate: float  # rises over the first steps, then falls in a line to zero
    start_share: float  # of the weights it began with, in the mean with the taught ones that goes on
    question_pairs: int = 200_000  # questions beside their right answers (`texts_with_answers`), and
    other_texts: int = 700_000  # texts alone
    max_tokens: int = 128  # texts are cut there, for teacher and student
    epochs: int = 4
    batch_size: int = 256
    clip: float = 1.0
    # Then: questions with their right answers.
    answer_epochs: int = 3
    answer_learning_rate: float = 1e-4


STUDENTS = {
    config.name: config
    for config in (
        StudentConfig("minilm", (0, 1, 2, 3, 4, 5), learning_rate=2e-4, start_share=0.5),
        StudentConfig("minilm-small", (0, 2, 5), learning_rate=4e-4, start_share=0.0, epochs=8),
    )
}


class Lessons(NamedTuple):
    """What students learn from."""

    sentences: Sentences  # n texts
    vectors: npt.NDArray[np.float16]  # of the teacher [n, E]
    answers: Indices  # places of questions and their right answers [p, 2]
    development: GradedSets


def texts_of(config: StudentConfig) -> list[tuple[str, str]]:
    """(source, text) of the texts that are taught."""
    return texts_with_answers(config.question_pairs, config.other_texts, 1)


def lessons(config: StudentConfig, tokenizer: Subwords, teacher: Path, cache: Path) -> Lessons:
    """Read the texts and let the teacher encode them.

    Args:
        config: what is taught.
        tokenizer: the student's.
        teacher: folder of the encoder whose vectors are learnt.
        cache: where they are kept.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    texts = [text for _, text in texts_of(config)]
    encoder = Teacher(teacher)
    encoder.cut_at(config.max_tokens)
    place = {text: i for i, text in enumerate(texts)}
    return Lessons(
        Sentences(texts, tokenizer, config.max_tokens),
        encode_cached(encoder, texts, cache, what="texts"),
        np.array([(place[a], place[b]) for a, b in answers() if a in place and b in place]),
        GradedSets({"stsb-dev": stsb.read("dev")}, tokenizer, config.max_tokens),
    )


def begin(teacher: SentenceBERT, layers: Sequence[int]) -> SentenceBERT:
    """A student of some of the teacher's layers, everything else its own."""
    bert = teacher.config.bert
    student = SentenceBERT(SentenceBERTConfig(BERTConfig(**{**asdict(bert), "layers": len(layers)})))
    kept = {f"layers.{old}.": f"layers.{new}." for new, old in enumerate(layers)}
    weights = {}
    for name, value in teacher.bert.state_dict().items():
        prefix = ".".join(name.split(".")[:2]) + "."
        if not name.startswith("layers."):
            weights[name] = value
        elif prefix in kept:
            weights[kept[prefix] + name.removeprefix(prefix)] = value
    student.bert.load_state_dict(weights)
    return student


def teach(config: StudentConfig, minilm: Path, teacher: Path, runs: Path, seed: int) -> Student:
    """Train the student, or resume; the run lies in `runs/<name>/seed-<n>`.

    Args:
        config: what is taught.
        minilm: folder of all-MiniLM-L6-v2, whose layers, words and tokenizer the student begins with.
        teacher: folder of the encoder whose vectors are learnt.
        runs: where runs and the teacher's vectors lie.
        seed: of the order of the texts.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    whole = SentenceBERT(SentenceBERTConfig())
    load_weights(whole.bert, minilm)
    taught = lessons(config, Subwords.load(minilm / TOKENIZER), teacher, runs / "teacher")
    return learn(config, whole, taught, runs, seed)


def learn(config: StudentConfig, whole: SentenceBERT, taught: Lessons, runs: Path, seed: int) -> Student:
    """The same from lessons that are ready, beginning with layers of the `whole` model."""
    torch.manual_seed(seed)
    precision: Precision = "bfloat16" if bfloat16_is_fast() else "float32"
    student = Student(begin(whole, config.layers), taught.vectors.shape[1], precision)
    student.to("cuda" if torch.cuda.is_available() else "cpu")
    start = {name: value.clone() for name, value in student.encoder.state_dict().items()}
    student.fit_map(taught.sentences, taught.vectors)
    imitating = ImitationObjective(
        student, taught.sentences, taught.vectors, taught.development, config.batch_size, seed
    )
    optimiser = OptimiserConfig(
        "adamw", learning_rate=config.learning_rate, embedding_learning_rate=None, clip=config.clip
    )
    schedule = Schedule(config.epochs, config.batch_size, decay="warm", keep="last")
    train(imitating, optimiser, schedule, runs / f"{config.name}-vectors" / f"seed-{seed}", seed=seed)
    mean_with(student.encoder, start, config.start_share)
    answering = AnswersObjective(
        student, taught.sentences, taught.vectors, taught.answers, taught.development, config.batch_size, seed
    )
    optimiser = replace(optimiser, learning_rate=config.answer_learning_rate)
    schedule = replace(schedule, epochs=config.answer_epochs)
    train(answering, optimiser, schedule, runs / config.name / f"seed-{seed}", seed=seed)
    return student.eval()


@torch.no_grad()
def mean_with(model: nn.Module, start: dict[str, torch.Tensor], share: float) -> None:
    """Move the weights that share of the way back to those they began with.

    M. Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022: the mean keeps what the start knew.
    """
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.lerp_(start[name], share)
