"""Word averaging against its equation."""

import pytest
import torch

from tests import toys
from training.architectures import WordAveraging, WordAveragingConfig
from training.architectures.parts.layers import WordEmbedding

ROWS = toys.table().rows


def test_the_embedding_is_the_mean_of_the_words() -> None:
    encoder = WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))
    found = encoder(torch.tensor([[3, 5, 9], [4, 0, 0], [8, 8, 0]]), torch.tensor([3, 1, 2])).detach().numpy()
    assert found[0] == pytest.approx((ROWS[3] + ROWS[5] + ROWS[9]) / 3, abs=1e-6)
    assert found[1] == pytest.approx(ROWS[4], abs=1e-7)
    assert found[2] == pytest.approx(ROWS[8], abs=1e-6)


def test_dropout_is_of_training_only() -> None:
    encoder = WordAveraging(WordAveragingConfig(dropout=0.5), WordEmbedding(ROWS))
    batch = torch.tensor([[3, 5, 9]]), torch.tensor([3])
    plain = WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))(*batch)
    torch.manual_seed(0)
    assert not torch.allclose(encoder.train()(*batch), plain)
    assert torch.equal(encoder.eval()(*batch), plain)


def test_there_is_nothing_to_learn_but_the_words() -> None:
    encoder = WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))
    assert [name for name, _ in encoder.named_parameters()] == ["embedding.weight"]
