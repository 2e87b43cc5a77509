"""Penalties of Wieting et al. (2016), eq. 1 and section 4.4."""

from dataclasses import dataclass

import torch
from torch import Tensor

from training.models.kinds import SiameseModel


@dataclass(frozen=True)
class RegulariserConfig:
    """Weights of the penalties; 0 leaves one out."""

    composition: float = 0.0  # lambda_c ||Wc||^2 over all parameters but the words
    words: float = 0.0  # lambda_w ||Ww0 - Ww||^2 over the distinct words of the batch
    universal: float = 0.0  # ||start - now||^2 over the encoder's composition parameters


NO_PENALTY = RegulariserConfig()


class Regulariser:
    """The penalties of one run; keeps a copy of the encoder's start for the universal one."""

    def __init__(self, model: SiameseModel, config: RegulariserConfig) -> None:
        """Copy the encoder's composition parameters as they are now."""
        self.model, self.config = model, config
        words = model.embedding.weight
        self.composition = [p for p in model.parameters() if p is not words]
        encoder = [p for p in model.encoder.parameters() if p is not words]
        self.start = [(p, p.detach().clone()) for p in encoder]

    def __call__(self, input_ids: Tensor) -> Tensor:
        """The penalty for a batch that holds these word ids."""
        total = torch.zeros((), device=self.model.embedding.weight.device)
        if self.config.composition:
            total = total + self.config.composition * sum(((p**2).sum() for p in self.composition), start=total)
        if self.config.universal:
            distances = (((p - before) ** 2).sum() for p, before in self.start)
            total = total + self.config.universal * sum(distances, start=torch.zeros_like(total))
        if self.config.words and self.model.embedding.weight.requires_grad:
            total = total + self.config.words * self.model.embedding.distance_from_start(input_ids.to(total.device))
        return total
