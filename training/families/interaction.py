"""Interaction models: a network that reads both sentences together, and answers with probabilities of classes."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from core.golden import GOLDEN_TEXTS
from core.golden import TOLERANCE as GOLDEN_TOLERANCE
from core.manifest import ExplanationGraph, Limits, SimilarityTask
from core.sequences import pad
from core.subwords import AnyTokenizer
from core.tokenizer import Tokenizer
from training.data.words.storage import shrink
from training.families.words import TOKENIZER, WordFamily, arrays_of, embedding, write_words
from training.models import MGIM, PWIM, InteractionConfig, InteractionNetwork, PWIMConfig, build_interaction
from training.models.kinds import InteractionModel
from training.models.layers import WordEmbedding
from training.objectives.pairwise import EVALUATION_BATCH, YES_OR_NO, PairwiseConfig, PairwiseObjective, TargetPairs
from training.publish.export import export_explanation, export_pair
from training.publish.parity import check_explanation, check_pair, moved_by_rounding
from training.recipes.recipe import Publication
from training.train.family import ModelFamily
from training.train.folder import weights_of

logger = logging.getLogger(__name__)

PAIR, EXPLANATION = "pair.onnx", "explanation.onnx"


@dataclass(frozen=True)
class InteractionFamily(WordFamily[InteractionModel]):
    """A run that learns classes of pairs: ratings, or yes and no."""

    architecture: InteractionConfig
    config: PairwiseConfig

    def initial_model(self) -> InteractionModel:
        """A network around the words."""
        rows = self.rows()
        torch.manual_seed(self.seed)
        network = build_interaction(self.architecture, WordEmbedding(rows), len(self.config.classes))
        mark_numbers(network, self.table.tokenizer)
        return InteractionModel(network, both_orders=self.config.both_orders)

    def initialise_from(self, start: ModelFamily[Any], model: InteractionModel) -> None:
        """Copy the weights that have the same name and shape; an output of other classes starts anew.

        Raises:
            ValueError: nothing but the words fits.
        """
        weights = weights_of(start.recipe, start.runs, start.seed)
        found = torch.load(weights, weights_only=True, map_location="cpu")
        own = model.state_dict()
        fitting = {name: value for name, value in found.items() if name in own and own[name].shape == value.shape}
        if set(fitting) <= {"network.embedding.weight"}:
            raise ValueError(f"{weights} holds another architecture")
        model.load_state_dict(fitting, strict=False)
        model.embedding.start.copy_(model.embedding.weight.detach())

    def objective(self, model: InteractionModel, teacher: Path | None) -> PairwiseObjective:
        """The pairs and their targets; a network that counts shared words begins at a regression on them."""
        training, held_out = (
            TargetPairs(pairs, self.table.tokenizer, self.recipe.max_tokens) for pairs in self.data(teacher)
        )
        begin_at_regression(model, training)
        return PairwiseObjective(model, training, held_out, self.config, self.recipe.schedule.batch_size, self.seed)

    def export(self, publication: Publication, folder: Path) -> dict[str, Any]:
        """The graph of the answer, and that of the matrices that explain it."""
        model, classes = self.load(), self.config.classes
        words, factor = self.words_of(model)
        if publication.keep_words is not None:
            words = shrink(words, publication.keep_words, [])
        network = model.network
        assert isinstance(network, PWIM | MGIM)
        network.embedding = embedding(words, publication.storage, factor)
        mark_numbers(network, words.tokenizer)  # of a shorter vocabulary perhaps
        limit = self.architecture.limit if isinstance(self.architecture, PWIMConfig) else publication.max_tokens
        scale = (classes[0], classes[-1])
        similarity = SimilarityTask(
            graph=PAIR,
            classes=classes,
            raw_range=scale,
            label_scale=None if classes == YES_OR_NO else scale,
            symmetric=self.config.both_orders,
        )
        written = write_graphs(model, network, words.tokenizer, folder, publication.model_id, limit)
        return {"limits": Limits(max_tokens=limit), "similarity": similarity, **written}

    def golden_texts(self, max_tokens: int) -> list[tuple[str, str]]:
        """Those whose score does not depend on rounding."""
        return steady_texts(self.load(), self.table.tokenizer, max_tokens)


def mark_numbers(network: nn.Module, tokenizer: Tokenizer) -> None:
    """Tell an MGIM that counts shared numbers which ids of the vocabulary have a digit."""
    if isinstance(network, MGIM) and network.config.shared_words:
        words = [tokenizer.token(i) for i in range(len(tokenizer))]  # a bucket of unknown words is "<bucket 7>"
        network.mark_numbers([not word.startswith("<") and any(c.isdigit() for c in word) for word in words])


@torch.no_grad()
def begin_at_regression(model: InteractionModel, pairs: TargetPairs) -> None:
    """Fit the weights of a network's counts on training pairs, read in both orders; its other outputs begin at 0.

    Epoch 0 of an MGIM that counts shared words is this logistic regression, and training adds what it finds beyond.
    """
    network = model.network
    if not isinstance(network, MGIM) or network.counts is None:
        return
    counts, output = network.counts, network.output
    counts.weight.zero_()
    counts.bias.zero_()
    network.eval()
    found, target = [], []
    for start in range(0, len(pairs), EVALUATION_BATCH):
        batch = np.arange(start, min(start + EVALUATION_BATCH, len(pairs)))
        left, right = pairs.a.batch(batch), pairs.b.batch(batch)
        for pair in ((*left, *right), (*right, *left)):
            found.append(network.counted(*pair))
            target.append(pairs.target[batch] > 0.5)
    values_NC = torch.cat(found).double().numpy()
    scaler = StandardScaler().fit(values_NC)
    fitted = LogisticRegression(max_iter=1_000).fit(scaler.transform(values_NC), np.concatenate(target))
    weights_C = fitted.coef_[0] / scaler.scale_
    bias = float(fitted.intercept_[0] - weights_C @ scaler.mean_)
    half = torch.tensor([[-0.5], [0.5]], device=output.weight.device)  # of the log odds: less for no, more for yes
    counts.weight.copy_(half * torch.from_numpy(weights_C).to(half))
    counts.bias.copy_(half[:, 0] * bias)
    output.weight.zero_()


def write_graphs(
    model: nn.Module, network: InteractionNetwork, tokenizer: AnyTokenizer, folder: Path, model_id: str, limit: int
) -> dict[str, Any]:
    """Export a model around its words as they are stored, which go among the shared files beside the folder.

    Args:
        model: of pairs, whose part `network` it is.
        network: with the words, and matrices to show unless it has none.
        tokenizer: of its words.
        folder: of the model.
        model_id: what the graphs say of themselves.
        limit: most tokens of a sentence.

    Returns:
        Manifest fields, without those of the tasks; `shared`: entries of shared files.

    Raises:
        ParityError, GraphMismatchError: an exported graph differs from its module.
    """
    assert isinstance(network.embedding, nn.Module)
    arrays = arrays_of(network.embedding, "network.embedding")
    export_pair(model, folder / PAIR, model_id, list(arrays))
    found = {PAIR: check_pair(folder / PAIR, model, len(tokenizer), limit, arrays)}
    if explains := not isinstance(network, MGIM) or network.attention is not None:
        export_explanation(network, folder / EXPLANATION, model_id, list(arrays))
        found[EXPLANATION] = check_explanation(folder / EXPLANATION, network, len(tokenizer), limit, arrays)
    for graph, agreement in found.items():
        logger.info("%s/%s equals its module to %.1e, but for %d near ties among %d pairs", model_id, graph, *agreement)
    return {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "explanation": ExplanationGraph(graph=EXPLANATION, matrices=network.MATRICES) if explains else None,
        **write_words(arrays, tokenizer, folder)._asdict(),
    }


def steady_texts(model: nn.Module, tokenizer: AnyTokenizer, limit: int) -> list[tuple[str, str]]:
    """The golden texts whose answers do not depend on rounding errors, which may differ between machines."""
    return [texts for texts in GOLDEN_TEXTS if not hangs_on_rounding(model, tokenizer, limit, texts)]


def hangs_on_rounding(model: nn.Module, tokenizer: AnyTokenizer, limit: int, texts: Sequence[str]) -> bool:
    """Whether the score of a pair of texts depends on rounding errors."""
    feeds = {}
    for side, text in zip("ab", texts, strict=True):
        feeds[f"input_ids_{side}"], feeds[f"lengths_{side}"] = pad([tokenizer.encode(text, limit).ids])
    # The noise is some tens of times larger than rounding errors, and so is its effect on a continuous score.
    return moved_by_rounding(model.eval(), feeds) > 10 * GOLDEN_TOLERANCE
