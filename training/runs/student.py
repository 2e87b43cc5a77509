"""`minilm-small`: three of MiniLM's six layers, taught MiniLM's vectors, then to find the answers of questions.

The student starts from layers 0, 2 and 5, the word table (frozen: few texts would move common words only) and the
positions. Every step resumes: the teacher's vectors lie in blocks, the training in checkpoints.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from contract.subwords import Subwords
from training.architectures.models import Precision
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig, load_weights
from training.corpora.readers import stsb
from training.objectives.development import GradedSets
from training.objectives.imitation import AnswersObjective, ImitationObjective, Student
from training.objectives.parts.batches import Sentences
from training.recipes.recipe import OptimiserConfig, Schedule
from training.runs.loop import Result, train
from training.sources.imitated import answers, imitated_texts
from training.teacher.encoder import CHUNK, bfloat16_is_fast, encode_cached

TOKENIZER = "tokenizer.json"
ENCODE_BATCH = 64
NAME = "minilm-small"  # of the run


@dataclass(frozen=True)
class StudentConfig:
    """What is taught, and how long."""

    texts: int = 36 * CHUNK
    layers: tuple[int, ...] = (0, 2, 5)  # of the teacher
    max_tokens: int = 96  # texts are cut there, for teacher and student
    epochs: int = 1
    batch_size: int = 64
    learning_rate: float = 3e-4  # rises over the first steps, then falls in a line to zero
    clip: float = 1.0
    # Then: questions with their right answers, of the texts whose vectors are at hand.
    answer_pairs: int = 20_000  # at most
    answer_epochs: int = 1
    answer_learning_rate: float = 5e-5


class Reader:
    """The teacher: texts, cut at a limit, as vectors."""

    def __init__(self, folder: Path, max_tokens: int) -> None:
        """Read the folder of all-MiniLM-L6-v2."""
        self.low = bfloat16_is_fast()  # cosine to float32 vectors .9999 in the mean
        self.name = f"{folder.name}-{max_tokens}{'-bf16' if self.low else ''}"
        self.tokenizer, self.max_tokens = Subwords.load(folder / TOKENIZER), max_tokens
        self.network = SentenceBERT(SentenceBERTConfig()).eval()
        load_weights(self.network.bert, folder)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """n texts -> float32 [n, D], batches of like length."""
        sentences = Sentences(texts, self.tokenizer, self.max_tokens)
        order = np.argsort(sentences.lengths, kind="stable")
        found = np.empty((len(texts), self.network.output_dim), dtype=np.float32)
        for start in range(0, len(order), ENCODE_BATCH):
            batch = order[start : start + ENCODE_BATCH]
            with torch.autocast("cpu", torch.bfloat16, enabled=self.low):
                found[batch] = self.network(*sentences.batch(batch)).float().numpy()
        return found


def vectors(reader: Reader, texts: Sequence[str], cache: Path) -> npt.NDArray[np.float16]:
    """The teacher's vectors [n, D], in blocks that another number of texts can use again."""
    blocks = [
        encode_cached(reader, texts[start : start + CHUNK], cache, what="texts")
        for start in range(0, len(texts), CHUNK)
    ]
    return np.concatenate(blocks)


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


def texts_of(config: StudentConfig) -> list[tuple[str, str]]:
    """(source, text) of the texts that are taught: of a fixed sample the first ones, whose vectors serve any number."""
    return imitated_texts(StudentConfig.texts, 1)[: config.texts]


def teach(config: StudentConfig, folder: Path, runs: Path, seed: int) -> tuple[Student, Result]:
    """Train the student, or resume; the run lies in `runs/minilm-small/seed-<n>`.

    Args:
        config: what is taught.
        folder: of all-MiniLM-L6-v2.
        runs: where runs and the teacher's vectors lie.
        seed: of the order of the texts.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    reader = Reader(folder, config.max_tokens)
    texts = [text for _, text in texts_of(config)]
    target = vectors(reader, texts, runs / "teacher")
    torch.manual_seed(seed)
    precision: Precision = "bfloat16" if bfloat16_is_fast() else "float32"
    student = Student(begin(reader.network, config.layers), precision=precision)
    objective = ImitationObjective(
        student,
        Sentences(texts, reader.tokenizer, config.max_tokens),
        target,
        GradedSets({"stsb-dev": stsb.read("dev")}, reader.tokenizer, config.max_tokens),
        config.batch_size,
        seed,
    )
    optimiser = OptimiserConfig(
        "adamw", learning_rate=config.learning_rate, embedding_learning_rate=None, clip=config.clip
    )
    schedule = Schedule(config.epochs, config.batch_size, decay="warm", keep="last")
    result = train(objective, optimiser, schedule, runs / NAME / f"seed-{seed}", seed=seed)
    if config.answer_epochs:
        place = {text: i for i, text in enumerate(texts)}
        found = np.array([(place[a], place[b]) for a, b in answers() if a in place and b in place])
        pairs = np.random.default_rng(seed).permutation(found)[: config.answer_pairs]
        answering = AnswersObjective(
            student, objective.sentences, target, pairs, objective.development, config.batch_size, seed
        )
        optimiser = replace(optimiser, learning_rate=config.answer_learning_rate)
        schedule = replace(schedule, epochs=config.answer_epochs)
        result = train(answering, optimiser, schedule, runs / f"{NAME}-answers" / f"seed-{seed}", seed=seed)
    student.eval()
    return student, result
