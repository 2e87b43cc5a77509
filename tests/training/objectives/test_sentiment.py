"""Sentiment: the loss, the penalties, the order of batches and the figures."""

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures.models import SiameseModel
from training.architectures.parts.heads import SentenceHead
from training.objectives.sentiment import LabelledSentences, SentimentConfig, SentimentObjective

ROWS = [
    ("the dog is big .", 1),
    ("a small cat sleeps", 0),
    ("the man plays guitar", 1),
    ("a woman runs", 0),
    ("the park is not big", 0),
]


def model() -> SiameseModel:
    encoder = toys.model().encoder
    torch.manual_seed(1)
    return SiameseModel(encoder, {"sentiment": SentenceHead(toys.DIM, 2, hidden=6)})


def rows() -> LabelledSentences:
    return LabelledSentences(ROWS, toys.tokenizer(), toys.MAX_TOKENS, ("negative", "positive"))


def objective(trained: SiameseModel, config: SentimentConfig = SentimentConfig()) -> SentimentObjective:  # noqa: B008
    return SentimentObjective(trained, rows(), rows(), config, batch_size=2, seed=0)


def log_probabilities(trained: SiameseModel) -> torch.Tensor:
    output: torch.Tensor = trained.heads["sentiment"](trained.encode(rows().sentences.batch(np.arange(5))))
    return output


def test_the_loss_is_the_mean_negative_log_likelihood() -> None:
    trained = model()
    expected = -np.mean([log_probabilities(trained)[i, label].item() for i, (_, label) in enumerate(ROWS)])
    loss, parts = objective(trained).loss(np.arange(5))
    assert loss.item() == pytest.approx(expected, abs=1e-6)
    assert parts == pytest.approx({"sentiment": expected, "penalty": 0.0}, abs=1e-6)
    loss.backward()
    assert trained.embedding.weight.grad is not None
