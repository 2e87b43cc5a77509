"""Pairs through an interaction model: both losses, what an epoch draws, and the figures of each task."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.measures import expected_rating
from tests.harness import toys
from training.architectures.mgim import MGIM, MGIMConfig
from training.architectures.models import InteractionModel
from training.architectures.parts.layers import WordEmbedding
from training.objectives.pairwise import (
    RATINGS_OF_SICK,
    YES_OR_NO,
    PairwiseConfig,
    PairwiseObjective,
    TargetPairs,
    predict,
)
from training.objectives.parts.losses import kl_to_target, sparse_target
from training.pairs import Pair

RATED = PairwiseConfig(RATINGS_OF_SICK, "pearson")
CHOSEN = PairwiseConfig(YES_OR_NO, "mrr")
# Three questions: one right answer of four, two of three, none of two.
ANSWERS = [
    Pair(f"the {question}", f"a {answer}", target=float(right), group=question)
    for question, answers in (
        ("man", (("dog", 0), ("woman", 1), ("cat", 0), ("park", 0))),
        ("cat", (("big dog", 1), ("small dog", 1), ("man", 0))),
        ("park", (("sofa", 0), ("guitar", 0))),
    )
    for answer, right in answers
]


def target_pairs(pairs: list[Pair] | tuple[Pair, ...]) -> TargetPairs:
    return TargetPairs(pairs, toys.tokenizer(), toys.MAX_TOKENS)


def model(classes: int, *, both_orders: bool = False) -> InteractionModel:
    torch.manual_seed(0)
    network = MGIM(MGIMConfig(hidden=4), WordEmbedding(toys.table().rows), classes)
    return InteractionModel(network, both_orders=both_orders)


def objective(config: PairwiseConfig, pairs: list[Pair] | tuple[Pair, ...], batch_size: int = 3) -> PairwiseObjective:
    data = target_pairs(pairs)
    return PairwiseObjective(
        model(len(config.classes), both_orders=config.both_orders), data, data, config, batch_size, seed=5
    )


def outputs(task: PairwiseObjective, batch: np.ndarray, *, swapped: bool = False) -> Tensor:
    a, b = task.training.a.batch(batch), task.training.b.batch(batch)
    return task.model.network(*(b if swapped else a), *(a if swapped else b))


def test_a_rating_is_held_against_its_sparse_distribution() -> None:
    task = objective(RATED, toys.RATED)
    batch = np.array([1, 3, 6])
    target = sparse_target(torch.tensor([3.0, 1.5, 4.5]), torch.tensor(RATINGS_OF_SICK))
    loss, parts = task.loss(batch)
    assert loss.item() == pytest.approx(kl_to_target(outputs(task, batch), target).item(), abs=1e-6)
    assert parts == {"fit": pytest.approx(loss.item())}


def test_the_margin_asks_the_right_class_to_lead_by_one() -> None:
    task = objective(replace(CHOSEN, loss="margin"), ANSWERS)
    batch = np.arange(len(ANSWERS))
    output = outputs(task, batch).detach().numpy()
    right = np.array([int(p.target or 0) for p in ANSWERS])
    lead = output[batch, right] - output[batch, 1 - right]
    # torch's multi-class margin divides by the number of classes.
    expected = np.maximum(0.0, 1.0 - lead).mean() / 2
    assert task.loss(batch)[0].item() == pytest.approx(expected, abs=1e-6)


def test_the_penalty_is_of_all_weights_but_the_words() -> None:
    task = objective(replace(RATED, l2=0.1), toys.RATED)
    squares = {name: (p**2).sum().item() for name, p in task.model.named_parameters()}
    expected = 0.1 * sum(value for name, value in squares.items() if name != "network.embedding.weight")
    loss, parts = task.loss(np.arange(3))
    assert parts["penalty"] == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(parts["fit"] + parts["penalty"], rel=1e-5)


def test_a_batch_is_read_in_an_order_drawn_by_a_generator_that_is_kept() -> None:
    task = objective(replace(RATED, swap=True), toys.RATED)
    batch = np.arange(len(toys.RATED))
    target = sparse_target(torch.tensor([p.target for p in toys.RATED]), torch.tensor(RATINGS_OF_SICK))
    orders = [kl_to_target(outputs(task, batch, swapped=swapped), target).item() for swapped in (False, True)]
    (coin,) = task.generators()
    before = coin.get_state()
    seen = [task.loss(batch)[0].item() for _ in range(12)]
    assert {round(loss, 5) for loss in seen} == {round(loss, 5) for loss in orders}
    coin.set_state(before)
    assert [task.loss(batch)[0].item() for _ in range(12)] == seen


def test_an_epoch_is_every_pair_once_and_pairs_of_like_size_share_a_batch() -> None:
    pairs = toys.pairs(40)
    task = objective(RATED, pairs, batch_size=4)
    batches = list(task.batches(1))
    assert task.steps() == len(batches) == 10
    assert sorted(i for batch in batches for i in batch) == list(range(40))
    area = task.training.area
    spread = np.mean([np.ptp(area[batch]) for batch in batches])
    assert spread < np.ptp(area) / 5
    again, other = list(task.batches(1)), list(task.batches(2))
    assert [b.tolist() for b in again] == [b.tolist() for b in batches]
    assert [b.tolist() for b in other] != [b.tolist() for b in batches]


def test_negatives_are_drawn_anew_each_epoch_from_the_questions_own() -> None:
    task = objective(replace(CHOSEN, negatives=1), ANSWERS)
    epochs = [sorted(i for batch in task.batches(epoch) for i in batch.tolist()) for epoch in range(20)]
    for drawn in epochs:
        assert [i for i in drawn if ANSWERS[i].target] == [1, 4, 5]  # every right answer, once
        wrong = [ANSWERS[i].group for i in drawn if not ANSWERS[i].target]
        assert wrong == ["man", "cat"]  # one for each right one, as far as there are any; no question without
    assert {i for drawn in epochs for i in drawn} == {0, 1, 2, 3, 4, 5, 6}
    assert task.steps() == 2
    everything = objective(CHOSEN, ANSWERS)
    assert sorted(i for batch in everything.batches(0) for i in batch) == list(range(9))


@pytest.mark.parametrize("both_orders", [False, True])
def test_predictions_are_expected_classes_in_the_order_of_the_pairs(both_orders: bool) -> None:
    pairs = toys.pairs(150)  # more than two batches
    data, asked = target_pairs(pairs), model(5, both_orders=both_orders).eval()
    found = predict(asked, data, RATINGS_OF_SICK)
    with torch.no_grad():
        alone = [asked(*data.a.batch(np.array([i])), *data.b.batch(np.array([i]))).numpy() for i in range(150)]
    np.testing.assert_allclose(found, expected_rating(np.concatenate(alone), RATINGS_OF_SICK), atol=1e-5)
    turned = predict(asked, target_pairs([replace(p, a=p.b, b=p.a) for p in pairs]), RATINGS_OF_SICK)
    assert np.allclose(found, turned, atol=1e-5) == both_orders


def test_selection_is_the_figure_that_the_config_names() -> None:
    metrics = objective(CHOSEN, ANSWERS).evaluate()
    assert metrics["selection"] == metrics["mrr"]
    metrics = objective(RATED, toys.RATED).evaluate()
    assert metrics["selection"] == metrics["pearson"]
