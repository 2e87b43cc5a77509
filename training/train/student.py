"""`minilm-small`: three of the six layers of MiniLM, taught its vectors.

Then they learn to find the answers of questions, and an encoder of these questions as people ask them (`teach_faqs`).
The word table is frozen (few texts would move common words only). Every step resumes: the teacher's vectors lie in
blocks, the training in checkpoints.
"""

import copy
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from core.subwords import Subwords
from training.data.readers import labelled_pairs, written
from training.models.kinds import Precision, SiameseModel
from training.models.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig, SequenceEncoder
from training.objectives.batches import Sentences
from training.objectives.development import GradedSets
from training.objectives.faqs import FAQConfig, FAQObjective, FAQTexts
from training.objectives.imitation import AnswersObjective, ImitationObjective
from training.recipes.recipe import OptimiserConfig, Schedule
from training.recipes.sources.imitated import answers, imitated_texts
from training.teacher.encoder import Teacher, bfloat16_is_fast, encode_cached
from training.train.loop import Result, train

TOKENIZER = "tokenizer.json"
BLOCK = 4096  # texts whose vectors lie in a file
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")  # in the names of weights


@dataclass(frozen=True)
class StudentConfig:
    """What is taught, and how long."""

    name: str = "minilm-small"  # of the run and the model
    texts: int = 72 * BLOCK  # of a fixed sample the first ones
    layers: tuple[int, ...] = (0, 2, 5)  # of all-MiniLM-L6-v2
    max_tokens: int = 96  # texts are cut there, for teacher and student
    epochs: int = 1
    batch_size: int = 64
    learning_rate: float = 3e-4  # rises over the first steps, then falls in a line to zero
    clip: float = 1.0
    # Then: questions with their right answers, of the texts whose vectors are at hand.
    answer_pairs: int = 20_000  # at most
    answer_epochs: int = 1
    answer_learning_rate: float = 5e-5


def vectors(teacher: Teacher, texts: Sequence[str], max_tokens: int, cache: Path) -> npt.NDArray[np.float16]:
    """The teacher's vectors [n, E] of texts cut at so many tokens; in blocks, so that more texts can use them again."""
    teacher.cut_at(max_tokens)
    blocks = [
        encode_cached(teacher, texts[start : start + BLOCK], cache, what="texts")
        for start in range(0, len(texts), BLOCK)
    ]
    return np.concatenate(blocks)


def begin(teacher: SentenceBERT, layers: Sequence[int]) -> SentenceBERT:
    """A student of some of the teacher's layers, everything else its own."""
    bert = teacher.config.bert
    student = SentenceBERT(SentenceBERTConfig(BERTConfig(**{**asdict(bert), "layers": len(layers)})))
    kept = {str(old): str(new) for new, old in enumerate(layers)}
    weights = {}
    for name, value in teacher.bert.state_dict().items():
        if (found := _LAYER.match(name)) is None:
            weights[name] = value
        elif found[1] in kept:
            weights[f"encoder.layer.{kept[found[1]]}.{name[found.end() :]}"] = value
    student.bert.load_state_dict(weights)
    return student


def texts_of(config: StudentConfig) -> list[tuple[str, str]]:
    """(source, text) of the texts that are taught."""
    return imitated_texts(StudentConfig.texts, 1)[: config.texts]


def teach(
    config: StudentConfig, start: SentenceBERT, tokenizer: Path, teacher: Path, runs: Path, seed: int
) -> tuple[SiameseModel, Result]:
    """Train the student, or resume; the run lies in `runs/<name>/seed-<n>`.

    Args:
        config: what is taught.
        start: the encoder that is taught, of all-MiniLM-L6-v2's words.
        tokenizer: that of all-MiniLM-L6-v2.
        teacher: folder of the encoder whose vectors are learnt.
        runs: where runs and the teacher's vectors lie.
        seed: of the order of the texts.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    texts = [text for _, text in texts_of(config)]
    target = vectors(Teacher(teacher), texts, config.max_tokens, runs / "teacher")
    student = _model(start, seed)
    words = Subwords.load(tokenizer)
    objective = ImitationObjective(
        student,
        Sentences(texts, words, config.max_tokens),
        target,
        GradedSets({"stsb-dev": labelled_pairs.read("stsb-dev")}, words, config.max_tokens),
        config.batch_size,
        seed,
    )
    optimiser = _adamw(config)
    schedule = Schedule(config.epochs, config.batch_size, decay="warm", keep="last")
    result = train(objective, optimiser, schedule, runs / config.name / f"seed-{seed}", seed=seed)
    if config.answer_epochs:
        place = {text: i for i, text in enumerate(texts)}
        found = np.array([(place[a], place[b]) for a, b in answers() if a in place and b in place])
        pairs = np.random.default_rng(seed).permutation(found)[: config.answer_pairs]
        answering = AnswersObjective(
            student, objective.sentences, target, pairs, objective.development, config.batch_size, seed
        )
        optimiser = replace(optimiser, learning_rate=config.answer_learning_rate)
        schedule = replace(schedule, epochs=config.answer_epochs)
        result = train(answering, optimiser, schedule, runs / f"{config.name}-answers" / f"seed-{seed}", seed=seed)
    student.eval()
    return student, result


def teach_faqs(config: FAQConfig, name: str, start: SequenceEncoder, tokenizer: Path, runs: Path, seed: int) -> Result:
    """Teach an encoder the written FAQs, or resume; the run lies in `runs/<name>-faqs/seed-<n>`.

    Args:
        config: how long.
        name: of the model.
        start: the encoder, which is changed.
        tokenizer: that of all-MiniLM-L6-v2.
        runs: where runs lie.
        seed: of the order of FAQs and texts.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    student = _model(start, seed)
    began = copy.deepcopy(student.encoder)
    words = Subwords.load(tokenizer)
    learnt, held = (FAQTexts(written.faqs(part), words, config.max_tokens) for part in ("train", "dev"))
    kept = Sentences([text for _, text in imitated_texts(StudentConfig.texts, 1)], words, config.max_tokens)
    development = GradedSets({"stsb-dev": labelled_pairs.read("stsb-dev")}, words, config.max_tokens)
    objective = FAQObjective(student, began, learnt, kept, held, development, config, seed)
    optimiser = _adamw(config)
    schedule = Schedule(config.epochs, config.faqs, decay="warm", keep="last")
    result = train(objective, optimiser, schedule, runs / f"{name}-faqs" / f"seed-{seed}", seed=seed)
    mean_with(student.encoder, began.state_dict(), config.start_share)
    student.eval()
    with torch.no_grad():
        return replace(result, best=objective.evaluate())


def _model(encoder: SequenceEncoder, seed: int) -> SiameseModel:
    torch.manual_seed(seed)
    precision: Precision = "bfloat16" if bfloat16_is_fast() else "float32"
    return SiameseModel(encoder, precision=precision).to("cuda" if torch.cuda.is_available() else "cpu")


def _adamw(config: StudentConfig | FAQConfig) -> OptimiserConfig:
    return OptimiserConfig("adamw", config.learning_rate, embedding_learning_rate=None, clip=config.clip)


@torch.no_grad()
def mean_with(model: nn.Module, start: dict[str, torch.Tensor], share: float) -> None:
    """Move the weights that share of the way back to those they began with.

    M. Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022: the mean keeps what the start knew.
    """
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value.lerp_(start[name], share)
