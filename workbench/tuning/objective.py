"""What a model learns from labelled pairs, and how it is measured on others while it does.

Scores of two embeddings learn the order of the pairs (`training.objectives.ordering`); ranked answers within their
question.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.subwords import AnyTokenizer
from semblance.tables.labelled_pairs import Kind
from training.data.pairs import Pair
from training.objectives.batches import Indices
from training.objectives.objective import Objective
from training.objectives.ordering import ordering_loss
from training.objectives.tasks import PairTokens
from workbench.tuning.measure import MAIN, figures
from workbench.tuning.networks import SiamesePair

EVALUATION_BATCH = 64
SORTED_TOGETHER = 20  # batches, within which pairs of like length share one


class TuneObjective(Objective):
    """Loss on the pairs to train on, figures on those to choose on."""

    def __init__(
        self,
        model: SiamesePair,
        kind: Kind,
        training: Sequence[Pair],
        development: Sequence[Pair],
        tokenizer: AnyTokenizer,
        *,
        prompt: str = "",
        max_tokens: int,
        batch_size: int,
        seed: int,
    ) -> None:
        """Tokenise the pairs of both parts.

        Args:
            model: what is tuned.
            kind: of the labels.
            training: pairs.
            development: pairs.
            tokenizer: text -> ids.
            prompt: put before each text.
            max_tokens: of a sentence, with its prompt; longer ones are cut.
            batch_size: pairs.
            seed: of the order.
        """
        super().__init__(len(training), batch_size, seed)
        self.model: SiamesePair = model
        self.kind = kind
        self.pairs, self.development = training, development
        read = ([Pair(prompt + pair.a, prompt + pair.b) for pair in part] for part in (training, development))
        self.tokens, self.held = (PairTokens(part, tokenizer, max_tokens) for part in read)
        places: dict[str, int] = {}
        self.groups = np.array([places.setdefault(pair.group, len(places)) for pair in training])
        self.targets = np.array([pair.target for pair in training], dtype=np.float64)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Indices of pairs: of like length together, or, of ranked answers, those of a question."""
        rng = np.random.default_rng((self.seed, epoch))
        if self.kind == "ranking":
            order = np.argsort(rng.permutation(int(self.groups.max()) + 1)[self.groups], kind="stable")
        else:
            order = rng.permutation(len(self.pairs))
            together = self.batch_size * SORTED_TOGETHER
            blocks = [order[start : start + together] for start in range(0, len(order), together)]
            order = np.concatenate([self.tokens.by_length(block, joined=False) for block in blocks])
        batches = [order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size)]
        yield from (batches[i] for i in np.random.default_rng((self.seed, epoch, 1)).permutation(len(batches)))

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """The mean loss of a batch."""
        output = self.model(*self.tokens.batch(batch))
        target = torch.from_numpy(self.targets[batch])
        groups = torch.from_numpy(self.groups[batch]) if self.kind == "ranking" else None
        return ordering_loss(output, target.float(), groups), {}

    def evaluate(self) -> dict[str, float]:
        """Figures of the development part, with the one that chooses as `selection`."""
        found = figures(self.kind, self.answers(self.held), self.development)
        return {**found, "selection": found[MAIN[self.kind]]}

    @torch.no_grad()
    def answers(self, tokens: PairTokens) -> npt.NDArray[np.float64]:
        """Scores [n]."""
        order = tokens.by_length(np.arange(len(tokens)), joined=False)
        starts = range(0, len(order), EVALUATION_BATCH)
        parts = [self.model(*tokens.batch(order[start : start + EVALUATION_BATCH])).numpy() for start in starts]
        return np.concatenate(parts)[np.argsort(order, kind="stable")].astype(np.float64)
