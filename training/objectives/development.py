"""Model selection of transfer training: mean Pearson r of the cosine over rated sets (in the paper STS 2016)."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.nn.functional import normalize

from core.subwords import AnyTokenizer
from training.data.pairs import Pair
from training.models.kinds import SiameseModel
from training.objectives.batches import Sentences
from training.objectives.metrics import graded


class GradedSets:
    """Named sets of rated pairs, tokenised once."""

    def __init__(self, sets: Mapping[str, Sequence[Pair]], tokenizer: AnyTokenizer, max_tokens: int) -> None:
        """Tokenise the pairs of every set."""
        self.sets = {
            name: (
                Sentences([p.a for p in pairs], tokenizer, max_tokens),
                Sentences([p.b for p in pairs], tokenizer, max_tokens),
                np.array([p.target for p in pairs], dtype=np.float64),
            )
            for name, pairs in sets.items()
        }

    def evaluate(self, model: SiameseModel) -> dict[str, float]:
        """Pearson r of each set under its name, and their mean as `selection`."""
        scores = {}
        for name, (a, b, gold) in self.sets.items():
            left, right = (normalize(encode_all(model, side), dim=1) for side in (a, b))
            scores[name] = graded((left * right).sum(1).cpu().numpy(), gold)["pearson"]
        return {**scores, "selection": float(np.mean(list(scores.values())))}


def encode_all(model: SiameseModel, sentences: Sentences, batch_size: int = 512) -> torch.Tensor:
    """Embeddings [n, D] of all sentences, in order."""
    starts = range(0, len(sentences), batch_size)
    return torch.cat([model.encode(sentences.batch(np.arange(s, min(s + batch_size, len(sentences))))) for s in starts])
