"""Several tasks at once for a model of pairs with heads: each pair teaches the heads that its corpus has labels for.

Entailment: negative log-likelihood of the label; of a pair that is known only not to be entailment, that of the other
two labels together. All other tasks: binary cross-entropy to a value from 0 to 1. The losses of a batch are summed over
its pairs and tasks, and divided by the number of pairs.

Questions with a right and four wrong answers (`training.data.tasks.HARD`) come in batches of their own, of whole
groups: the negative log-likelihood of the right answer, softmax over the group, mean of the groups (R. Nogueira et al.,
"Document Ranking with a Pretrained Sequence-to-Sequence Model", 2020, have it over pairs; L. Gao, Z. Dai, J. Callan,
"Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline", 2021, over groups).

An epoch is a fixed number of pairs of each corpus. The next epoch goes on where it stopped; a corpus that ends begins
again, in another order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from core.subwords import AnyTokenizer
from training.data.hard import GROUP
from training.data.pairs import Pair
from training.data.readers.labelled_pairs import NOT_ENTAILMENT
from training.data.tasks import DEVELOPMENT, HARD, TEACHES
from training.models import CrossEncoder, PairWithHeads
from training.models.kinds import device_of
from training.objectives.batches import Indices, Sentences, by_size
from training.objectives.metrics import binary, graded, labelled, ranked
from training.objectives.objective import Objective
from training.objectives.supervised import LABELS

Values = npt.NDArray[np.float64]
IGNORED, NOT_ENTAILED = -1, 3
SORTED_TOGETHER = 20  # batches: pairs of like length share one, at little cost to the randomness of their order
EVALUATION_BATCH, GPU_EVALUATION_BATCH = 32, 512


@dataclass(frozen=True)
class TasksConfig:
    """Which pairs an epoch holds."""

    quotas: Mapping[str, int]  # corpus -> pairs of an epoch (of `HARD` whole groups)


class Rated(NamedTuple):
    """What a larger model says of some pairs of a corpus."""

    rows: Indices  # which pairs [m]
    probabilities: Mapping[str, npt.NDArray[np.float32]]  # of each task: entailment [m, 3], others [m, 1]


class PairTokens:
    """The tokens of n pairs."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: AnyTokenizer, max_tokens: int) -> None:
        """Tokenise both sides, each cut at `max_tokens`.

        Raises:
            ValueError: a text has no tokens.
        """
        self.a, self.b = (Sentences([getattr(p, side) for p in pairs], tokenizer, max_tokens) for side in "ab")
        self.lengths = np.stack([self.a.lengths, self.b.lengths], axis=1)  # [n, 2]

    def __len__(self) -> int:
        return len(self.lengths)

    def by_length(self, indices: Indices, *, joined: bool) -> Indices:
        """The same pairs in the order of `places`."""
        return indices[self.places(indices, joined=joined)]

    def places(self, indices: Indices, *, joined: bool) -> Indices:
        """Their places among the indices, those next to each other that cost a model little padding.

        `joined`: it reads both sentences as one sequence; else it makes an image of them, so both sides count.
        """
        lengths = self.lengths[indices]
        return np.argsort(lengths.sum(1), kind="stable") if joined else by_size(*lengths.T)

    def batch(self, indices: Indices) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Padded ids [B, S], lengths [B] of the first sentences, and [B, T], [B] of the second."""
        return (*self.a.batch(indices), *self.b.batch(indices))


class TasksObjective(Objective):
    """The sum of the tasks' losses; development figures of every task."""

    def __init__(
        self,
        model: PairWithHeads,
        training: Mapping[str, Sequence[Pair]],
        development: Mapping[str, Sequence[Pair]],
        tokenizer: AnyTokenizer,
        config: TasksConfig,
        *,
        max_tokens: int,
        batch_size: int,
        seed: int,
        low_precision: bool,
        ratings: Mapping[str, Rated] | None = None,
    ) -> None:
        """Tokenise the pairs of all corpora.

        Args:
            model: with a head for each task of the corpora.
            training: the pairs of each corpus that the config names.
            development: the sets of `training.data.tasks.DEVELOPMENT`.
            tokenizer: text -> ids without special tokens.
            config: what an epoch holds.
            max_tokens: of a sentence; longer ones are cut.
            batch_size: pairs.
            seed: of the order.
            low_precision: products of matrices in bfloat16.
            ratings: of a larger model, by corpus: each pair then teaches all heads that model has too.
        """
        self.model: PairWithHeads = model
        super().__init__(sum(map(len, training.values())), batch_size, seed)
        self.config, self.low_precision = config, low_precision
        self.names = [name for name in TEACHES if name in training]
        starts = np.cumsum([0, *(len(training[name]) for name in self.names)])
        self.rows = {name: np.arange(a, b) for name, a, b in zip(self.names, starts[:-1], starts[1:], strict=True)}
        pairs = [pair for name in self.names for pair in training[name]]
        self.training = PairTokens(pairs, tokenizer, max_tokens)
        self.targets = {
            task: np.concatenate([_targets(task, name, training[name]) for name in self.names]) for task in model.heads
        }
        self.grouped = np.zeros(len(pairs), dtype=bool)
        for name, rows in self.rows.items():
            self.grouped[rows] = name in HARD
        self.rated = self._rated(ratings or {})
        self.development = {
            name: (PairTokens(found, tokenizer, max_tokens), found) for name, found in development.items()
        }

    def _rated(self, ratings: Mapping[str, Rated]) -> dict[str, npt.NDArray[np.float32]]:
        """Of each task the ratings of all training pairs [n, K]; NaN where a pair has none."""
        tasks = dict.fromkeys(task for rated in ratings.values() for task in rated.probabilities)
        found = {}
        for task in (task for task in tasks if task in self.model.heads):
            width = next(r.probabilities[task].shape[1] for r in ratings.values() if task in r.probabilities)
            found[task] = np.full((len(self.training), width), np.nan, dtype=np.float32)
            for name, rated in ratings.items():
                if name in self.rows and task in rated.probabilities:
                    found[task][self.rows[name][rated.rows]] = rated.probabilities[task]
        return found

    def steps(self) -> int:
        """Batches of an epoch: of pairs, and of whole groups."""
        pairs = sum(quota for name, quota in self.config.quotas.items() if name not in HARD)
        groups = sum(quota // GROUP for name, quota in self.config.quotas.items() if name in HARD)
        return sum(-(-units // self._units(size)) for units, size in ((pairs, 1), (groups, GROUP)))

    def _units(self, size: int) -> int:
        """How many units (pairs, or groups of pairs) a batch has."""
        return max(1, self.batch_size // size)

    def batches(self, epoch: int) -> Iterator[Indices]:
        """Indices of training pairs, those of a batch of like length: pairs, or whole groups one after the other."""
        drawn = self._drawn(epoch)
        batches: list[Indices] = []
        for size in (1, GROUP):
            units = drawn[self.grouped[drawn] == (size > 1)].reshape(-1, size)
            units = units[np.random.default_rng((self.seed, epoch)).permutation(len(units))]
            many = self._units(size)
            for start in range(0, len(units), many * SORTED_TOGETHER):
                block = self._by_length(units[start : start + many * SORTED_TOGETHER])
                batches += [block[i : i + many] for i in range(0, len(block), many)]
        for i in np.random.default_rng((self.seed, epoch, 1)).permutation(len(batches)):
            yield batches[i].ravel()

    def _by_length(self, units: Indices) -> Indices:
        """Units [n, size] in an order of like length: that of their longest pair."""
        longest = self.training.lengths[units].sum(2).argmax(1)
        pairs = units[np.arange(len(units)), longest]
        return units[self.training.places(pairs, joined=isinstance(self.model, CrossEncoder))]

    def _drawn(self, epoch: int) -> Indices:
        drawn = []
        for name, quota in self.config.quotas.items():
            size = GROUP if name in HARD else 1
            units = self.rows[name].reshape(-1, size)
            places = epoch * (quota // size) + np.arange(quota // size)  # as many came in each epoch before
            for turn in np.unique(places // len(units)):
                order = np.random.default_rng((self.seed, self.names.index(name), int(turn))).permutation(units)
                drawn.append(order[places[places // len(units) == turn] % len(units)].ravel())
        return np.concatenate(drawn)

    def loss(self, batch: Indices) -> tuple[Tensor, dict[str, float]]:
        """The sum of the tasks' mean losses over the batch's pairs."""
        device = device_of(self.model)
        with self._precision():
            outputs = self.model(*(each.to(device) for each in self.training.batch(batch)))
        parts: dict[str, Tensor] = {}
        if self.grouped[batch[0]]:
            found = cross_entropy_of_groups(outputs["relevance"][:, 0])
            return found, {"groups": float(found.detach())}
        for task, output in outputs.items():
            target = self.targets[task][batch]
            known = target > IGNORED  # a factor: to choose rows by it, the CPU would have to wait for the GPU
            if known.any():
                each = _loss(task, output, torch.from_numpy(target).to(device)) * torch.from_numpy(known).to(device)
                parts[task] = each.sum() / len(batch)
        for task, ratings in self.rated.items():
            rating = ratings[batch]
            known = ~np.isnan(rating[:, 0])
            if known.any():
                each = _rating_loss(task, outputs[task], torch.from_numpy(np.nan_to_num(rating)).to(device))
                parts[f"{task}_rated"] = (each * torch.from_numpy(known).to(device)).sum() / len(batch)
        return torch.stack(list(parts.values())).sum(), {name: float(value.detach()) for name, value in parts.items()}

    def _precision(self) -> torch.autocast:
        return torch.autocast(device_of(self.model).type, torch.bfloat16, enabled=self.low_precision)

    def evaluate(self) -> dict[str, float]:
        """Figures of every development set, and their mean as `selection`."""
        figures: dict[str, float] = {}
        chosen: list[float] = []
        for name, (tokens, pairs) in self.development.items():
            task = DEVELOPMENT[name][0]
            with self._precision():
                outputs = predict(self.model, tokens)
            measured = measure(task, outputs[task], pairs)
            figures |= {f"{name}_{metric}": value for metric, value in measured.items()}
            chosen.append(
                measured[{"entailment": "accuracy", "similarity": "spearman", "relevance": "map"}.get(task, "accuracy")]
            )
        return {**figures, "selection": float(np.mean(chosen))}


def _targets(task: str, name: str, pairs: Sequence[Pair]) -> Values:
    """The value that each pair of a corpus has for a task; `IGNORED` where it teaches another one."""
    if task not in TEACHES[name]:
        return np.full(len(pairs), float(IGNORED))
    if task == "entailment":
        places: dict[str, int] = {label: i for i, label in enumerate(LABELS)}
        places[NOT_ENTAILMENT] = NOT_ENTAILED
        return np.array([places[pair.label or ""] for pair in pairs], dtype=np.float64)
    if task == "similarity":
        return np.array([pair.target for pair in pairs], dtype=np.float64)
    return np.array([float(pair.label == "1") for pair in pairs])


def _loss(task: str, output: Tensor, target: Tensor) -> Tensor:
    """Each pair's loss [B]: outputs [B, K], targets [B]."""
    if task != "entailment":
        return binary_cross_entropy_with_logits(output[:, 0], target.float(), reduction="none")
    odds = log_softmax(output, dim=1)
    entailed = LABELS.index("entailment")
    others = torch.logsumexp(odds[:, [i for i in range(len(LABELS)) if i != entailed]], dim=1)
    known = odds.gather(1, target.long().clamp(0, len(LABELS) - 1)[:, None])[:, 0]
    return -torch.where(target == NOT_ENTAILED, others, known)


def cross_entropy_of_groups(output: Tensor) -> Tensor:
    """Mean over the groups of the negative log-likelihood of the first of its `GROUP` pairs: outputs [G * GROUP]."""
    return -log_softmax(output.view(-1, GROUP), dim=1)[:, 0].mean()


def _rating_loss(task: str, output: Tensor, rating: Tensor) -> Tensor:
    """Each pair's cross-entropy to a larger model's probabilities [B]: both [B, K]."""
    if task == "entailment":
        return -(rating * log_softmax(output, dim=1)).sum(1)
    return binary_cross_entropy_with_logits(output, rating, reduction="none")[:, 0]


@torch.no_grad()
def predict(model: PairWithHeads, pairs: PairTokens) -> dict[str, npt.NDArray[np.float32]]:
    """For each head the raw outputs of all pairs [n, K]; pairs of like length are run together."""
    order = pairs.by_length(np.arange(len(pairs)), joined=isinstance(model, CrossEncoder))
    found: dict[str, list[npt.NDArray[np.float32]]] = {}
    device = device_of(model)
    size = EVALUATION_BATCH if device.type == "cpu" else GPU_EVALUATION_BATCH
    for start in range(0, len(order), size):
        batch = (each.to(device) for each in pairs.batch(order[start : start + size]))
        for name, output in model(*batch).items():
            found.setdefault(name, []).append(output.float().cpu().numpy())  # of bfloat16 numpy knows nothing
    back = np.argsort(order, kind="stable")
    return {name: np.concatenate(parts)[back] for name, parts in found.items()}


def measure(task: str, output: npt.NDArray[np.float32], pairs: Sequence[Pair]) -> dict[str, float]:
    """The figures of a task from raw outputs [n, K]."""
    if task == "entailment":
        return labelled([LABELS[i] for i in output.argmax(1)], [pair.label or "" for pair in pairs])
    value = output[:, 0].astype(np.float64)
    if task == "similarity":
        return graded(1 / (1 + np.exp(-value)), np.array([pair.target for pair in pairs], dtype=np.float64))
    right = [pair.label == "1" for pair in pairs]
    if task == "relevance":
        return ranked(value, right, [pair.group for pair in pairs])
    return binary((value > 0).tolist(), right)
