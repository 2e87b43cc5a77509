"""Siamese models: one encoder for both sentences, heads over its embeddings, or their cosine calibrated to ratings."""

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.graph import CLASSIFIER
from core.manifest import ClassificationTask, EntailmentTask, Limits, Manifest, SimilarityTask
from core.scoring import Calibration
from core.subwords import AnyTokenizer
from core.text import split_words
from training.data.pairs import Pair
from training.data.readers import sst, sts
from training.data.words.storage import shrink
from training.data.words.unseen import map_unseen
from training.families.words import TOKENIZER, WordFamily, arrays_of, embedding, write_words
from training.models import GRAN, ArchitectureConfig, build_encoder
from training.models.heads import PairHead, SentenceHead
from training.models.kinds import SiameseModel, output_dim
from training.models.layers import WordEmbedding
from training.objectives.batches import Sentences
from training.objectives.development import GradedSets
from training.objectives.objective import Objective
from training.objectives.sentiment import HEAD as SENTIMENT
from training.objectives.sentiment import LabelledSentences, SentimentConfig, SentimentObjective
from training.objectives.supervised import LABELS, LabelledPairs, SupervisedConfig, SupervisedObjective
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective
from training.objectives.transfer import MarginConfig, MarginObjective
from training.publish.calibrate import Floats, fit_centred_isotonic, fit_temperature
from training.publish.export import export_encoder, export_head, export_tokens
from training.publish.parity import check_encoder, check_head, check_tokens
from training.publish.runtime import PublishedModel
from training.recipes.recipe import Publication
from training.recipes.sources.labelled import SSTSentences
from training.train.family import ModelFamily
from training.train.folder import WEIGHTS_NAME

logger = logging.getLogger(__name__)

ENCODER, TOKENS, SIMILARITY, ENTAILMENT = "encoder.onnx", "tokens.onnx", "similarity.onnx", "entailment.onnx"
CLASSIFICATION = "classification.onnx"
STS_SCALE = (0.0, 5.0)


@dataclass(frozen=True)
class SiameseFamily(WordFamily[SiameseModel]):
    """A run that learns the cosine of two embeddings, or heads over them."""

    architecture: ArchitectureConfig

    def initial_model(self) -> SiameseModel:
        """An encoder around the words, and the heads of the objective."""
        rows = self.rows()
        torch.manual_seed(self.seed)
        encoder = build_encoder(self.architecture, WordEmbedding(rows))
        return SiameseModel(encoder, self.heads(output_dim(encoder)), self.recipe.precision)

    @property
    def sentiment_labels(self) -> tuple[str, ...]:
        """The labels of sentences that the recipe's data has."""
        assert isinstance(self.recipe.data, SSTSentences), "labels of sentences are those of SST"
        return sst.LABELS[self.recipe.data.labels]

    def heads(self, dim: int) -> dict[str, PairHead | SentenceHead]:
        """By task, over embeddings of width `dim`; none where the cosine is learnt."""
        heads: dict[str, PairHead | SentenceHead] = {}
        match self.recipe.objective:
            case SupervisedConfig() as config:
                if config.classes:
                    heads["similarity"] = PairHead(dim, len(config.classes), config.hidden)
                if config.entailment_weight > 0:
                    heads["entailment"] = PairHead(dim, len(LABELS), config.hidden, directed=config.directed)
            case SentimentConfig() as config:
                heads[SENTIMENT] = SentenceHead(dim, len(self.sentiment_labels), config.hidden)
        return heads

    def initialise_from(self, start: ModelFamily[Any], model: SiameseModel) -> None:
        """Initialise by a trained run: its encoder if the architecture is the same, else its word vectors only.

        Heads that both have are copied too. If the run with this seed has no weights, that of seed 1 is taken.
        """
        trained = (start if (start.folder / WEIGHTS_NAME).is_file() else replace(start, seed=1)).load()
        if type(trained.encoder) is type(model.encoder):
            model.encoder.load_state_dict(trained.encoder.state_dict())
            for task, head in model.heads.items():
                if task in trained.heads and type(trained.heads[task]) is type(head):
                    head.load_state_dict(trained.heads[task].state_dict())
        else:
            with torch.no_grad():
                model.embedding.weight.copy_(trained.embedding.weight)
        model.embedding.start.copy_(model.embedding.weight.detach())

    def objective(self, model: SiameseModel, teacher: Path | None) -> Objective:
        """The objective that the recipe describes."""
        train, dev = self.data(teacher)
        tokenizer, limit, batch_size = self.table.tokenizer, self.recipe.max_tokens, self.recipe.schedule.batch_size
        match self.recipe.objective:
            case TeacherCosineConfig() as config:
                texts, targets = train
                sentences, sets = Sentences(texts, tokenizer, limit), GradedSets(dev, tokenizer, limit)
                return TeacherCosineObjective(model, sentences, targets, sets, config, batch_size, self.seed)
            case MarginConfig() as config:
                readable = [pair for pair in train if split_words(pair.a) and split_words(pair.b)]
                a, b = (Sentences([getattr(pair, side) for pair in readable], tokenizer, limit) for side in "ab")
                return MarginObjective(model, a, b, GradedSets(dev, tokenizer, limit), config, batch_size, self.seed)
            case SentimentConfig() as config:
                labels = self.sentiment_labels
                train_set, dev_set = (LabelledSentences(part, tokenizer, limit, labels) for part in (train, dev))
                return SentimentObjective(model, train_set, dev_set, config, batch_size, self.seed)
            case SupervisedConfig() as config:
                train_pairs, dev_pairs = (LabelledPairs(part, tokenizer, limit) for part in (train, dev))
                return SupervisedObjective(model, train_pairs, dev_pairs, config, batch_size, self.seed)
        raise TypeError(f"{self.recipe.name}: no siamese model learns {type(self.recipe.objective).__name__}")

    def after_training(self, objective: Objective, teacher: Path | None) -> None:
        """Map the vectors of words that training did not have into the trained space, if the recipe asks for it."""
        if self.recipe.map_unseen and isinstance(objective, TeacherCosineObjective):
            seen = np.bincount(objective.sentences.flat, minlength=len(self.table.tokenizer)).astype(np.int64)
            weight = objective.model.embedding.weight
            rows = map_unseen(self.table.rows, weight.detach().cpu().numpy(), seen)
            with torch.no_grad():
                weight.copy_(torch.from_numpy(rows))
                logger.info("development after mapping unseen rows: %.4f", objective.evaluate()["selection"])

    def export(self, publication: Publication, folder: Path) -> dict[str, Any]:
        """The encoder around its words as they are stored, and a graph for each head."""
        model = self.load()
        table, factor = self.words_of(model)
        words_are_shared = self.recipe.optimiser.embedding_learning_rate is None and publication.keep_words is None
        if publication.keep_words is not None:
            table = shrink(table, publication.keep_words, self.recipe.data.vocabulary())
        encoder = copy.deepcopy(model.encoder)
        encoder.embedding = embedding(table, publication.storage, factor)
        return {
            "limits": Limits(max_tokens=publication.max_tokens),
            "similarity": self.similarity(model),
            "entailment": EntailmentTask(graph=ENTAILMENT, labels=LABELS) if "entailment" in model.heads else None,
            "classification": ClassificationTask(graph=CLASSIFICATION, labels=self.sentiment_labels)
            if SENTIMENT in model.heads
            else None,
            "additive": self.architecture.additive,
            **write_graphs(
                encoder, model.heads, table.tokenizer, folder, publication.model_id, words_are_shared=words_are_shared
            ),
        }

    def similarity(self, model: SiameseModel) -> SimilarityTask | None:
        """The manifest's entry: the head's expected rating, or the cosine of a model without heads."""
        match self.recipe.objective:
            case SupervisedConfig(classes=tuple(classes)) if classes:
                scale = (classes[0], classes[-1])  # the lowest and the highest rating
                return SimilarityTask(
                    graph=SIMILARITY, classes=classes, raw_range=scale, label_scale=scale, symmetric=True
                )
        if model.heads:
            return None
        return SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True)

    def calibrate(self, manifest: Manifest, folder: Path) -> Manifest:
        """The calibration of a score that is a comparison of embeddings and no head.

        Probabilities of a sentence's labels get the temperature that fits the development part best.
        """
        model = PublishedModel(folder, manifest)
        if (labels := manifest.classification) is not None:
            dev = self.recipe.data.dev()
            probabilities = model.classification([text for text, _ in dev])
            log_probabilities = np.log([[each[label] for label in labels.labels] for each in probabilities])
            temperature = fit_temperature(log_probabilities, np.array([label for _, label in dev]))
            labels = labels.model_copy(update={"temperature": temperature})
            return manifest.model_copy(update={"classification": labels})
        if (task := manifest.similarity) is None or task.comparison is None:
            return manifest
        assert task.label_scale is not None  # both comparisons have one
        task = task.model_copy(update={"calibration": self.calibration(model, task, task.label_scale)})
        return manifest.model_copy(update={"similarity": task})

    def calibration(self, model: PublishedModel, task: SimilarityTask, scale: tuple[float, float]) -> Calibration:
        """A monotone map of the cosine to the ratings of STS 2016."""
        raw, gold = raw_and_rated(model, [pair for rated in sts.read_year("2016-test").values() for pair in rated])
        return fit_centred_isotonic(raw, gold, raw_range=task.raw_range, target_range=scale)


def raw_and_rated(model: PublishedModel, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
    """Raw scores [n] of pairs and people's ratings [n]."""
    raw = model.similarity([p.a for p in pairs], [p.b for p in pairs]).raw_score
    return raw, np.array([p.target for p in pairs], dtype=np.float64)


def write_graphs(
    encoder: nn.Module,
    heads: Mapping[str, nn.Module] | nn.ModuleDict,
    tokenizer: AnyTokenizer,
    folder: Path,
    model_id: str,
    *,
    words_are_shared: bool,
) -> dict[str, Any]:
    """Export an encoder, around its words as they are stored, and its heads.

    Args:
        encoder: of single sentences.
        heads: by task; those of other tasks than similarity, entailment and sentiment are left out.
        tokenizer: of its words.
        folder: of the model.
        model_id: what the graphs say of themselves.
        words_are_shared: words go among the shared files beside the folder, as the tokenizer always does: they are
            frozen, so other models may have the same.

    Returns:
        Manifest fields, without those of the tasks; `shared`: entries of shared files.

    Raises:
        ParityError, GraphMismatchError: an exported graph differs from its module.
    """
    words = encoder.embedding
    assert isinstance(words, nn.Module)
    arrays = arrays_of(words, "embedding") if words_are_shared else {}
    export_encoder(encoder, folder / ENCODER, model_id, list(arrays))
    difference = check_encoder(folder / ENCODER, encoder, len(tokenizer), arrays)
    tokens = TOKENS if isinstance(encoder, GRAN) and encoder.has_token_parts else None
    if tokens is not None:
        export_tokens(encoder, folder / tokens, model_id, list(arrays))
        difference = max(difference, check_tokens(folder / tokens, encoder, len(tokenizer), arrays))
    stored = write_words(arrays, tokenizer, folder)
    dim = output_dim(encoder)  # an encoder may project to another width than that of the words
    for task, name in (("similarity", SIMILARITY), ("entailment", ENTAILMENT)):
        if task in heads:
            export_head(heads[task], dim, folder / name, model_id)
            difference = max(difference, check_head(folder / name, heads[task], dim))
    if SENTIMENT in heads:
        export_head(heads[SENTIMENT], dim, folder / CLASSIFICATION, model_id, CLASSIFIER)
        difference = max(difference, check_head(folder / CLASSIFICATION, heads[SENTIMENT], dim, "classifier"))
    logger.info("%s: graphs equal their modules to %.1e", model_id, difference)
    return {
        "family": "siamese",
        "dim": dim,
        "encoder": ENCODER,
        "tokenizer": TOKENIZER,
        "token_embeddings": tokens,
        **stored._asdict(),
    }
