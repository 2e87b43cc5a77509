"""What the files of a transformer's folder say of it: pooling, prompts, limits, labels, special tokens."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tokenizers

from core.errors import TokenizerError
from core.manifest import MOST_TOKENS, EntailmentLabel, Prompts
from core.subwords import Subwords
from workbench.imports.files import (
    TOKENIZER,
    WEIGHTS,
    ImportRefused,
    object_or_none,
    read_modules,
    read_object,
    read_tensors,
)
from workbench.imports.graph import POOLINGS, Dense, Pooling, PoolingStage, Template
from workbench.imports.ids import check_config
from workbench.imports.model import LABELS

_LEGACY_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ACTIVATIONS = {"Identity": "Identity", "Tanh": "Tanh"}
_PASSAGES = ("document", "passage", "corpus")  # names of their prompt, as encode_document looks for them
# Positions of these begin behind the id of the padding.
_SHIFTED = {"roberta", "xlm-roberta", "xlm-roberta-xl", "mpnet", "camembert", "longformer", "data2vec-text"}
PairTask = Literal["entailment", "relevance"]
NOT: EntailmentLabel = "not_entailment"
# Spellings of labels, in small letters with "_" for all else.
_MEANINGS = {
    **dict.fromkeys(("entailment", "entail", "entails", "entailed", "e"), "entailment"),
    **dict.fromkeys(("neutral", "n"), "neutral"),
    **dict.fromkeys(
        ("contradiction", "contradict", "contradicts", "contradicted", "contradictory", "c"), "contradiction"
    ),
    **dict.fromkeys(("not_entailment", "non_entailment", "no_entailment", "not_entailed", "not_entail"), NOT),
    **dict.fromkeys(("relevant", "relevance"), "relevant"),
    **dict.fromkeys(("irrelevant", "not_relevant", "non_relevant"), "irrelevant"),
}
_MODULES = "taken are Transformer, Pooling and, after them, Dense and Normalize"


@dataclass(frozen=True)
class DescribedTokenizer:
    """How a folder's model reads text."""

    tokenizer: tokenizers.Tokenizer  # with its special tokens
    pad: int

    def template(self, sides: int) -> Template:
        """The special tokens around one text or two.

        Raises:
            ImportRefused: a text gives no tokens of its own.
        """
        read = self.tokenizer.encode("a", "a") if sides == 2 else self.tokenizer.encode("a")
        places = read.sequence_ids
        if set(places) - {None} != set(range(sides)):
            raise ImportRefused(f"{TOKENIZER}: reads {sides} texts as {places}")
        parts: list[list[tuple[int, int]]] = [[] for _ in range(sides + 1)]
        segments = [0] * sides
        seen = 0
        for place, token, segment in zip(places, read.ids, read.type_ids, strict=True):
            if place is None:
                parts[seen].append((token, segment))
            else:
                seen, segments[place] = place + 1, segment
        return Template(tuple(map(tuple, parts)), tuple(segments), self.pad)

    def save(self, path: Path) -> None:
        """Write what the service reads: ids come without special tokens."""
        Subwords(self.tokenizer.to_str()).save(path)


def read_tokens(folder: Path) -> DescribedTokenizer:
    """The tokenizer of a folder as transformers reads it, where that is installed; else its `tokenizer.json`.

    Raises:
        ImportRefused: there is none, and transformers cannot make it; it cannot be read; or `tokenizer_config.json`
            says something else, or something that is not done here (`workbench.imports.ids`).
    """
    path = folder / TOKENIZER
    try:
        text = _made_by_transformers(folder) or path.read_text(encoding="utf-8")
        content = json.loads(text)
        if object_or_none(folder / "sentence_bert_config.json").get("do_lower_case"):
            first = [{"type": "Lowercase"}]
            rest = [content["normalizer"]] if content.get("normalizer") else []
            content["normalizer"] = {"type": "Sequence", "normalizers": first + rest}
        content |= {"truncation": None, "padding": None}
        text = json.dumps(content)
        Subwords(text)
        tokenizer = tokenizers.Tokenizer.from_str(text)
        check_config(folder, tokenizer)
    except ImportRefused:
        raise
    except (OSError, ValueError, KeyError, TypeError, TokenizerError) as error:
        raise ImportRefused(f"{path}: {error}") from error
    config = object_or_none(folder / "config.json")
    named = object_or_none(folder / "tokenizer_config.json").get("pad_token")
    named = named.get("content") if isinstance(named, dict) else named
    pad = tokenizer.token_to_id(named) if isinstance(named, str) else None
    found = config.get("pad_token_id", pad) if config.get("pad_token_id") is not None else pad
    return DescribedTokenizer(tokenizer, found if isinstance(found, int) else 0)


def read_ending(folder: Path, pooling: Pooling | None) -> PoolingStage:
    """Pooling, dense layers and normalisation, as `modules.json` names them; `pooling` where there is no such file.

    Raises:
        ImportRefused: other modules, other settings of them; or nothing says how states are pooled.
    """
    modules = read_modules(folder)
    names = [name for name, _ in modules]
    if not modules:
        if pooling is None:
            raise ImportRefused(
                f"{folder}: there is no modules.json that says how the states of tokens are pooled: give --pooling, "
                f"one of {', '.join(POOLINGS)}"
            )
        return PoolingStage(pooling)
    middle = names[2:-1] if names[-1:] == ["Normalize"] else names[2:]
    if names[:2] != ["Transformer", "Pooling"] or set(middle) - {"Dense"}:
        raise ImportRefused(f"{folder / 'modules.json'}: modules {', '.join(names)}; {_MODULES}")
    dense = tuple(_dense(where) for name, where in modules if name == "Dense")
    return PoolingStage(pooling or _pooling(modules[1][1]), dense, names[-1] == "Normalize")


def read_prompts(folder: Path, given: Mapping[str, str | None]) -> Prompts | None:
    """What is put before a text, a query and a passage; `given` ones instead of the folder's. None: nothing.

    Raises:
        ImportRefused: another comparison than the cosine, or a default prompt that is not there.
    """
    path = folder / "config_sentence_transformers.json"
    content = object_or_none(path)
    if (name := content.get("similarity_fn_name")) not in (None, "cosine", "dot"):
        raise ImportRefused(f"{path}: similarity_fn_name is {name!r}; taken are 'cosine' and 'dot'")
    prompts = {key: value for key, value in (content.get("prompts") or {}).items() if isinstance(value, str)}
    default = content.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise ImportRefused(f"{path}: default_prompt_name is {default!r}, prompts are {', '.join(prompts) or 'none'}")
    text = prompts[default] if default is not None else ""
    found = {
        "text": text,
        "query": prompts.get("query", text),
        "passage": next((prompts[name] for name in _PASSAGES if name in prompts), text),
    }
    made = Prompts(**(found | {role: prompt for role, prompt in given.items() if prompt is not None}))
    return made if any((made.text, made.query, made.passage)) else None


def read_dimensions(folder: Path, dim: int) -> tuple[int, ...]:
    """The sizes to which an embedding may be cut, where `config.json` names them (Matryoshka)."""
    found = object_or_none(folder / "config.json").get("matryoshka_dimensions") or []
    return tuple(sorted({size for size in found if isinstance(size, int) and 1 <= size < dim}))


def most_tokens(folder: Path, special: int, wanted: int | None) -> int:
    """Most tokens of a sequence without its special ones: the least that the folder's files say, or fewer.

    Raises:
        ImportRefused: more are wanted than the model reads, or it reads none.
    """
    config = object_or_none(folder / "config.json")
    found = [MOST_TOKENS + special]
    for name, field in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        value = object_or_none(folder / name).get(field)
        if isinstance(value, int | float) and 0 < value < 1e9:
            shift = field == "max_position_embeddings" and config.get("model_type") in _SHIFTED
            found.append(int(value) - (int(config.get("pad_token_id") or 1) + 1 if shift else 0))
    limit = min(found) - special
    if limit < 1:
        raise ImportRefused(f"{folder / 'config.json'}: max_position_embeddings leaves no token for a text")
    if wanted is not None and wanted > limit:
        raise ImportRefused(f"--max-tokens {wanted}: the model reads at most {limit} tokens of a text")
    return wanted or limit


def labels_of(folder: Path) -> tuple[str, ...]:
    """The names of a classifier's outputs; of one output, none that matters."""
    config = read_object(folder / "config.json")
    named = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(config.get("num_labels", 2))}
    return tuple(str(named.get(str(i), named.get(i, f"LABEL_{i}"))) for i in range(len(named)))


def pair_of(named: Sequence[str]) -> tuple[PairTask, tuple[int, ...], tuple[EntailmentLabel, ...]] | None:
    """What a model with these labels says of two texts together; None: the labels do not tell.

    Returns:
        The task, the places among the outputs that it reads in our order, and the labels of entailment.
    """
    meant = [_MEANINGS.get(re.sub(r"[^a-z]+", "_", name.strip().lower()).strip("_")) for name in named]
    if len(set(meant)) < len(meant) or None in meant:
        return None
    if set(meant) == {"relevant", "irrelevant"}:
        return "relevance", (meant.index("relevant"), meant.index("irrelevant")), ()
    labels = tuple(label for label in (*LABELS, NOT) if label in meant)
    if len(labels) != len(meant) or "entailment" not in labels or (len(labels) == 3 and NOT in labels):
        return None
    return "entailment", tuple(meant.index(label) for label in labels), labels


def refuse_code(folder: Path) -> dict[str, Any]:
    """The content of `config.json`.

    Raises:
        ImportRefused: it names code that would have to be run, or a kind of model that is not served.
    """
    path = folder / "config.json"
    config = object_or_none(path)
    if "auto_map" in config:
        raise ImportRefused(f"{path}: auto_map: custom code, which is never run")
    architectures = config.get("architectures") or []
    if any(str(name).endswith("ForMaskedLM") for name in architectures) and any(
        name == "SpladePooling" for name, _ in read_modules(folder)
    ):
        raise ImportRefused(f"{folder / 'modules.json'}: SpladePooling: sparse vectors, which no route of ours gives")
    return config


def _pooling(folder: Path) -> Pooling:
    path = folder / "config.json"
    content = read_object(path)
    modes = [mode for field, mode in _LEGACY_POOLINGS.items() if content.get(field)]
    if (mode := content.get("pooling_mode")) is not None:
        modes = [mode] if isinstance(mode, str) else list(mode)
    found = [known for known in POOLINGS if modes == [known]]
    if not found:
        raise ImportRefused(
            f"{path}: pooling_mode is {' and '.join(map(str, modes)) or 'none'}, taken is one of {', '.join(POOLINGS)}"
        )
    if content.get("include_prompt") is False:
        raise ImportRefused(f"{path}: include_prompt is false: pooling would have to leave the prompt's tokens out")
    return found[0]


def _dense(folder: Path) -> Dense:
    path = folder / "config.json"
    content = read_object(path)
    name = str(content.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if name not in _ACTIVATIONS or content.get("use_residual"):
        raise ImportRefused(f"{path}: activation_function is {name!r}; taken are Identity and Tanh, without a residual")
    found = read_tensors(folder / WEIGHTS)
    return Dense(found["linear.weight"], found.get("linear.bias"), _ACTIVATIONS[name])  # type: ignore[arg-type]


def _made_by_transformers(folder: Path) -> str | None:
    """The tokenizer with all that `tokenizer_config.json` says of it; None: take `tokenizer.json`.

    Raises:
        ImportRefused: there is no `tokenizer.json` to take instead.
    """
    there = (folder / TOKENIZER).is_file()
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError:
        if there:
            return None
        raise ImportRefused(f"{folder}: no {TOKENIZER}, and transformers, which makes one, is not installed") from None
    try:
        made = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no such kind of folder for the library
        if there:
            return None
        raise
    backend = getattr(made, "backend_tokenizer", None)
    if backend is None and not there:
        raise ImportRefused(f"{folder}: no {TOKENIZER}, and transformers makes none of {type(made).__name__}")
    return None if backend is None else str(backend.to_str())
