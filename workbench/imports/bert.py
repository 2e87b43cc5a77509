"""sentence-transformers folders of the BERT family: bi-encoders, and cross-encoders with one output or three."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from contract.manifest import EntailmentLabel
from contract.wordpiece import WordPiece
from training.architectures.transformer import (
    BERT,
    BERTConfig,
    ClassifiedPair,
    CrossEncoderConfig,
    Pooling,
    SentenceBERT,
    SentenceBERTConfig,
    fill,
    names_of,
    read_weights,
)
from training.objectives.supervised import LABELS
from training.objectives.tasks import PairTokens, predict
from training.pairs import Pair
from training.publishing.families.transformer import stored, write_cross_encoder, write_encoder
from training.words.storage import Storage
from workbench.imports.calibration import head_calibrations
from workbench.imports.files import (
    ImportRefused,
    id_of,
    read_modules,
    read_object,
    tokenizer_file,
    weights_file,
)
from workbench.imports.model import COSINE, Facts, Floats, Labelled, embeddings

logger = logging.getLogger(__name__)

_POOLINGS: Mapping[str, Pooling] = {"mean": "mean", "cls": "cls", "max": "max"}
_LEGACY_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class BiEncoder:
    """A transformer whose pooled states are a text's embedding."""

    folder: Path
    network: SentenceBERT
    tokenizer: Path
    max_tokens: int
    notes: tuple[str, ...]

    library = "sentence-transformers"
    storages: tuple[Storage, ...] = ("int8", "float32")
    label = None

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        config = self.network.config
        length = ", brought to length 1" if config.normalise else ""
        what = f"a sentence-transformers bi-encoder of {_millions(self.network)}, {config.pooling} pooling{length}"
        settings = {"bert": _sizes(config.bert), "pooling": config.pooling, "normalise": config.normalise}
        return Facts(config.name, what, settings, self.notes)

    def ours(self, a: Sequence[str], b: Sequence[str], storage: Storage) -> Floats:
        """Embeddings of a, then of b [2 n, D]."""
        tokenizer = WordPiece.load(self.tokenizer)
        return embeddings(stored(self.network, storage), tokenizer, [*a, *b], self.max_tokens)

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The same by sentence-transformers."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(self.folder), local_files_only=True, device="cpu")
        model.max_seq_length = self.max_tokens + 2
        found = model.encode([*a, *b], show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float64)

    def write(self, folder: Path, model_id: str, storage: Storage, labelled: Labelled | None) -> dict[str, Any]:
        """Its graph; the similarity is a cosine without calibration."""
        fields = write_encoder(
            self.network, self.tokenizer, folder, model_id, storage=storage, max_tokens=self.max_tokens
        )
        return fields | {"similarity": COSINE}


@dataclass(frozen=True)
class PairClassifier:
    """A transformer that reads two texts together (BertForSequenceClassification)."""

    folder: Path
    network: ClassifiedPair
    tokenizer: Path
    max_tokens: int  # of each text
    order: tuple[int, ...]  # of entailment: the place in the folder's outputs of each of our labels
    notes: tuple[str, ...]

    library = "sentence-transformers"
    storages: tuple[Storage, ...] = ("int8", "float32")

    @property
    def label(self) -> str | None:
        """Labels of entailment, or of relevance (1 and 0); scores of similarity."""
        return None if set(self.network.heads) == {"similarity"} else "label"

    @property
    def facts(self) -> Facts:
        """What is said of it."""
        config = self.network.config
        tasks = " and ".join(config.heads)
        what = f"a sentence-transformers cross-encoder of {_millions(self.network)}, for {tasks}"
        return Facts("bert_pair", what, {"bert": _sizes(config.bert), "heads": dict(config.heads)}, self.notes)

    def ours(self, a: Sequence[str], b: Sequence[str], storage: Storage) -> Floats:
        """Logits [n, 1] or, in our order of labels, [n, 3]."""
        pairs = [Pair(x, y) for x, y in zip(a, b, strict=True)]
        tokens = PairTokens(pairs, WordPiece.load(self.tokenizer), self.max_tokens)
        return next(iter(predict(stored(self.network, storage), tokens).values())).astype(np.float64)

    def theirs(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """The same by sentence-transformers."""
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(str(self.folder), local_files_only=True, device="cpu")
        pairs = list(zip(a, b, strict=True))
        found = np.asarray(model.predict(pairs, activation_fn=nn.Identity(), show_progress_bar=False), np.float64)
        return found.reshape(len(pairs), -1)[:, list(self.order)]

    def write(self, folder: Path, model_id: str, storage: Storage, labelled: Labelled | None) -> dict[str, Any]:
        """One graph for its tasks; a similarity without pairs to calibrate on has no scale of ratings."""
        heads = head_calibrations(lambda a, b: self.ours(a, b, storage), self.label, labelled)
        fields = write_cross_encoder(
            self.network, self.tokenizer, folder, model_id, heads, storage=storage, max_tokens=self.max_tokens
        )
        if (similarity := fields.get("similarity")) is not None and heads.similarity is None:
            fields["similarity"] = similarity.model_copy(update={"label_scale": None})
        return fields


def read_bi_encoder(folder: Path, drafts: Path, max_tokens: int | None = None) -> BiEncoder:
    """Read a sentence-transformers folder of a transformer, a pooling and perhaps a normalisation.

    Args:
        folder: with `modules.json`.
        drafts: a folder for a tokenizer made from `vocab.txt`.
        max_tokens: of a text, fewer than the folder says.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    modules = read_modules(folder)
    names = [name for name, _ in modules]
    if names[:2] != ["Transformer", "Pooling"] or names[2:] not in ([], ["Normalize"]):
        raise ImportRefused(
            f"{folder / 'modules.json'}: modules {', '.join(names)}; taken are Transformer, Pooling and, after them, "
            "Normalize"
        )
    inner, pooled = modules[0][1], modules[1][1]
    config = _bert_config(inner)
    pooling, normalise = pooling_of(pooled), len(names) == 3
    _check_comparison(folder, normalise)
    network = SentenceBERT(SentenceBERTConfig(config, pooling, normalise)).eval()
    tokenizer = tokenizer_file(inner, drafts)
    found, path = _weights(inner)
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in found else ""
    _fill(network.bert, found, names_of(network.bert, prefix), path)
    _finish_bert(network.bert, inner, tokenizer)
    limit = min(_max_length(inner, config), config.positions) - 2
    return BiEncoder(folder, network, tokenizer, _fewer(limit, max_tokens, inner), _notes(folder))


def read_cross_encoder(
    folder: Path,
    drafts: Path,
    max_tokens: int | None = None,
    head: str = "similarity",
    labels: Sequence[str] | None = None,
) -> PairClassifier:
    """Read a folder of BertForSequenceClassification, with or without sentence-transformers' own files.

    Args:
        folder: with `config.json`.
        drafts: a folder for a tokenizer made from `vocab.txt`.
        max_tokens: of each text, fewer than the folder says.
        head: what one output means: similarity or relevance (which is a similarity as well).
        labels: names of three outputs, where the folder names none.

    Raises:
        ImportRefused: it cannot be taken; names the file and the field.
    """
    if (folder / "modules.json").is_file() and (names := [name for name, _ in read_modules(folder)]) != ["Transformer"]:
        raise ImportRefused(f"{folder / 'modules.json'}: modules {', '.join(names)}; a cross-encoder has a Transformer")
    config = _bert_config(folder)
    content = read_object(folder / "config.json")
    outputs = len(content.get("id2label") or {0: "", 1: ""})
    if outputs not in (1, 3):
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label has {outputs} outputs; taken are 1 (similarity or relevance) and 3 "
            "(entailment)"
        )
    order = _order_of_labels(folder, content, labels) if outputs == 3 else (0,)
    one = ("similarity", "relevance") if head == "relevance" else ("similarity",)
    heads = {"entailment": 3} if outputs == 3 else dict.fromkeys(one, 1)
    network = ClassifiedPair(CrossEncoderConfig(config, heads)).eval()
    tokenizer = tokenizer_file(folder, drafts)
    found, path = _weights(folder)
    _fill(network.bert, found, names_of(network.bert, "bert."), path)
    _fill(network.pooler, found, {name: f"bert.pooler.dense.{name}" for name in ("weight", "bias")}, path)
    in_order = {
        f"classifier.{name}": found[f"classifier.{name}"][list(order)]
        for name in ("weight", "bias")
        if f"classifier.{name}" in found and len(found[f"classifier.{name}"]) == outputs
    }
    for each in network.heads.values():
        _fill(each, in_order, {name: f"classifier.{name}" for name in ("weight", "bias")}, path)
    _finish_bert(network.bert, folder, tokenizer)
    limit = (min(_max_length(folder, config), config.positions) - 3) // 2
    notes = ("Each of the two texts is cut at the limit; the library cuts the longer one until both fit together.",)
    return PairClassifier(folder, network, tokenizer, _fewer(limit, max_tokens, folder), order, notes)


def _bert_config(folder: Path) -> BERTConfig:
    path = folder / "config.json"
    content = read_object(path)
    if "auto_map" in content:
        raise ImportRefused(f"{path}: auto_map: custom code, which is never run")
    wanted = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "type_vocab_size": 2,
        "is_decoder": False,
        "add_cross_attention": False,
    }
    for name, value in wanted.items():
        if name != "model_type" and name not in content:
            continue  # the library's default, which these are
        if content.get(name) != value:
            raise ImportRefused(f"{path}: {name} is {content.get(name)!r}, taken is {value!r}")
    sizes = {
        "vocabulary": "vocab_size",
        "hidden": "hidden_size",
        "layers": "num_hidden_layers",
        "attention_heads": "num_attention_heads",
        "inner": "intermediate_size",
        "positions": "max_position_embeddings",
    }
    for name in sizes.values():
        if not isinstance(content.get(name), int) or content[name] < 1:
            raise ImportRefused(f"{path}: {name} must be a whole number from 1, found {content.get(name)!r}")
    if content["hidden_size"] % content["num_attention_heads"]:
        raise ImportRefused(f"{path}: num_attention_heads does not divide hidden_size")
    return BERTConfig(**{ours: content[theirs] for ours, theirs in sizes.items()})


def pooling_of(folder: Path) -> Pooling:
    """The pooling that the folder of a Pooling module names.

    Raises:
        ImportRefused: it is none of ours, or more than one.
    """
    path = folder / "config.json"
    content = read_object(path)
    modes = [mode for field, mode in _LEGACY_POOLINGS.items() if content.get(field)]
    if (mode := content.get("pooling_mode")) is not None:
        modes = [mode] if isinstance(mode, str) else list(mode)
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ImportRefused(
            f"{path}: pooling_mode is {' and '.join(map(str, modes)) or 'none'}, taken is one of {', '.join(_POOLINGS)}"
        )
    return _POOLINGS[modes[0]]


def _check_comparison(folder: Path, normalise: bool) -> None:
    path = folder / "config_sentence_transformers.json"
    if not path.is_file():
        return
    content = read_object(path)
    name = content.get("similarity_fn_name")
    if name not in (None, "cosine") and not (name == "dot" and normalise):
        raise ImportRefused(
            f"{path}: similarity_fn_name is {name!r}; taken is 'cosine', and 'dot' of embeddings of length 1"
        )
    if content.get("default_prompt_name") is not None:
        raise ImportRefused(
            f"{path}: default_prompt_name is {content['default_prompt_name']!r}: it would be put before every text"
        )


def _notes(folder: Path) -> tuple[str, ...]:
    path = folder / "config_sentence_transformers.json"
    prompts = read_object(path).get("prompts") if path.is_file() else None
    used = [f"{name}: {prompt!r}" for name, prompt in (prompts or {}).items() if prompt]
    return (f"Its prompts are not added: put them before the texts yourself ({'; '.join(used)}).",) if used else ()


def _order_of_labels(folder: Path, content: Mapping[str, Any], labels: Sequence[str] | None) -> tuple[int, ...]:
    named = labels or [content["id2label"].get(str(i), "") for i in range(3)]
    lower = [name.strip().lower() for name in named]
    if sorted(lower) != sorted(LABELS):
        raise ImportRefused(
            f"{folder / 'config.json'}: id2label is {', '.join(map(repr, named))}; expected {', '.join(LABELS)} in any "
            "order (--labels names them)"
        )
    return tuple(lower.index(label) for label in cast(tuple[EntailmentLabel, ...], LABELS))


def _max_length(folder: Path, config: BERTConfig) -> int:
    """Most tokens of a sequence, special ones included."""
    for name, field in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        path = folder / name
        value = read_object(path).get(field) if path.is_file() else None
        if isinstance(value, int | float) and 4 <= value <= config.positions:
            return int(value)
    return config.positions


def _fewer(limit: int, wanted: int | None, folder: Path) -> int:
    if limit < 1:
        raise ImportRefused(f"{folder / 'config.json'}: max_position_embeddings leaves no token for a text")
    if wanted is not None and wanted > limit:
        raise ImportRefused(f"--max-tokens {wanted}: the model reads at most {limit} tokens of a text")
    return wanted or limit


def _weights(folder: Path) -> tuple[dict[str, Tensor], Path]:
    path = weights_file(folder)
    return read_weights(path), path


def _fill(module: nn.Module, found: Mapping[str, Tensor], names: Mapping[str, str], path: Path) -> None:
    try:
        fill(module, found, names, path)
    except ValueError as error:
        raise ImportRefused(str(error)) from error


def _finish_bert(bert: BERT, folder: Path, tokenizer: Path) -> None:
    """What is no weight: the norms' epsilon and the special tokens."""
    epsilon = read_object(folder / "config.json").get("layer_norm_eps", 1e-12)
    for module in bert.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = float(epsilon)
    bert.special = (id_of(tokenizer, "[CLS]"), id_of(tokenizer, "[SEP]"))


def _millions(network: nn.Module) -> str:
    return f"{sum(p.numel() for p in network.parameters()) / 1e6:.1f} million weights"


def _sizes(config: BERTConfig) -> dict[str, int]:
    names = ("vocabulary", "hidden", "layers", "attention_heads", "inner", "positions")
    return {name: getattr(config, name) for name in names}
