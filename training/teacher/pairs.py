"""Pairs of sentences rated by a teacher on SICK's scale, for pre-training. Not from a paper.

A sentence-transformer, fine-tuned on SICK train (`training.teacher.tuning`), encodes the sentences. Every sentence is
paired mostly with near neighbours, because two random sentences are nearly always unrelated. The teacher's rating of a
pair is its target; its probabilities of the entailment labels, if it was trained on them, are its `label_odds`. Pairs
of SICK's trial and test parts are left out.

Shapes: S sentences, E dimensions of the teacher, B pairs of a batch.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from core.files import replacing
from core.scoring import expected_rating
from core.text import split_words
from training.data.leakage import pair_key
from training.data.pairs import Pair
from training.objectives.batches import Indices
from training.objectives.supervised import LABELS
from training.teacher.encoder import TextEncoder, encode_cached
from training.teacher.tuning import CLASSES, DEFAULT_TUNING, SCALE, TuningConfig

logger = logging.getLogger(__name__)

SHORTEST, LONGEST = 4, 14  # words of a caption: as long as SICK's sentences
NEIGHBOURS, FAR_NEIGHBOURS = 30, 400

Encodings = npt.NDArray[np.float16]
Ratings = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PairsConfig:
    """Sentences to pair, partners of each, and settings of the teacher's fine-tuning."""

    captions: int = 40_000  # captions of 4 to 14 words beside the sentences of SICK train
    in_domain: int = 60  # partners of each sentence of SICK, among its sentences
    general: int = 4  # partners of each caption, among captions
    tuning: TuningConfig = DEFAULT_TUNING  # of the teacher, on SICK train
    seed: int = 0


def teacher_pairs(
    config: PairsConfig,
    rated: Sequence[Pair],
    unwanted: Sequence[Pair],
    captions: Sequence[str],
    teacher: TextEncoder,
    heads: tuple[nn.Module, nn.Module | None],
    cache: Path,
) -> list[Pair]:
    """The pairs, with `target` in 1..5, and `label_odds` if the teacher has an entailment head.

    Args:
        config: how many.
        rated: SICK train, whose sentences are in the pairs.
        unwanted: pairs to leave out, in either order; pairs of `rated` are left out too.
        captions: other sentences; those of 4 to 14 words are used, the first ones of them.
        teacher: encodes the sentences.
        heads: of pairs of its encodings, [B, E], [B, E] -> log-probabilities of the ratings [B, 5], and of the
            entailment labels [B, 3], or None.
        cache: folder where encodings, ratings and odds are kept.

    Raises:
        ValueError: fewer fitting captions than the config asks for.
    """
    domain = sorted({text for pair in rated for text in (pair.a, pair.b)})
    fitting = [text for text in captions if SHORTEST <= len(split_words(text)) <= LONGEST][: config.captions]
    if len(fitting) < config.captions:
        raise ValueError(
            f"{config.captions} captions of {SHORTEST}..{LONGEST} words asked for, there are {len(fitting)}"
        )
    texts = [*domain, *fitting]
    forbidden = sorted({pair_key(pair.a, pair.b) for pair in (*rated, *unwanted)})
    inputs = json.dumps([teacher.name, asdict(config), texts, forbidden])
    path = cache / f"pairs-{hashlib.sha256(inputs.encode('utf-8', 'replace')).hexdigest()[:16]}.npz"
    if not path.is_file():
        encodings = encode_cached(teacher, texts, cache, what="sentences to pair")
        rng = np.random.default_rng(config.seed)
        chosen = partners(encodings[: len(domain)], config.in_domain, rng)
        if fitting:
            outside = partners(encodings[len(domain) :], config.general, rng) + len(domain)
            chosen = np.concatenate([chosen, outside])
        keys = set(forbidden)
        chosen = chosen[[pair_key(texts[i], texts[j]) not in keys for i, j in chosen]]
        rates, labels = heads
        answers = {"rating": rate(rates, encodings, chosen)}
        if labels is not None:
            answers["odds"] = np.exp(_log_probabilities(labels, encodings, chosen))
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, allow_pickle=False, pairs=chosen, **answers)
    with np.load(path, allow_pickle=False) as saved:
        chosen, rating = saved["pairs"], saved["rating"]
        odds = saved["odds"] if heads[1] is not None else None
    quantiles = ", ".join(f"{q:.2f}" for q in np.quantile(rating, (0.05, 0.25, 0.5, 0.75, 0.95)))
    logger.info("%d pairs rated by %s, quantiles %s", len(chosen), teacher.name, quantiles)
    if odds is not None:
        shares = zip(LABELS, odds.mean(axis=0), strict=True)
        logger.info("labelled too: %s", ", ".join(f"{label} {share:.3f}" for label, share in shares))
    label_odds = [None] * len(chosen) if odds is None else map(tuple, odds.tolist())
    rows = zip(chosen.tolist(), rating.tolist(), label_odds, strict=True)
    return [Pair(texts[i], texts[j], float(r), label_odds=label) for (i, j), r, label in rows]


def rate(head: nn.Module, encodings: Encodings, pairs: Indices) -> Ratings:
    """Expected ratings, float32 [n], of pairs of rows of the encodings [S, E]."""
    output = _log_probabilities(head, encodings, pairs)
    # Rounding could give a rating outside the scale.
    return expected_rating(output, CLASSES).clip(CLASSES[0], CLASSES[-1]).astype(np.float32)


@torch.no_grad()
def _log_probabilities(head: nn.Module, encodings: Encodings, pairs: Indices) -> npt.NDArray[np.float32]:
    vectors = _unit(encodings) * SCALE
    blocks = (torch.from_numpy(pairs[start : start + 16384]) for start in range(0, len(pairs), 16384))
    output: npt.NDArray[np.float32] = torch.cat(
        [head(vectors[block[:, 0]], vectors[block[:, 1]]) for block in blocks]
    ).numpy()
    return output


def _unit(encodings: Encodings) -> Tensor:
    return nn.functional.normalize(torch.from_numpy(encodings.astype(np.float32)), dim=1)


def partners(encodings: Encodings, count: int, rng: np.random.Generator) -> Indices:
    """Pairs of sentences to rate: int64 [about S * count, 2], each unordered pair once, i < j.

    Of the `count` partners of a sentence three quarters are near (the 30 of highest cosine), a fifth less near (31st to
    400th), the others random.
    """
    vectors = _unit(encodings)
    size = len(vectors)
    furthest = min(FAR_NEIGHBOURS, size - 1)
    found = []
    for start in range(0, size, 512):
        cosines = vectors[start : start + 512] @ vectors.T
        rows = np.arange(start, start + len(cosines))
        cosines[np.arange(len(rows)), rows] = -2.0  # exclude the sentence itself
        ranked = cosines.topk(furthest, dim=1).indices.numpy()
        draw = rng.random((len(rows), count))
        near = rng.integers(0, min(NEIGHBOURS, furthest), draw.shape)
        far = rng.integers(min(NEIGHBOURS, furthest - 1), furthest, draw.shape)
        anyone = rng.integers(0, size, draw.shape)
        rank = np.where(draw < 0.75, near, far)
        partner = np.where(draw < 0.95, np.take_along_axis(ranked, rank, axis=1), anyone)
        found.append(np.stack([np.repeat(rows, count), partner.ravel()], axis=1))
    pairs = np.sort(np.concatenate(found), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
