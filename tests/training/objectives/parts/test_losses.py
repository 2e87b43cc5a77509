"""Losses against slow plain-Python references and values worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from training.objectives.parts.losses import (
    Negatives,
    cosine_matrix_loss,
    cosine_pair_loss,
    hardest_negatives,
    kl_to_target,
    margin_loss,
    sparse_target,
)

CLASSES = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


def draw(pairs: int, dim: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, pairs, dim, generator=generator, dtype=torch.float64)
    return a, b


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cosine(x: Tensor, y: Tensor) -> float:
    dot = sum(float(p * q) for p, q in zip(x, y, strict=True))
    return dot / math.sqrt(sum(float(p) ** 2 for p in x)) / math.sqrt(sum(float(q) ** 2 for q in y))


def hardest_slowly(side: Tensor, own: int, a: Tensor, b: Tensor) -> int:
    """Index into [a; b] of the sentence closest to `side` that is not of pair `own`, the lower of equals."""
    best, best_cosine = -1, -math.inf
    for i, other in enumerate([*a, *b]):
        if i % len(a) != own and cosine(side, other) > best_cosine:
            best, best_cosine = i, cosine(side, other)
    return best


def test_ties_go_to_the_lower_index() -> None:
    same = torch.eye(3)[[0, 0, 0]]
    t1, t2 = hardest_negatives(same, same, "max", generator())
    assert t1.tolist() == t2.tolist() == [1, 0, 0]
    # a and b swapped in the second pair: the tie is between an a (lower) and a b.
    t1, _ = hardest_negatives(torch.eye(4)[[0, 1, 0]], torch.eye(4)[[0, 0, 2]], "max", generator())
    assert t1.tolist()[0] == 2


@pytest.mark.parametrize("how", ["max", "mix"])
def test_a_negative_never_is_of_the_own_pair(how: Negatives) -> None:
    for pairs in (2, 3, 7):
        for seed in range(30):
            # Equal sentences in a pair: by cosine alone, the own partner would always win.
            a, _ = draw(pairs, seed=seed)
            for chosen in hardest_negatives(normalize(a), normalize(a), how, generator(seed)):
                assert all(int(t) % pairs != i for i, t in enumerate(chosen))
                assert all(0 <= int(t) < 2 * pairs for t in chosen)


def test_mix_takes_half_of_its_negatives_at_random_from_all_others() -> None:
    a, b = (normalize(x) for x in draw(50))
    hardest, _ = hardest_negatives(a, b, "max", generator())
    shared = generator(1)
    chosen = torch.stack([hardest_negatives(a, b, "mix", shared)[0] for _ in range(400)])  # [400, 50]
    random = chosen != hardest
    assert random.float().mean() == pytest.approx(0.5 * 97 / 98, abs=0.01)  # a random one may be the hardest too
    # The random ones spread over both sides of all 49 other pairs.
    of_first = chosen[random[:, 0], 0]
    assert (of_first >= 50).float().mean() == pytest.approx(0.5, abs=0.12)
    assert len(set((of_first % 50).tolist())) > 40


@pytest.mark.parametrize("margin", [0.0, 0.4, 0.8])
def test_margin_loss_is_equation_2(margin: float) -> None:
    a, b = draw(6, seed=3)
    total = 0.0
    for i in range(6):
        t1, t2 = (hardest_slowly(side[i], i, a, b) for side in (a, b))
        everyone = [*a, *b]
        positive = cosine(a[i], b[i])
        total += max(0.0, margin - positive + cosine(a[i], everyone[t1]))
        total += max(0.0, margin - positive + cosine(b[i], everyone[t2]))
    assert float(margin_loss(a, b, margin, "max", generator())) == pytest.approx(total / 6, abs=1e-12)


def test_cosine_matrix_loss_is_the_mean_over_pairs_of_different_sentences() -> None:
    (student, _), (teacher, _) = draw(5, 3, seed=1), draw(5, 6, seed=2)
    squares = [
        (cosine(student[i], student[j]) - cosine(teacher[i], teacher[j])) ** 2
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    assert float(cosine_matrix_loss(student, teacher)) == pytest.approx(sum(squares) / len(squares), abs=1e-12)


def test_cosine_pair_loss_is_the_mean_over_the_pairs_whatever_their_lengths() -> None:
    (a, b), (one, other) = draw(5, 3, seed=1), draw(5, 6, seed=2)
    squares = [(cosine(a[i], b[i]) - cosine(one[i], other[i])) ** 2 for i in range(5)]
    expected = pytest.approx(sum(squares) / 5, abs=1e-12)
    assert float(cosine_pair_loss(a, b, one, other)) == expected
    assert float(cosine_pair_loss(2 * a, 3 * b, 4 * one, 5 * other)) == expected


@given(
    st.lists(st.floats(-4, 9, width=32), min_size=1, max_size=20),
    st.lists(st.integers(-3, 8), min_size=2, max_size=6, unique=True).map(sorted),
)
def test_sparse_target_is_a_distribution_with_the_rating_as_its_mean(ratings: list[float], classes: list[int]) -> None:
    values = torch.tensor(classes, dtype=torch.float32)
    found = sparse_target(torch.tensor(ratings), values)
    assert (found >= 0).all()
    assert torch.allclose(found.sum(1), torch.ones(len(ratings)), atol=1e-6)
    assert ((found > 0).sum(1) <= 2).all()
    clipped = torch.tensor(ratings).clamp(classes[0], classes[-1])
    assert torch.allclose(found @ values, clipped, atol=1e-5)


def test_kl_is_the_mean_over_pairs_in_nats() -> None:
    target = sparse_target(torch.tensor([3.6, 1.0]), CLASSES)
    predicted = torch.tensor([[0.1, 0.2, 0.3, 0.25, 0.15], [0.5, 0.2, 0.1, 0.1, 0.1]])
    by_hand = (0.4 * math.log(0.4 / 0.3) + 0.6 * math.log(0.6 / 0.25) + math.log(1 / 0.5)) / 2
    assert float(kl_to_target(predicted.log(), target)) == pytest.approx(by_hand, abs=1e-6)
    assert float(kl_to_target(predicted.log(), predicted)) == pytest.approx(0.0, abs=1e-6)
