"""The ordering loss against its definition, two pairs at a time."""

import math

import pytest
import torch

from training.objectives.ordering import SHARPNESS, ordering_loss


def by_hand(scores: list[float], targets: list[float], groups: list[int] | None = None) -> float:
    found = []
    for i in range(len(scores)):
        for j in range(len(scores)):
            if targets[i] > targets[j] and (groups is None or groups[i] == groups[j]):
                found.append(math.log1p(math.exp(SHARPNESS * (scores[j] - scores[i]))))
    return sum(found) / len(found)


def test_the_loss_is_the_mean_over_every_two_pairs() -> None:
    scores, targets, groups = [0.1, 0.4, 0.3, -0.2], [1.0, 0.0, 2.5, 1.0], [0, 0, 1, 1]
    given = torch.tensor(scores, dtype=torch.float64), torch.tensor(targets)
    assert float(ordering_loss(*given)) == pytest.approx(by_hand(scores, targets))
    assert float(ordering_loss(*given, torch.tensor(groups))) == pytest.approx(by_hand(scores, targets, groups))


def test_pairs_that_cannot_be_compared_cost_nothing() -> None:
    scores = torch.tensor([0.2, 0.6], requires_grad=True)
    loss = ordering_loss(scores, torch.tensor([1.0, 0.0]), torch.tensor([0, 1]))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert scores.grad is not None
    assert scores.grad.tolist() == [0.0, 0.0]
