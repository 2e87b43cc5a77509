"""Where a network that counts shared words begins: at a logistic regression on its counts."""

import numpy as np
import pytest
import torch

from tests.harness import toys
from training.architectures import MGIMConfig
from training.architectures.mgim import MGIM
from training.architectures.models import InteractionModel
from training.architectures.parts.layers import WordEmbedding
from training.families.interaction import begin_at_regression
from training.objectives.pairwise import YES_OR_NO, TargetPairs, predict
from training.pairs import Pair

COUNTS = MGIMConfig(hidden=5, shared_words=True, overlaps=True, projected=True)
SENTENCES = ("the dog runs", "a dog runs in the park", "the cat sleeps", "the park", "a cat runs", "dog")


def pairs() -> TargetPairs:
    """Paraphrases are equal sentences, so that the counts alone tell them."""
    found = [Pair(a, b, float(a == b)) for a in SENTENCES for b in SENTENCES]
    return TargetPairs(found, toys.tokenizer(), toys.MAX_TOKENS)


def model(config: MGIMConfig, classes: int = 2) -> InteractionModel:
    torch.manual_seed(0)
    network = MGIM(config, WordEmbedding(toys.table().rows), classes)
    if config.shared_words:
        network.mark_numbers([False] * len(toys.table().rows))
    return InteractionModel(network, both_orders=True)


def test_a_new_network_begins_as_the_regression_and_can_learn_more() -> None:
    net, given = model(COUNTS), pairs()
    before = predict(net, given, YES_OR_NO)
    begin_at_regression(net, given)
    after = predict(net, given, YES_OR_NO)
    right = given.target > 0.5
    assert ((before > 0.5) == right).mean() < ((after > 0.5) == right).mean() == 1.0
    assert after.mean() == pytest.approx(right.mean(), abs=1e-3)  # a regression's mean is that of its targets
    everything = np.arange(len(given))
    a, b = given.a.batch(everything), given.b.batch(everything)
    assert isinstance(net.network, MGIM)
    assert net.network.counts is not None
    with torch.no_grad():
        counts = net.network.counts(net.network.counted(*a, *b))
    assert torch.allclose(net.network(*a, *b), torch.log_softmax(counts, dim=1), atol=1e-6)
    net.network(*a, *b)[:, 1].sum().backward()
    assert net.network.output.weight.grad is not None
    assert net.network.output.weight.grad.abs().max() > 0
