"""A transformer of one layer, the same in all tests that publish one: its graphs are exported once."""

from typing import TypeVar

import torch

from training.models.transformer import BERTConfig

TINY = BERTConfig(vocabulary=105, hidden=24, layers=1, attention_heads=3, inner=48, positions=300)
Model = TypeVar("Model", bound=torch.nn.Module)


def spread(model: Model) -> Model:
    """With weights so large that texts differ."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(len(name)))
    return model.eval()
