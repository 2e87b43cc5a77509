"""Losses, penalties and measures against slow plain-Python references and values worked out by hand."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import normalize

from tests.harness import toys
from training.models.kinds import SiameseModel
from training.models.layers import mask
from training.objectives.losses import (
    Negatives,
    cosine_matrix_loss,
    cosine_pair_loss,
    hardest_negatives,
    kl_to_target,
    margin_loss,
    sparse_target,
)
from training.objectives.metrics import calibration_error, graded, ranked
from training.objectives.ordering import SHARPNESS, ordering_loss
from training.objectives.regularisers import Regulariser, RegulariserConfig

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


def test_cosine_losses_are_means_over_pairs_of_different_sentences() -> None:
    (student, _), (teacher, _) = draw(5, 3, seed=1), draw(5, 6, seed=2)
    pairs = permutations(range(5), 2)
    squares = [(cosine(student[i], student[j]) - cosine(teacher[i], teacher[j])) ** 2 for i, j in pairs]
    assert float(cosine_matrix_loss(student, teacher)) == pytest.approx(sum(squares) / len(squares), abs=1e-12)

    # That of pairs is the mean over them, whatever their lengths.
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


def ordering_by_hand(scores: list[float], targets: list[float], groups: list[int]) -> float:
    found = [
        math.log1p(math.exp(SHARPNESS * (scores[j] - scores[i])))
        for i, j in permutations(range(len(scores)), 2)
        if targets[i] > targets[j] and groups[i] == groups[j]
    ]
    return sum(found) / len(found)


def test_the_loss_is_the_mean_over_every_two_pairs() -> None:
    scores, targets, groups = [0.1, 0.4, 0.3, -0.2], [1.0, 0.0, 2.5, 1.0], [0, 0, 1, 1]
    given = torch.tensor(scores, dtype=torch.float64), torch.tensor(targets)
    assert float(ordering_loss(*given)) == pytest.approx(ordering_by_hand(scores, targets, [0] * 4))
    assert float(ordering_loss(*given, torch.tensor(groups))) == pytest.approx(
        ordering_by_hand(scores, targets, groups)
    )

    # Pairs that cannot be compared cost nothing.
    scores = torch.tensor([-0.25, 0.25], requires_grad=True)  # whose sum is 0
    loss = ordering_loss(scores, torch.tensor([1.0, 0.0]), torch.tensor([0, 1]))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert scores.grad is not None
    assert scores.grad.tolist() == [0.0, 0.0]


def test_graded_by_hand() -> None:
    # x deviates (-1.5, -0.5, 0.5, 1.5), y (-1.5, 0.5, -0.5, 1.5): r = 4 / 5, and the values are their own ranks.
    found = graded([1, 2, 3, 4], [1, 3, 2, 4])
    assert found == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})


@pytest.mark.parametrize(("predicted", "gold"), [([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([1], [2])])
def test_a_constant_has_no_correlation_and_gets_zero(predicted: list[float], gold: list[float]) -> None:
    found = graded(predicted, gold)
    assert (found["pearson"], found["spearman"]) == (0.0, 0.0)
    assert found["mse"] == pytest.approx(np.mean((np.array(predicted) - np.array(gold)) ** 2))


def test_ranked_by_hand() -> None:
    # First question: right answers at ranks 1 and 3, AP (1/1 + 2/3) / 2. Second: rank 2, AP and RR 1/2.
    scores = [0.9, 0.5, 0.7, 0.2, 0.1, 0.3]
    relevant = [True, True, False, False, True, False]
    questions = ["a", "a", "a", "b", "b", "b"]
    scores[4] = 0.25
    found = ranked(scores, relevant, questions)
    assert found == pytest.approx({"map": ((1 + 2 / 3) / 2 + 1 / 2) / 2, "mrr": (1 + 1 / 2) / 2, "questions": 2.0})


def test_a_question_without_a_right_answer_counts_nowhere() -> None:
    with_it = ranked([3, 2, 1, 9, 8], [False, True, False, False, False], ["a", "a", "a", "b", "b"])
    assert with_it == ranked([3, 2, 1], [False, True, False], ["a"] * 3)
    assert with_it["questions"] == 1
    with pytest.raises(ValueError, match="no question has a relevant candidate"):
        ranked([1.0], [False], ["a"])


def test_calibration_error_by_hand() -> None:
    # Bin 0.9..1: said 0.9 and 1, right once of two: off by 0.45. Bin 0.6..0.7: said 0.65, right: off by 0.35.
    assert calibration_error([0.9, 1.0, 0.65], [True, False, True]) == pytest.approx((2 * 0.45 + 0.35) / 3)
    assert calibration_error([1.0, 1.0], [True, True]) == 0.0


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
