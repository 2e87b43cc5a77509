"""Explanations of a score: the model's own matrices, exact shares of tokens, and the score without each token.

Explanations do not use the caches: no client sends sentences without a word, and cached vectors may be rounded to
float16, so that shares would not sum to the score.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.manifest import Manifest
from core.scoring import Floats, round_significant, rounded
from core.tokenizer import Encoded
from service.engine.admission import RequestContext
from service.errors import Overloaded, TooSlow
from service.schemas import Answer, ExplainResponse
from service.scoring.scorer import Scorer

_SHARES = "contributions"
_SHARES_OF_TOKENS = "the token's exact share of raw_score: the shares of a sum to it, and so do those of b"
_SHARES_OF_PAIRS = "the pair of tokens' exact share of raw_score: all cells sum to it"
_DELETION = "raw_score minus the raw score without the token; null for the only token of a sentence"


async def explain(context: RequestContext, scorer: Scorer, a: Encoded, b: Encoded) -> ExplainResponse:
    """Explain one pair. The model must have a similarity.

    Raises:
        InferenceFailed: a graph raised, or gave a number that is not finite.
        Overloaded, TooSlow: it would not end in time; says how many tokens of the longer text would.
    """
    without_a, without_b = deletions(a), deletions(b)
    left = [a, *without_a, *[a] * len(without_b)]
    right = [b, *[b] * len(without_a), *without_b]
    try:
        raw, ratings, scores = await scorer.similarity(context, left, right, cached=False)
    except (Overloaded, TooSlow) as error:
        field, longer = ("a", a) if len(a.ids) >= len(b.ids) else ("b", b)
        raise error.of(field, len(longer.ids), "tokens") from None
    changes: list[float | None] = [round_significant(raw[0] - without) for without in raw[1:]]
    task = scorer.manifest.similarity
    assert task is not None, "the registry lets no model be asked what it cannot do"
    width = task.raw_range[1] - task.raw_range[0]
    matrices: list[Answer] = []
    vectors: list[Answer] = []
    if scorer.manifest.explanation is not None:
        values = await scorer.matrices(context, a, b)
        for matrix, of_matrix in zip(scorer.manifest.explanation.matrices, rounded(values).tolist(), strict=True):
            described = {"name": matrix.name, "description": matrix.description, "values": of_matrix}
            matrices.append({**described, "range": matrix.range})
    if _has_shares(scorer.manifest):
        shares = contributions(await scorer.embed_tokens(context, a), await scorer.embed_tokens(context, b))
        matrices.append({"name": _SHARES, "description": _SHARES_OF_PAIRS, "values": rounded(shares.pairs).tolist()})
        vectors.append(
            {
                "name": _SHARES,
                "description": _SHARES_OF_TOKENS,
                "a": rounded(shares.a).tolist(),
                "b": rounded(shares.b).tolist(),
            }
        )
    vectors.append(
        {
            "name": "deletion",
            "description": _DELETION,
            "range": (-width, width),
            "a": changes[: len(without_a)] or [None],
            "b": changes[len(without_a) :] or [None],
        }
    )
    answer: ExplainResponse = {
        "model": scorer.id,
        "score": scores[0],
        "raw_score": raw[0],
        "a": {"tokens": scorer.tokens(a), "truncated": a.truncated},
        "b": {"tokens": scorer.tokens(b), "truncated": b.truncated},
        "matrices": matrices,
        "vectors": vectors,
    }
    if ratings is not None and task.label_scale is not None:
        answer["rating"] = ratings[0]
        answer["rating_scale"] = task.label_scale
    return answer


def deletions(sentence: Encoded) -> list[Encoded]:
    """The sentence without its first token, without its second, and so on; empty for a single token."""
    ids = sentence.ids
    return [sentence._replace(ids=ids[:i] + ids[i + 1 :]) for i in range(len(ids))] if len(ids) > 1 else []


def explanation_names(manifest: Manifest) -> Answer:
    """The names of the matrices and vectors in explanations by this model."""
    matrices: list[str] = []
    vectors: list[str] = []
    if manifest.similarity is not None:
        if manifest.explanation is not None:
            matrices += [matrix.name for matrix in manifest.explanation.matrices]
        if _has_shares(manifest):
            matrices.append(_SHARES)
            vectors.append(_SHARES)
        vectors.append("deletion")
    return {"matrices": matrices, "vectors": vectors}


def _has_shares(manifest: Manifest) -> bool:
    """Whether the score is a cosine of means, and so a sum over tokens."""
    a_mean = manifest.additive or manifest.token_embeddings is not None
    return a_mean and manifest.similarity is not None and manifest.similarity.comparison == "cosine"


class Contributions(NamedTuple):
    """Shares of the cosine of two sentences; the shares of a, of b and of the pairs of tokens each sum to it."""

    a: Floats  # [n], of each token of a
    b: Floats  # [m], of each token of b
    pairs: Floats  # [n, m], of each token of a with each token of b


def contributions(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating]) -> Contributions:
    """Decompose a cosine of means, a = 1/n sum x_i and b = 1/m sum y_j:

    cos(a, b) = sum_i (x_i . b) / (n |a| |b|) = sum_j (a . y_j) / (m |a| |b|) = sum_ij (x_i . y_j) / (n m |a| |b|).

    Args:
        x: embeddings [n, d] of the tokens of the first sentence.
        y: embeddings [m, d] of the tokens of the second.

    Returns:
        The terms of the three sums, in float64; zeros if a mean is all zeros.
    """
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    a, b = x64.mean(axis=0), y64.mean(axis=0)
    norm = float(np.sqrt((a @ a) * (b @ b))) or math.inf
    n, m = len(x64), len(y64)
    return Contributions(x64 @ b / (n * norm), y64 @ a / (m * norm), x64 @ y64.T / (n * m * norm))
