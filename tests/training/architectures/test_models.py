"""The siamese model: both sides at once, and the precision of training."""

import pytest
import torch

from tests.harness import toys
from training.architectures import ArchitectureConfig, GRANConfig, LSTMConfig, WordAveragingConfig, build_encoder
from training.architectures.models import Precision, SiameseModel
from training.architectures.parts.layers import WordEmbedding

LEFT = (torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1]))
RIGHT = (torch.tensor([[2, 1, 0, 0, 0], [5, 6, 7, 1, 2]]), torch.tensor([2, 5]))


def model(config: ArchitectureConfig, precision: Precision = "float32") -> SiameseModel:
    torch.manual_seed(0)
    return SiameseModel(build_encoder(config, WordEmbedding(toys.table().rows)), precision=precision)


@pytest.mark.parametrize("config", [WordAveragingConfig(), LSTMConfig(), GRANConfig(bidirectional=True)])
def test_both_sides_at_once_are_as_each_alone(config: ArchitectureConfig) -> None:
    encoder = model(config)
    a, b = encoder.encode_pair(LEFT, RIGHT)
    torch.testing.assert_close(a, encoder.encode(LEFT))
    torch.testing.assert_close(b, encoder.encode(RIGHT))


def test_low_precision_is_of_training_only_and_the_embeddings_and_gradients_stay_float32() -> None:
    full, low = model(GRANConfig()), model(GRANConfig(), "bfloat16")
    exact, rounded = full.encode(RIGHT), low.encode(RIGHT)
    assert rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    torch.testing.assert_close(exact, rounded, atol=2e-2, rtol=2e-2)
    rounded.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in low.parameters())
    torch.testing.assert_close(full.eval().encode(RIGHT), low.eval().encode(RIGHT), atol=0, rtol=0)
