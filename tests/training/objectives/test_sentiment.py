"""Sentiment: the loss, the penalties, the order of batches and the figures."""

import numpy as np
import pytest
import torch

from tests import toys
from training.architectures.models import SiameseModel
from training.architectures.parts.heads import SentenceHead
from training.objectives.parts.regularisers import RegulariserConfig
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
    return LabelledSentences(ROWS, toys.tokenizer(), toys.MAX_TOKENS)


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


def test_the_penalty_counts_the_head_and_the_words_of_the_batch() -> None:
    trained = model()
    weights = sum(float((p.detach() ** 2).sum()) for p in trained.heads.parameters())
    task = objective(trained, SentimentConfig(regulariser=RegulariserConfig(composition=0.5, words=2.0)))
    cat = toys.tokenizer().encode("cat", 9).ids[0]
    with torch.no_grad():
        trained.embedding.weight[cat] += 1.0
    assert task.loss(np.array([1]))[1]["penalty"] == pytest.approx(0.5 * weights + 2.0 * toys.DIM, rel=1e-5)
    assert task.loss(np.array([0]))[1]["penalty"] == pytest.approx(0.5 * weights, rel=1e-5)


def test_figures_are_those_of_the_likelier_class() -> None:
    trained = model()
    predicted = log_probabilities(trained).argmax(1).tolist()
    right = np.mean([p == label for p, (_, label) in zip(predicted, ROWS, strict=True)])
    with torch.no_grad():
        figures = objective(trained).evaluate()
    assert figures["accuracy"] == figures["selection"] == pytest.approx(right)
    assert set(figures) == {"accuracy", "macro_f1", "selection"}
