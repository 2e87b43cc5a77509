"""Tiny models of other libraries, made by those libraries, as their users save them: random weights, and tokenizers
trained on a few sentences."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from starlette.testclient import TestClient
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from service.app import create_app
from service.settings import Settings

SPREAD = 0.3  # of weights: texts must differ
SENTENCES = (
    "a cat sleeps on the sofa in the park",
    "the man plays a small guitar and the woman plays the flute",
    "A big dog runs through the snow, but no dog runs in the park.",
    "How do I reset my password? I forgot it: how can I change it?",
    "The museum isn't open on Mondays. Interest rates rose for the third time this year!",
    "Two dogs are running; someone plays an instrument - 123, 456.",
    "ein Hund läuft durch den Schnee, la chat dort sur le canapé, 猫が好き",
)
_SIZES = {"vocab_size": 0, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 48}
_WHOLE = _SIZES | {"max_position_embeddings": 64}
_SHIFTED = _WHOLE | {"max_position_embeddings": 66, "pad_token_id": 1}
# model_type -> its tokenizer, its settings
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("wordpiece", _WHOLE),
    "distilbert": (
        "wordpiece",
        {"vocab_size": 0, "dim": 24, "n_layers": 1, "n_heads": 3, "hidden_dim": 48, "max_position_embeddings": 64},
    ),
    "mpnet": ("wordpiece-roberta", _SHIFTED),
    "roberta": ("bytes", _SHIFTED | {"type_vocab_size": 1}),
    "xlm-roberta": ("unigram", _SHIFTED | {"type_vocab_size": 1}),
    "modernbert": (
        "bytes-bert",
        _WHOLE | {"num_hidden_layers": 2, "local_attention": 8, "global_attn_every_n_layers": 2},
    ),
    "deberta-v2": (
        "unigram-bert",
        _WHOLE
        | {"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}
        | {"pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0},
    ),
    "t5": ("unigram-bert", {"vocab_size": 0, "d_model": 24, "d_kv": 8, "d_ff": 48, "num_layers": 1, "num_heads": 3}),
    "qwen3": ("bytes-end", _WHOLE | {"num_key_value_heads": 1, "head_dim": 8}),
}
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def tokenizer(kind: str, size: int = 160) -> "tokenizers.Tokenizer":
    """One of each kind, with the special tokens where models of that kind have them."""
    special = _ROBERTA if kind in ("bytes", "unigram", "wordpiece-roberta") else _BERT
    first, _, end, unknown = special[:4] if special is _ROBERTA else (_BERT[2], _BERT[0], _BERT[3], _BERT[1])
    trainer: Any
    shown: Any = {"special_tokens": list(special), "show_progress": False}
    if kind.startswith("wordpiece"):
        made = tokenizers.Tokenizer(models.WordPiece(unk_token=unknown))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=size, **shown)
    elif kind.startswith("bytes"):
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size + 256, initial_alphabet=alphabet, **shown)
    else:
        made = tokenizers.Tokenizer(models.Unigram())
        made.normalizer = normalizers.NFKC()
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=size, unk_token=unknown, **shown)
    made.train_from_iterator(SENTENCES, trainer)
    ids = {token: made.token_to_id(token) for token in special}
    if kind == "bytes-end":
        made.post_processor = processors.TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, ids[end])]
        )
    else:
        pair = f"{first} $A {end} {end} $B {end}" if special is _ROBERTA else f"{first} $A {end} $B:1 {end}:1"
        made.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {end}", pair=pair, special_tokens=[(first, ids[first]), (end, ids[end])]
        )
    return made


def transformer(folder: Path, family: str = "bert", labels: Sequence[str] | None = None, limit: int = 64) -> Path:
    """A model of that family, as transformers save it: its states, or a classifier with these outputs."""
    transformers = pytest.importorskip("transformers", reason="missing here: pip install '.[distill]'")
    kind, settings = FAMILIES[family]
    read = tokenizer(kind)
    pad, unknown, first, end = ("<pad>", "<unk>", "<s>", "</s>") if "<pad>" in read.get_vocab() else _BERT[:4]
    torch.manual_seed(0)
    names = {"pad": pad, "cls": first, "bos": first, "sep": end, "eos": end}
    own = {f"{name}_token_id": read.token_to_id(token) for name, token in names.items()}
    config = transformers.AutoConfig.for_model(family, **(settings | own | {"vocab_size": read.get_vocab_size()}))
    if labels is not None:
        config.num_labels = len(labels)
        config.id2label, config.label2id = dict(enumerate(labels)), {label: i for i, label in enumerate(labels)}
        model = transformers.AutoModelForSequenceClassification.from_config(config)
    else:
        model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=SPREAD)
            else:  # a norm's factors or a bias; as in a trained model no two are equal
                parameter.normal_(mean=0.0 if name.endswith("bias") else 1.0, std=0.1)
    model.save_pretrained(folder)
    segments = ["token_type_ids"] if config.model_type == "bert" else []
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=read,
        unk_token=unknown,
        pad_token=pad,
        cls_token=first,
        sep_token=end,
        model_max_length=limit,
        model_input_names=["input_ids", *segments, "attention_mask"],
    ).save_pretrained(folder)
    return folder


def encoder(
    folder: Path,
    family: str = "bert",
    pooling: str = "mean",
    *,
    normalise: bool = True,
    dense: int | None = None,
    limit: int = 40,
    **more: Any,
) -> Path:
    """A sentence-transformers encoder of width 24, saved by that library; `more`: prompts and their default."""
    library = pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

    inner = transformer(folder.with_name(f"{folder.name}-inner"), family)
    parts: list[Any] = [Transformer(str(inner), max_seq_length=limit), Pooling(24, pooling_mode=pooling)]
    if dense is not None:
        torch.manual_seed(1)
        parts.append(Dense(24, dense))
    library.SentenceTransformer(
        modules=[*parts, *([Normalize()] if normalise else [])], device="cpu", **more
    ).save_pretrained(str(folder), create_model_card=False)
    return folder


def static(folder: Path, *, normalise: bool = False) -> Path:
    """A folder of sentence-transformers with a StaticEmbedding."""
    library = pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    from sentence_transformers.models import Normalize, StaticEmbedding

    read = tokenizer("wordpiece")
    rows = torch.randn((read.get_vocab_size(), 16), generator=torch.Generator().manual_seed(0))
    modules = [StaticEmbedding(read, embedding_weights=rows), *([Normalize()] if normalise else [])]
    made = library.SentenceTransformer(modules=modules, device="cpu")
    made.save_pretrained(str(folder), create_model_card=False)
    return folder


def model2vec(folder: Path) -> Path:
    """A model2vec folder with a weight for each token, and tokens that share a row."""
    library = pytest.importorskip("model2vec", reason="no model2vec: pip install '.[distill]'")
    read = tokenizer("wordpiece")
    count = read.get_vocab_size()
    rng = np.random.default_rng(0)
    library.StaticModel(
        rng.standard_normal((60, 16)).astype(np.float32),
        read,
        config={"model_type": "model2vec"},
        normalize=True,
        weights=rng.uniform(0.5, 2.0, count),
        token_mapping=rng.integers(0, 60, count),
    ).save_pretrained(folder)
    return folder


def with_graph(folder: Path, name: str = "onnx/model.onnx") -> Path:
    """The same folder with its graph in ONNX as well, where such folders have it."""
    from workbench.imports.exporting import export

    (folder / name).parent.mkdir(exist_ok=True)
    kinds = json.loads((folder / "config.json").read_text())["architectures"]
    graph = export(folder, kinds[0].endswith("Classification"), 60, 1e-4)
    (folder / name).write_bytes(graph.SerializeToString())
    return folder


def of_graph(folder: Path) -> Path:
    """The same folder with its graph in ONNX in place of its weights."""
    with_graph(folder)
    (folder / "model.safetensors").unlink()
    return folder


def changed(path: Path, **fields: object) -> None:
    """Give a JSON file other fields."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def embedded(folder: Path, texts: Sequence[str], prompt: str = "") -> np.ndarray:
    """By the unmodified library."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    return np.asarray(model.encode(list(texts), prompt=prompt))


def logits(folder: Path, *sides: Sequence[str]) -> np.ndarray:
    """By transformers alone, of texts or of pairs of them."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    read = tokenizer(*map(list, sides), padding=True, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        return np.asarray(model(**read).logits.double().numpy())


def served(models: Path) -> TestClient:
    """A client of a service of these models."""
    return TestClient(create_app(Settings(models_dir=models)))
