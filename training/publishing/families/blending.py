"""How much of a blended similarity is the bi-encoder's cosine: chosen on the development part of the STS benchmark."""

import logging

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr

from contract.calibration import Calibration
from training.architectures.transformer import CrossEncoder, SentenceBERT
from training.corpora.readers import stsb
from training.objectives.tasks import EVALUATION_BATCH, Encodes, PairTokens, predict
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.families.heads import RAW_RANGE
from training.publishing.families.siamese import STS_SCALE
from training.publishing.families.transformer import Blend

logger = logging.getLogger(__name__)

WEIGHTS = tuple(i / 20 for i in range(21))


def fit_blend(
    model: CrossEncoder, encoder: SentenceBERT, tokenizer: Encodes, max_tokens: int
) -> tuple[Blend, Calibration]:
    """The weight of the best Spearman correlation, and the calibration of the blended score.

    Args:
        model: with a head for the similarity.
        encoder: the bi-encoder, of the same vocabulary.
        tokenizer: of both.
        max_tokens: of a sentence.

    Raises:
        CorpusError: the corpus is missing or malformed.
    """
    rated = stsb.read("dev")
    pairs = PairTokens(rated, tokenizer, max_tokens)
    own = 1 / (1 + np.exp(-predict(model, pairs)["similarity"][:, 0].astype(np.float64)))
    cosine = np.maximum(_cosines(encoder, pairs), 0.0)
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    found = {weight: float(spearmanr(weight * cosine + (1 - weight) * own, gold).statistic) for weight in WEIGHTS}
    weight = max(found, key=lambda one: found[one])
    logger.info("similarity: %.2f of the cosine; by weight: %s", weight, {w: round(r, 4) for w, r in found.items()})
    raw = weight * cosine + (1 - weight) * own
    return Blend(encoder, weight), fit_centred_isotonic(raw, gold, raw_range=RAW_RANGE, target_range=STS_SCALE)


@torch.inference_mode()
def _cosines(encoder: SentenceBERT, pairs: PairTokens) -> npt.NDArray[np.float64]:
    order = pairs.by_length(np.arange(len(pairs)), joined=False)
    found = []
    for start in range(0, len(order), EVALUATION_BATCH):
        a_BS, lengths_a_B, b_BT, lengths_b_B = pairs.batch(order[start : start + EVALUATION_BATCH])
        found.append((encoder(a_BS, lengths_a_B) * encoder(b_BT, lengths_b_B)).sum(dim=1).double().numpy())
    return np.concatenate(found)[np.argsort(order, kind="stable")]
