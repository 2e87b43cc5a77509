"""How much of a blended task is the bi-encoder's cosine: chosen on development pairs."""

import logging

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr

from contract.subwords import AnyTokenizer
from training.architectures.transformer import CrossEncoder, SentenceBERT
from training.corpora.readers import stsb
from training.corpora.tasks import answers_of_three_kinds
from training.objectives.metrics import ranked
from training.objectives.tasks import EVALUATION_BATCH, PairTokens, predict
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.families.heads import RAW_RANGE, HeadCalibrations, fit_relevance
from training.publishing.families.siamese import STS_SCALE
from training.publishing.families.transformer import Blend

logger = logging.getLogger(__name__)

Values = npt.NDArray[np.float64]
WEIGHTS = tuple(i / 20 for i in range(21))  # of the cosine in the similarity
MULTIPLES = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0)  # of the cosine in the relevance


def fit_blend(
    model: CrossEncoder, encoder: SentenceBERT, tokenizer: AnyTokenizer, max_tokens: int
) -> tuple[Blend, HeadCalibrations]:
    """The weights of the best development figures, and the calibrations of the blended tasks.

    Similarity: Spearman's correlation on the development part of the STS benchmark. Relevance: the mean over three
    kinds of questions of the mean average precision, and Platt scaling at even odds.

    Args:
        model: with heads for similarity and relevance.
        encoder: the bi-encoder, of the same vocabulary.
        tokenizer: of both.
        max_tokens: of a sentence.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """

    def outputs(task: str, pairs: PairTokens) -> tuple[Values, Values]:
        own = predict(model, pairs)[task][:, 0].astype(np.float64)
        return own, np.maximum(_cosines(encoder, pairs), 0.0)

    rated = stsb.read("dev")
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    own, cosine = outputs("similarity", PairTokens(rated, tokenizer, max_tokens))
    own = 1 / (1 + np.exp(-own))
    found = {weight: float(spearmanr(weight * cosine + (1 - weight) * own, gold).statistic) for weight in WEIGHTS}
    weight = max(found, key=lambda one: found[one])
    logger.info("similarity: %.2f of the cosine; by weight: %s", weight, {w: round(r, 4) for w, r in found.items()})
    similarity = fit_centred_isotonic(
        weight * cosine + (1 - weight) * own, gold, raw_range=RAW_RANGE, target_range=STS_SCALE
    )

    kinds = answers_of_three_kinds()
    parts = [(pairs, *outputs("relevance", PairTokens(pairs, tokenizer, max_tokens))) for pairs in kinds.values()]
    found = {
        multiple: float(
            np.mean(
                [
                    ranked(own + multiple * cosine, [p.label == "1" for p in pairs], [p.group for p in pairs])["map"]
                    for pairs, own, cosine in parts
                ]
            )
        )
        for multiple in MULTIPLES
    }
    multiple = max(found, key=lambda one: found[one])
    logger.info("relevance: %g of the cosine; by multiple: %s", multiple, {m: round(r, 4) for m, r in found.items()})
    relevance = fit_relevance([(own + multiple * cosine, pairs) for pairs, own, cosine in parts])
    return Blend(encoder, weight, multiple), HeadCalibrations(similarity=similarity, relevance=relevance)


@torch.inference_mode()
def _cosines(encoder: SentenceBERT, pairs: PairTokens) -> Values:
    order = pairs.by_length(np.arange(len(pairs)), joined=False)
    found = []
    for start in range(0, len(order), EVALUATION_BATCH):
        a_BS, lengths_a_B, b_BT, lengths_b_B = pairs.batch(order[start : start + EVALUATION_BATCH])
        found.append((encoder(a_BS, lengths_a_B) * encoder(b_BT, lengths_b_B)).sum(dim=1).double().numpy())
    return np.concatenate(found)[np.argsort(order, kind="stable")]
