"""Optimisers by name, separate for sparse word embeddings, and gradient clipping for sparse gradients."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop, SparseAdam

from training.models.layers import WordEmbedding
from training.recipes.recipe import OptimiserConfig

_KINDS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "adamw": AdamW, "adagrad": Adagrad, "rmsprop": RMSprop}

_ENCODERS = ("encoder", "bert")  # what they are called within models


def build_optimisers(model: nn.Module, config: OptimiserConfig) -> list[Optimizer]:
    """One optimiser for the composition parameters and one for the word embeddings; either may be missing."""
    words = [m.weight for m in model.modules() if isinstance(m, WordEmbedding)]
    if config.heads_only:
        for encoder in (part for name, part in model.named_children() if name in _ENCODERS):
            encoder.requires_grad_(False)
    if config.embedding_learning_rate is None:
        for weight in words:
            weight.requires_grad_(False)
    word_ids = {id(weight) for weight in words}
    others = {name: p for name, p in model.named_parameters() if id(p) not in word_ids and p.requires_grad}
    optimisers: list[Optimizer] = []
    if others:
        optimisers.append(_KINDS[config.name](_groups(others, config), lr=config.learning_rate))
    if words and config.embedding_learning_rate is not None and not config.heads_only:
        if config.name == "adagrad":
            # torch's AdaGrad creates sparse tensors and warns about unchecked indices unless the check is set
            # explicitly.
            torch.sparse.check_sparse_tensor_invariants.disable()
            optimisers.append(Adagrad(words, lr=config.embedding_learning_rate))
        else:
            optimisers.append(SparseAdam(words, lr=config.embedding_learning_rate))
    return optimisers


_LAYER = re.compile(r"\.layers?\.(\d+)\.")


def _groups(parameters: Mapping[str, nn.Parameter], config: OptimiserConfig) -> Iterable[Any]:
    """All parameters in groups of one rate: those of the heads, and of each layer, where these have rates of their own.

    The embeddings are below the lowest layer.
    """
    layers = {name: int(found[1]) for name in parameters if (found := _LAYER.search(name))}
    top = max(layers.values(), default=-1)
    rates: dict[float, list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        if name.startswith("heads."):
            rate = config.heads_learning_rate or config.learning_rate
        else:
            rate = config.learning_rate * config.layer_decay ** (top - layers.get(name, -1))
        rates.setdefault(rate, []).append(parameter)
    return [{"params": group, "lr": rate} for rate, group in rates.items()]


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
