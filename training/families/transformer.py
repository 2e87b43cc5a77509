"""Transformers: cross-encoders trained and published, and any of them as a model folder.

Weights are int8 and multiplied as integers (`training.publish.integers`); the tokenizer is that of their vocabulary.

`write_cross_encoder` takes any `CrossEncoder` with its calibrations, `write_encoder` a bi-encoder. A cross-encoder's
similarity and relevance may be blended with the cosine of the bi-encoder that it started from.
"""

import copy
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import ModelProto, numpy_helper
from torch import Tensor, nn

from core.errors import TokenizerError
from core.graph import SEGMENTS
from core.manifest import BiEncoder, FileEntry, Limits, SimilarityTask
from core.sequences import SequenceFeeds
from core.subwords import AnyTokenizer, Subwords
from training.data.readers import labelled_pairs
from training.data.tasks import answers_of_three_kinds
from training.families.heads import (
    Blends,
    HeadCalibrations,
    HeadsFamily,
    calibrated,
    columns_of,
    fit_multiple,
    fit_weight,
    served_heads,
    task_fields,
)
from training.families.interaction import PAIR
from training.families.siamese import ENCODER, STS_SCALE
from training.families.updates import add_learnt, learnt_file
from training.families.words import TOKENIZER, write_words
from training.models.transformer import (
    MEAN,
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
    SequenceEncoder,
    StatesOfTokens,
    load_weights,
    words_of,
)
from training.objectives.objective import Objective
from training.objectives.tasks import EVALUATION_BATCH, PairTokens, predict
from training.publish.calibrate import Floats
from training.publish.graphs import leave_outside
from training.publish.network_graph import (
    CUDA_SUFFIX,
    GraphStorage,
    StoredNetwork,
    for_cuda,
    network_graph,
    store,
)
from training.publish.shared_files import share
from training.recipes.recipe import Publication
from training.recipes.sources.source import needed
from training.recipes.sources.tables import PretrainedEncoder
from training.teacher.weights import weights_folder
from training.train.family import ModelFamily
from training.train.folder import RunMissing

logger = logging.getLogger(__name__)

START_NAME = "start.pt"  # in a run's folder: the weights that a cross-encoder started from
STARTED_FROM = "minilm"  # what the cross-encoder starts from
MAX_TOKENS = 128
STATES, RAW_OUTPUT, CONFIG = "last_hidden_state", "raw_output", "config.json"
BERTS_OWN = {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
WORDS = "word_embeddings.weight"  # in the names of what is stored once for all models


@dataclass(frozen=True)
class CrossEncoderFamily(HeadsFamily[CrossEncoder]):
    """A run that begins with a published encoder, which it keeps, or continues another run."""

    architecture: CrossEncoderConfig
    encoder: PretrainedEncoder  # whose weights and words it begins with

    def encoder_folder(self, teacher: Path | None) -> Path:
        """Where the published encoder lies: the given teacher's folder, or one that was fetched.

        Raises:
            RecipeError: it is the teacher's, and no teacher was given.
            RunMissing: it was not fetched; names the command.
        """
        if not self.encoder.packages:
            return needed(teacher, "a cross-encoder starts from")
        folder = weights_folder(self.runs, self.encoder.name)
        if not (folder / TOKENIZER).is_file():
            raise RunMissing(f"{folder} is not there: run `python -m training weights {self.encoder.name}` first")
        return folder

    def tokenizer(self, teacher: Path | None) -> Subwords:
        """The tokenizer of the published encoder."""
        return Subwords.load(self.encoder_folder(teacher) / TOKENIZER)

    def initial_model(self) -> CrossEncoder:
        """All weights drawn at random."""
        torch.manual_seed(self.seed)
        return CrossEncoder(self.architecture)

    def build(self, teacher: Path | None) -> CrossEncoder:
        """The model as its training begins: with the weights of the run it starts from, or of the encoder."""
        model = super().build(teacher)
        if self.start is None:
            load_weights(model.bert, self.encoder_folder(teacher))
        return model

    def initialise_from(self, start: ModelFamily[Any], model: CrossEncoder) -> None:
        """Copy all weights of a run, or what is kept of it beside those of the published encoder."""
        if not learnt_file(start.recipe).is_file():
            return super().initialise_from(start, model)
        load_weights(model.bert, self.encoder_folder(None))
        add_learnt(start.recipe, model)

    def after_training(self, objective: Objective, teacher: Path | None) -> None:
        """Keep the tokenizer, and the encoder that the run began with: publishing needs both."""
        self.tokenizer(teacher).save(self.folder / TOKENIZER)
        if self.start is None:
            torch.save(self.build(teacher).bert.state_dict(), self.folder / START_NAME)

    def bi_encoder(self) -> SentenceBERT:
        """The bi-encoder that this run, or the last of its chain of runs that kept it, started from.

        Raises:
            RunMissing: no run kept it.
        """
        first: ModelFamily[Any] = self
        while first.start is not None and not (first.folder / START_NAME).is_file():
            first = first.start
        path = first.folder / START_NAME
        if not path.is_file():
            command = f"python -m training train {first.recipe.name} --seed {first.seed}"
            raise RunMissing(f"{path} is not there: run `{command}` anew")
        model = SentenceBERT(SentenceBERTConfig(self.architecture.bert))
        model.bert.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
        return model.eval()

    def export(self, publication: Publication, folder: Path) -> dict[str, Any]:
        """The graph of all answers, and that of the bi-encoder where the publication wants a blend."""
        model, limit, blend, fitted = served_heads(self.load()), publication.max_tokens, None, None
        tokenizer = Subwords.load(self.folder / TOKENIZER)
        served = as_stored(model, limit)
        if publication.blend:
            blend, fitted = fit_blend(served, self.bi_encoder(), tokenizer, limit)
        calibrations = calibrated(served, tokenizer, limit, fitted)
        return write_cross_encoder(model, self.folder / TOKENIZER, folder, publication.model_id, calibrations, blend)


class AnswersOfPairs(nn.Module):
    """What is exported of a cross-encoder: the outputs of its heads side by side."""

    def __init__(self, model: CrossEncoder) -> None:
        """Wrap a cross-encoder, whose weights are shared and not copied."""
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Sequences of pairs [B, L] -> outputs [B, K]."""
        more = {} if token_type_ids is None else {SEGMENTS: token_type_ids}
        states_BLH = self.model.bert(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state
        return torch.cat(list(self.model.answers(states_BLH, attention_mask.bool()).values()), dim=1)


@dataclass(frozen=True)
class Blend:
    """A cross-encoder's similarity and relevance, each with the cosine of a bi-encoder (0 where negative)."""

    encoder: SentenceBERT
    similarity: float  # of 0..1, the cosine's part of a weighted mean; that of the cross-encoder is the rest
    relevance: float  # how many times the cosine is added to the cross-encoder's output
    model_id: str = STARTED_FROM  # the published model of the same weights: the file is the same, and stored once

    @property
    def of_tasks(self) -> Blends:
        """How much of each blended task is the cross-encoder's own, and how much the cosine."""
        return {"similarity": (1.0 - self.similarity, self.similarity), "relevance": (1.0, self.relevance)}


def write_encoder(
    model: SequenceEncoder,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    *,
    storage: GraphStorage = "int8",
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a bi-encoder into a folder.

    Args:
        model: with the weights to publish.
        tokenizer: the `tokenizer.json` of its vocabulary.
        folder: of the model; its words and tokenizer go among the shared files beside it.
        model_id: what the graph says of itself.
        storage: of the weights.
        max_tokens: of a sentence; with the special tokens no more than the positions.

    Returns:
        The fields of the manifest that depend on the model; the similarity still lacks its calibration.

    Raises:
        TokenizerError: the tokenizer's size is not the model's.
        ParityError, GraphMismatchError: the graph does not compute what the model does.
    """
    words = _tokenizer(tokenizer, model.bert, model.feeds)
    graph = _graph(StatesOfTokens(model.bert), model.bert, model.feeds, STATES, max_tokens, model_id)
    tensors, shared, on_cuda = _write(graph, folder / ENCODER, words, storage)
    config: Any = model.bert.config
    (folder / CONFIG).write_text(config.to_json_string(use_diff=False), encoding="utf-8")
    return {
        "family": "siamese",
        "dim": model.output_dim,
        "encoder": ENCODER,
        "pooling": model.pooling,
        "network_config": CONFIG,
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        "similarity": SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), label_scale=STS_SCALE, symmetric=True),
        "tensors": tensors,
        "on_cuda": on_cuda,
        "shared": shared | {ENCODER: share(folder / ENCODER, folder.parent)},  # a cross-encoder's blend may have it too
    }


def write_cross_encoder(
    model: CrossEncoder,
    tokenizer: Path,
    folder: Path,
    model_id: str,
    calibrations: HeadCalibrations,
    blend: Blend | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, Any]:
    """Export a cross-encoder: `pair.onnx` answers all of its tasks in one run.

    Args:
        model: with the weights to publish; heads among entailment (3 outputs, in the order of
            `training.objectives.supervised.LABELS`), similarity, paraphrase and relevance (1 each). It has a similarity
            where it has one of the last two.
        tokenizer: the `tokenizer.json` of its vocabulary.
        folder: of the model; its words and tokenizer go among the shared files beside it.
        model_id: what the graphs say of themselves.
        calibrations: of its heads.
        blend: the bi-encoder whose cosine counts in similarity and relevance; None: the heads alone answer them.
        max_tokens: of each of the two; both, with 3 more, are no more than the positions.

    Returns:
        The fields of the manifest that depend on the model; `shared` are the entries of the shared files.

    Raises:
        ValueError: a head of another name, or other words in the blend's encoder.
        TokenizerError: the tokenizer's size is not the model's.
        ParityError, GraphMismatchError: a graph does not compute what the model does.
    """
    feeds = model.config.bert.feeds(2)
    words = _tokenizer(tokenizer, model.bert, feeds)
    if blend is not None and not torch.equal(words_of(blend.encoder.bert).weight, words_of(model.bert).weight):
        raise ValueError("a blend wants a bi-encoder with the words of the cross-encoder")
    columns = columns_of(model)
    graph = _graph(AnswersOfPairs(model.eval()), model.bert, feeds, RAW_OUTPUT, 2 * max_tokens, model_id)
    tensors, shared, on_cuda = _write(graph, folder / PAIR, words, "int8")
    fields: dict[str, Any] = {
        "family": "interaction",
        "tokenizer": TOKENIZER,
        "limits": Limits(max_tokens=max_tokens),
        **task_fields(PAIR, columns, calibrations, {} if blend is None else blend.of_tasks, raw=True),
    }
    if blend is not None:
        of_encoder = write_encoder(blend.encoder, tokenizer, folder, blend.model_id, max_tokens=max_tokens)
        (folder / CONFIG).unlink()
        tensors, shared = tensors | of_encoder["tensors"], shared | of_encoder["shared"]
        on_cuda |= of_encoder["on_cuda"]
        fields["bi_encoder"] = BiEncoder(graph=ENCODER, dim=of_encoder["dim"], pooling=MEAN)
    return {**fields, "tensors": tensors, "on_cuda": on_cuda, "shared": shared}


def as_stored(model: CrossEncoder, max_tokens: int) -> CrossEncoder:
    """The same model on the states that its stored network gives: what it is calibrated with."""
    stored = copy.copy(model)
    stored._modules = dict(model._modules)  # a copy shares them
    feeds = model.config.bert.feeds(2)
    graph = _graph(StatesOfTokens(model.bert), model.bert, feeds, STATES, 2 * max_tokens, "draft")
    stored.bert = StoredNetwork(graph, "int8")
    return stored


def _graph(
    module: nn.Module, network: nn.Module, feeds: SequenceFeeds, output: str, max_tokens: int, model_id: str
) -> ModelProto:
    vocabulary = words_of(network).num_embeddings
    return network_graph(module, feeds.inputs, output, vocabulary, max_tokens + feeds.added, model_id)


def _write(
    graph: ModelProto, path: Path, tokenizer: Subwords, storage: GraphStorage
) -> tuple[dict[str, str], dict[str, FileEntry], dict[str, str]]:
    """Write a graph; and among the shared files beside its folder its words and tokenizer, which all models that froze
    these words have, and what a GPU opens in its place.

    Returns:
        As in a manifest: its tensors, the entries of the shared files, and `on_cuda`.
    """
    on_cuda, shared = dict[str, str](), dict[str, FileEntry]()
    if storage == "int8":
        name = on_cuda[path.name] = f"{path.stem}{CUDA_SUFFIX}"
        _save(for_cuda(graph), path.with_name(name))
        shared[name] = share(path.with_name(name), path.parent.parent)
    store(graph, storage)
    arrays = _save(graph, path)
    tensors, of_words = write_words(arrays, tokenizer, path.parent, "words")
    return tensors, shared | of_words, on_cuda


def _save(graph: ModelProto, path: Path) -> dict[str, Any]:
    """Write a graph without its words, which are returned: arrays by name."""
    onnx.checker.check_model(graph)
    words = {each.name: numpy_helper.to_array(each) for each in graph.graph.initializer if WORDS in each.name}
    leave_outside(graph.graph, list(words))
    path.write_bytes(graph.SerializeToString(deterministic=True))
    logger.info("wrote %s, %d bytes", path, path.stat().st_size)
    return words


def _tokenizer(path: Path, network: nn.Module, feeds: SequenceFeeds) -> Subwords:
    """The tokenizer whose own post-processor puts the network's special tokens around texts."""
    found, words = Subwords.load(path), words_of(network).num_embeddings
    if len(found) > words:
        raise TokenizerError(f"{path}: {len(found)} ids, the model has {words} words")
    sides = len(feeds.special.segments)
    if found.special_tokens(sides) != feeds.special:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if entries.get("post_processor") is None:  # as in files of BERT's that we published before
            found = Subwords(json.dumps(entries | {"post_processor": BERTS_OWN}))
        if found.special_tokens(sides) != feeds.special:
            raise TokenizerError(
                f"{path}: post_processor puts other special tokens around texts than the network reads"
            )
    return found


def fit_blend(
    model: CrossEncoder, encoder: SentenceBERT, tokenizer: AnyTokenizer, max_tokens: int
) -> tuple[Blend, HeadCalibrations]:
    """The weights of the best development figures, and the calibrations of the blended tasks.

    Similarity: Spearman's correlation on the development part of the STS benchmark. Relevance: the mean over three
    kinds of questions of the mean average precision, and Platt scaling at even odds.

    Args:
        model: with heads for similarity and relevance.
        encoder: the bi-encoder, of the same vocabulary; its weights are stored for the cosines, as they will be.
        tokenizer: of both.
        max_tokens: of a sentence.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """

    graph = _graph(StatesOfTokens(encoder.bert), encoder.bert, encoder.feeds, STATES, max_tokens, "draft")
    stored = SentenceBERT(encoder.config, StoredNetwork(graph, "int8"))

    def outputs(task: str, pairs: PairTokens) -> tuple[Floats, Floats]:
        own = predict(model, pairs)[task][:, 0].astype(np.float64)
        return own, np.maximum(_cosines(stored, pairs), 0.0)

    rated = labelled_pairs.read("stsb-dev")
    gold = np.array([pair.target for pair in rated], dtype=np.float64)
    own, cosine = outputs("similarity", PairTokens(rated, tokenizer, max_tokens))
    weight, similarity = fit_weight(own, cosine, gold)

    kinds = answers_of_three_kinds()
    parts = [(pairs, *outputs("relevance", PairTokens(pairs, tokenizer, max_tokens))) for pairs in kinds.values()]
    multiple, relevance = fit_multiple(parts)
    return Blend(encoder, weight, multiple), HeadCalibrations(similarity=similarity, relevance=relevance)


@torch.inference_mode()
def _cosines(encoder: SentenceBERT, pairs: PairTokens) -> Floats:
    order = pairs.by_length(np.arange(len(pairs)), joined=False)
    found = []
    for start in range(0, len(order), EVALUATION_BATCH):
        a_BS, lengths_a_B, b_BT, lengths_b_B = pairs.batch(order[start : start + EVALUATION_BATCH])
        found.append((encoder(a_BS, lengths_a_B) * encoder(b_BT, lengths_b_B)).sum(dim=1).double().numpy())
    return np.concatenate(found)[np.argsort(order, kind="stable")]
