"""Optimisers by name, with sparse word embeddings apart, and gradient clipping that understands them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Adadelta, Adagrad, Adam, Optimizer, RMSprop, SparseAdam

from training.layers import WordEmbedding


@dataclass(frozen=True)
class OptimiserConfig:
    """How parameters move. Weights of the composition (all but the words) and of the words apart, as in the papers."""

    name: Literal["adam", "adagrad", "adadelta", "rmsprop"] = "adam"
    learning_rate: float = 1e-3
    embedding_learning_rate: float | None = 1e-3  # None: the words stay frozen
    clip: float | None = None  # largest global gradient norm
    heads_only: bool = False  # the whole encoder, words and composition, stays frozen: its vectors are mere features


_KINDS: dict[str, Callable[..., Optimizer]] = {
    "adam": Adam,
    "adagrad": Adagrad,
    "adadelta": Adadelta,
    "rmsprop": RMSprop,
}


def build_optimisers(model: nn.Module, config: OptimiserConfig) -> list[Optimizer]:
    """One optimiser for the composition parameters and one for the word embeddings; either may be missing.

    Raises:
        ValueError: Adadelta for words, whose sparse gradients it cannot read.
    """
    if config.name == "adadelta" and config.embedding_learning_rate is not None:
        raise ValueError("adadelta keeps the words frozen: embedding_learning_rate must be None")
    words = [m.weight for m in model.modules() if isinstance(m, WordEmbedding)]
    if config.heads_only:
        model.get_submodule("encoder").requires_grad_(False)
    if config.embedding_learning_rate is None:
        for weight in words:
            weight.requires_grad_(False)
    word_ids = {id(weight) for weight in words}
    others = [p for p in model.parameters() if id(p) not in word_ids and p.requires_grad]
    optimisers: list[Optimizer] = []
    if others:
        optimisers.append(_KINDS[config.name](others, lr=config.learning_rate))
    if words and config.embedding_learning_rate is not None and not config.heads_only:
        sparse = any(m.sparse for m in model.modules() if isinstance(m, WordEmbedding))
        if config.name == "adagrad":
            # torch's AdaGrad makes sparse tensors of its own and warns of unchecked indices unless one has chosen.
            torch.sparse.check_sparse_tensor_invariants.disable()
            optimisers.append(Adagrad(words, lr=config.embedding_learning_rate))
        else:
            kind_of_adam = SparseAdam if sparse else Adam
            optimisers.append(kind_of_adam(words, lr=config.embedding_learning_rate))
    return optimisers


def _values(gradient: Tensor) -> Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def clip_gradients(parameters: Iterable[Tensor], largest: float) -> float:
    """Scale all gradients so that their joint Euclidean norm is at most `largest`; returns the norm before."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms: Sequence[Tensor] = [torch.linalg.vector_norm(_values(g)) for g in gradients]
    if not norms:
        return 0.0
    norm = float(torch.linalg.vector_norm(torch.stack(list(norms))))
    if norm > largest:
        for gradient in gradients:
            gradient.mul_(largest / norm)
    return norm
