"""A sentence-transformer fine-tuned on rated pairs: a stronger teacher of ratings than its frozen encodings.

The model and a head over its pairs of embeddings (Tai et al. 2015, KL to the sparse target) are trained together, as
Sentence-BERT is (N. Reimers, I. Gurevych, EMNLP 2019, with a classification objective). Needs the `distill` extra.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from torch import Tensor, nn

from training.batches import shuffled
from training.heads import PairHead
from training.losses import kl_to_target, sparse_target
from training.pairs import Pair
from training.teacher import Teacher

logger = logging.getLogger(__name__)

CLASSES = (1.0, 2.0, 3.0, 4.0, 5.0)
HIDDEN = 128
SCALE = 10.0  # embeddings have length 1: too short for the sigmoid of a head to see their products
HEAD_NAME = "head.pt"


@dataclass(frozen=True)
class TuningConfig:
    """How the teacher is fine-tuned: AdamW, a tenth of the steps rising, then linear decay to 0."""

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-5  # of the transformer
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0


DEFAULT_TUNING = TuningConfig()


def tuned(teacher: Path, pairs: Sequence[Pair], config: TuningConfig, cache: Path) -> Path:
    """The folder of the teacher fine-tuned on rated pairs; made now, or found in `cache`.

    It is a sentence-transformers folder with a `head.pt` beside.

    Args:
        teacher: folder of a sentence-transformers model.
        pairs: with `target` in 1..5.
        config: how.
        cache: where tuned teachers are kept, by teacher, pairs and config.

    Raises:
        FileNotFoundError: no such model.
        ModuleNotFoundError: the `distill` extra is not installed.
    """
    loaded = Teacher(teacher)
    inputs = json.dumps([loaded.name, asdict(config), [(p.a, p.b, p.target) for p in pairs]])
    folder = cache / f"tuned-{hashlib.sha256(inputs.encode('utf-8', 'replace')).hexdigest()[:16]}"
    if not folder.is_dir():
        logger.info("fine-tuning %s on %d pairs, %d epochs", loaded.name, len(pairs), config.epochs)
        partial = folder.with_name(folder.name + ".partial")
        head = _tune(loaded.model, loaded.dim, pairs, config)
        loaded.model.save(str(partial), create_model_card=False)
        torch.save(head.state_dict(), partial / HEAD_NAME)
        partial.replace(folder)
    return folder


def load_head(folder: Path, dim: int) -> PairHead:
    """The head that was trained with a tuned teacher of embeddings [.., dim]."""
    head = PairHead(dim, len(CLASSES), HIDDEN)
    head.load_state_dict(torch.load(folder / HEAD_NAME, weights_only=True))
    return head.eval()


def _tune(model: Any, dim: int, pairs: Sequence[Pair], config: TuningConfig) -> PairHead:
    torch.manual_seed(config.seed)
    device = model.device
    head = PairHead(dim, len(CLASSES), HIDDEN).to(device)
    groups: list[dict[str, Any]] = [
        {"params": list(model.parameters()), "lr": config.learning_rate},
        {"params": list(head.parameters()), "lr": config.head_learning_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    steps = config.epochs * -(-len(pairs) // config.batch_size)
    rising = max(steps // 10, 1)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rising, (steps - step) / max(steps - rising, 1))
    )
    targets = sparse_target(torch.tensor([p.target for p in pairs], dtype=torch.float32), torch.tensor(CLASSES))
    everything = [*model.parameters(), *head.parameters()]
    model.train()
    for epoch in range(config.epochs):
        total = 0.0
        batches = list(shuffled(len(pairs), config.batch_size, config.seed, epoch))
        for batch in track(batches, description=f"teacher, epoch {epoch + 1} of {config.epochs}"):
            texts = [pairs[i].a for i in batch] + [pairs[i].b for i in batch]
            a, b = _embed(model, texts, device).chunk(2)
            loss = kl_to_target(head(a, b), targets[batch].to(device))
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(everything, config.clip)
            optimiser.step()
            rates.step()
            total += float(loss.detach()) * len(batch)
        logger.info("teacher, epoch %d: loss %.4f", epoch + 1, total / len(pairs))
    model.eval()
    return head.cpu()


def _embed(model: Any, texts: list[str], device: torch.device) -> Tensor:
    inputs = model.tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.autocast(device.type, dtype=torch.bfloat16):
        embeddings: Tensor = model({name: value.to(device) for name, value in inputs.items()})["sentence_embedding"]
    return embeddings.float() * SCALE
