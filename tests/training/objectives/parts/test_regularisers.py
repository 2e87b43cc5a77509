"""Penalties by hand, and whom they pull."""

import pytest
import torch
from torch import Tensor, nn

from tests.harness import toys
from training.architectures.models import SiameseModel
from training.architectures.parts.layers import mask
from training.objectives.parts.regularisers import Regulariser, RegulariserConfig


class Composition(nn.Module):
    """A mean followed by a linear map: an encoder that has composition parameters."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.map = nn.Linear(toys.DIM, 3)

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        words = self.embedding(input_ids) * mask(lengths, input_ids.shape[1])[:, :, None]
        return self.map(words.sum(1))


def composed() -> SiameseModel:
    plain = toys.model(heads=True)
    return SiameseModel(Composition(plain.embedding), {"similarity": plain.heads["similarity"]})


IDS = torch.tensor([[3, 4, 3], [5, 0, 0]])


def test_the_composition_penalty_is_over_all_but_the_words() -> None:
    model = composed()
    penalty = Regulariser(model, RegulariserConfig(composition=0.5))(IDS)
    others = [p for name, p in model.named_parameters() if name != "encoder.embedding.weight"]
    assert len(others) == 2 + 5
    assert penalty.item() == pytest.approx(0.5 * sum(float((p.detach() ** 2).sum()) for p in others), rel=1e-6)
    penalty.backward()
    assert model.embedding.weight.grad is None
    assert all(torch.allclose(p.grad, p.detach()) for p in others if p.grad is not None)
    assert all(p.grad is not None for p in others)


def test_the_word_penalty_pulls_only_the_words_of_the_batch() -> None:
    model = composed()
    regulariser = Regulariser(model, RegulariserConfig(words=0.25))
    assert regulariser(IDS).item() == 0.0
    with torch.no_grad():
        model.embedding.weight[3, 0] += 2.0  # occurs twice in the batch, counts once
        model.embedding.weight[5, 1] -= 1.0
        model.embedding.weight[9] += 9.0  # not in the batch
    penalty = regulariser(IDS)
    assert penalty.item() == pytest.approx(0.25 * (4 + 1))
    penalty.backward()
    gradient = model.embedding.weight.grad.to_dense()
    assert gradient[3].tolist() == pytest.approx([0.25 * 2 * 2.0] + [0.0] * 7)
    assert gradient[5].tolist() == pytest.approx([0.0, -0.25 * 2 * 1.0] + [0.0] * 6)
    assert gradient.abs().sum(1).nonzero().flatten().tolist() == [3, 5]


def test_the_universal_penalty_remembers_the_encoder_as_it_was() -> None:
    model = composed()
    regulariser = Regulariser(model, RegulariserConfig(universal=2.0))
    assert regulariser(IDS).item() == 0.0
    with torch.no_grad():
        model.encoder.map.weight[0, 0] += 3.0
        model.encoder.map.bias[1] -= 1.0
        model.heads["similarity"].output.weight += 5.0  # the head is no part of the encoder
        model.embedding.weight += 5.0  # nor are the words
    penalty = regulariser(IDS)
    assert penalty.item() == pytest.approx(2.0 * (9 + 1))
    penalty.backward()
    assert model.encoder.map.weight.grad[0, 0].item() == pytest.approx(2.0 * 2 * 3.0)
    assert model.heads["similarity"].output.weight.grad is None
