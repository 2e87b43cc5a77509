"""Losses, as pure functions. Shapes: B pairs, D dimensions, K classes."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

Negatives = Literal["max", "mix"]


def hardest_negatives(a_BD: Tensor, b_BD: Tensor, how: Negatives, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """In-batch negatives t1, t2 for a margin loss: rows of the 2B sentences [a; b], never the sentence's own pair.

    MAX takes the sentence closest to x1 (to x2); MIX takes MAX or a random one, half and half (Wieting et al.
    2016, section 3.2). Ties go to the lower index. Embeddings are unit rows; no gradient flows through the choice.

    Returns:
        indices int64 [B], [B] into torch.cat([a, b]).
    """
    with torch.no_grad():
        everyone = torch.cat([a_BD, b_BD])
        pairs = len(a_BD)
        own = torch.eye(pairs, dtype=torch.bool, device=a_BD.device).repeat(1, 2)
        chosen = []
        for side in (a_BD, b_BD):
            hardest = (side @ everyone.T).masked_fill(own, -torch.inf).argmax(dim=1)
            if how == "mix":
                # A shift of 1..B-1 never gives the own pair, on either side.
                shift = torch.randint(1, max(pairs, 2), (pairs,), generator=generator)
                side_of = torch.randint(0, 2, (pairs,), generator=generator) * pairs
                random = ((torch.arange(pairs) + shift) % pairs + side_of).to(hardest.device)
                coin = (torch.rand(pairs, generator=generator) < 0.5).to(hardest.device)
                hardest = torch.where(coin, hardest, random)
            chosen.append(hardest)
    return chosen[0], chosen[1]


def margin_loss(a_BD: Tensor, b_BD: Tensor, margin: float, how: Negatives, generator: torch.Generator) -> Tensor:
    """Mean over pairs of max(0, d - cos(x1,x2) + cos(x1,t1)) + max(0, d - cos(x1,x2) + cos(x2,t2)).

    Wieting et al. (2016), eq. 1, first term. Needs at least 2 pairs, because negatives come from other pairs.
    """
    a, b = normalize(a_BD, dim=1), normalize(b_BD, dim=1)
    t1, t2 = hardest_negatives(a.detach(), b.detach(), how, generator)
    everyone = torch.cat([a, b])
    positive = (a * b).sum(1)
    first = (margin - positive + (a * everyone[t1]).sum(1)).clamp(min=0)
    second = (margin - positive + (b * everyone[t2]).sum(1)).clamp(min=0)
    return (first + second).mean()


def cosine_matrix_loss(student_BD: Tensor, teacher_BE: Tensor) -> Tensor:
    """Mean squared difference of the two in-batch cosine matrices, diagonal left out (not from a paper)."""
    student, teacher = normalize(student_BD, dim=1), normalize(teacher_BE, dim=1)
    difference = student @ student.T - teacher @ teacher.T
    size = len(difference)
    return (difference**2).sum() / max(size * (size - 1), 1)  # both diagonals are 1, so their difference is 0


def cosine_pair_loss(student_a_BD: Tensor, student_b_BD: Tensor, teacher_a_BE: Tensor, teacher_b_BE: Tensor) -> Tensor:
    """Mean squared difference of the cosines of B pairs to the teacher's (not from a paper)."""
    student = (normalize(student_a_BD, dim=1) * normalize(student_b_BD, dim=1)).sum(dim=1)
    teacher = (normalize(teacher_a_BE, dim=1) * normalize(teacher_b_BE, dim=1)).sum(dim=1)
    return ((student - teacher) ** 2).mean()


def total_of(parts: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
    """The sum of the terms of a loss, and their values for the log."""
    return torch.stack(list(parts.values())).sum(), {name: float(part.detach()) for name, part in parts.items()}


def sparse_target(ratings_B: Tensor, classes_K: Tensor) -> Tensor:
    """Distribution over rising classes whose expectation is the rating (Tai et al. 2015, eq. 16): [B] -> [B, K].

    A rating between two neighbouring classes splits its mass linearly between them; classes are one unit apart
    in the paper, any rising values here.
    """
    clipped = ratings_B.clamp(float(classes_K[0]), float(classes_K[-1]))
    upper = torch.searchsorted(classes_K, clipped).clamp(1, len(classes_K) - 1)
    low, high = classes_K[upper - 1], classes_K[upper]
    share = (clipped - low) / (high - low)
    target = torch.zeros(len(ratings_B), len(classes_K), dtype=classes_K.dtype, device=ratings_B.device)
    rows = torch.arange(len(ratings_B), device=ratings_B.device)
    target[rows, upper - 1] = 1 - share
    target[rows, upper] = share
    return target


def kl_to_target(log_probabilities_BK: Tensor, target_BK: Tensor) -> Tensor:
    """Mean over pairs of KL(target || predicted) (Tai et al. 2015, eq. 17), in nats."""
    return torch.nn.functional.kl_div(log_probabilities_BK, target_BK, reduction="batchmean")
