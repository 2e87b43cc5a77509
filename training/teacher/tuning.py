"""Fine-tuning of a sentence-transformer on rated pairs, for better ratings than those of its frozen encodings.

The model and a head over its pairs of embeddings (Tai et al. 2015, KL to the sparse target) are trained together, as
Sentence-BERT is (N. Reimers, I. Gurevych, EMNLP 2019, with a classification objective). Optionally a second head is
trained on the entailment labels of the pairs. Needs the `distill` extra.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from training.data.pairs import Pair
from training.models.heads import PairHead
from training.objectives.batches import shuffled
from training.objectives.losses import kl_to_target, sparse_target
from training.objectives.supervised import LABELS
from training.progress import tracked
from training.teacher.encoder import Teacher, bfloat16_is_fast

logger = logging.getLogger(__name__)

CLASSES = (1.0, 2.0, 3.0, 4.0, 5.0)
HIDDEN = 128
SCALE = 10.0  # of the embeddings, whose length of 1 is too small for the sigmoid of a head
HEAD_NAME, ENTAILMENT_HEAD_NAME = "head.pt", "entailment.pt"


@dataclass(frozen=True)
class TuningConfig:
    """How the teacher is fine-tuned: AdamW, linear warm-up over a tenth of the steps, then linear decay to 0."""

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-5  # of the transformer
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    entailment_weight: float = 0.0  # of the labels' loss beside that of the ratings; 0: no labels


DEFAULT_TUNING = TuningConfig()


def tuned(teacher: Path, pairs: Sequence[Pair], config: TuningConfig, cache: Path) -> Path:
    """The folder of the teacher fine-tuned on rated pairs, from `cache` or trained now.

    A sentence-transformers folder with `head.pt`, and `entailment.pt` if it was trained on labels.

    Args:
        teacher: folder of a sentence-transformers model.
        pairs: with `target` in 1..5, and a label if the config trains on labels.
        config: settings.
        cache: folder of tuned teachers, by teacher, pairs and config.

    Raises:
        FileNotFoundError: no such model.
        ModuleNotFoundError: the `distill` extra is not installed.
    """
    loaded = Teacher(teacher)
    learnt = [(p.a, p.b, p.target, p.label if config.entailment_weight > 0 else None) for p in pairs]
    inputs = json.dumps([loaded.name, asdict(config), learnt])
    folder = cache / f"tuned-{hashlib.sha256(inputs.encode('utf-8', 'replace')).hexdigest()[:16]}"
    if not folder.is_dir():
        logger.info("fine-tuning %s on %d pairs, %d epochs", loaded.name, len(pairs), config.epochs)
        partial = folder.with_name(folder.name + ".partial")
        heads = _tune(loaded.model, loaded.dim, pairs, config)
        loaded.model.save(str(partial), create_model_card=False)
        for name, head in heads.items():
            torch.save(head.state_dict(), partial / name)
        partial.replace(folder)
    return folder


def load_heads(folder: Path, dim: int) -> tuple[PairHead, PairHead | None]:
    """The heads of a tuned teacher with embeddings [.., dim]: of ratings, and of labels or None."""

    def loaded(name: str) -> PairHead:
        head = _head(name, dim)
        head.load_state_dict(torch.load(folder / name, weights_only=True))
        return head.eval()

    return loaded(HEAD_NAME), loaded(ENTAILMENT_HEAD_NAME) if (folder / ENTAILMENT_HEAD_NAME).is_file() else None


def _head(name: str, dim: int) -> PairHead:
    if name == HEAD_NAME:
        return PairHead(dim, len(CLASSES), HIDDEN)
    return PairHead(dim, len(LABELS), HIDDEN, directed=True)


def _tune(model: Any, dim: int, pairs: Sequence[Pair], config: TuningConfig) -> dict[str, PairHead]:
    torch.manual_seed(config.seed)
    device = model.device
    names = (HEAD_NAME, ENTAILMENT_HEAD_NAME) if config.entailment_weight > 0 else (HEAD_NAME,)
    heads = {name: _head(name, dim).to(device) for name in names}
    of_heads = [parameter for head in heads.values() for parameter in head.parameters()]
    groups: list[dict[str, Any]] = [
        {"params": list(model.parameters()), "lr": config.learning_rate},
        {"params": of_heads, "lr": config.head_learning_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    steps = config.epochs * -(-len(pairs) // config.batch_size)
    rising = max(steps // 10, 1)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rising, (steps - step) / max(steps - rising, 1))
    )
    targets = sparse_target(torch.tensor([p.target for p in pairs], dtype=torch.float32), torch.tensor(CLASSES))
    labels = torch.tensor([LABELS.index(p.label) if config.entailment_weight > 0 else 0 for p in pairs])
    everything = [*model.parameters(), *of_heads]
    model.train()
    for epoch in range(config.epochs):
        total = 0.0
        batches = list(shuffled(len(pairs), config.batch_size, config.seed, epoch))
        for batch in tracked(batches, f"teacher, epoch {epoch + 1} of {config.epochs}"):
            texts = [pairs[i].a for i in batch] + [pairs[i].b for i in batch]
            a, b = _embed(model, texts, device).chunk(2)
            loss = kl_to_target(heads[HEAD_NAME](a, b), targets[batch].to(device))
            if config.entailment_weight > 0:
                labelled = heads[ENTAILMENT_HEAD_NAME](a, b)
                loss = loss + config.entailment_weight * nll_loss(labelled, labels[batch].to(device))
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(everything, config.clip)
            optimiser.step()
            rates.step()
            total += float(loss.detach()) * len(batch)
        logger.info("teacher, epoch %d: loss %.4f", epoch + 1, total / len(pairs))
    model.eval()
    return {name: head.cpu() for name, head in heads.items()}


def _embed(model: Any, texts: list[str], device: torch.device) -> Tensor:
    inputs = model.tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16_is_fast()):
        embeddings: Tensor = model({name: value.to(device) for name, value in inputs.items()})["sentence_embedding"]
    return embeddings.float() * SCALE
