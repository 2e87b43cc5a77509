"""Tiny models of other libraries, made by those libraries, as their users save them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests import toy_wordpiece

SPREAD = 0.3  # of weights: texts must differ


def tokenizer_json() -> str:
    """The toy WordPiece with BERT's post-processor, as published models have it."""
    fields = json.loads(toy_wordpiece.wordpiece_json())
    cls, sep = toy_wordpiece.CLS, toy_wordpiece.SEP
    piece = {
        "CLS": {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        "SEP": {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    }
    later = {"SpecialToken": {"id": "[SEP]", "type_id": 1}}
    a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    fields["truncation"] = None
    fields["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [piece["CLS"], a, piece["SEP"]],
        "pair": [piece["CLS"], a, piece["SEP"], b, later],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]} for name, number in (("[CLS]", cls), ("[SEP]", sep))
        },
    }
    return json.dumps(fields)


def _bert(outputs: int | None, folder: Path, labels: Sequence[str] | None = None) -> None:
    from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=105,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    if outputs is not None:
        config.num_labels = outputs
        if labels is not None:
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: i for i, label in enumerate(labels)}
    model = BertModel(config, add_pooling_layer=False) if outputs is None else BertForSequenceClassification(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=SPREAD)
            elif name.endswith("bias"):
                parameter.normal_(std=0.1)
    model.save_pretrained(folder)
    (folder / "given.json").write_text(tokenizer_json())
    PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "given.json"),
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],  # as BERT's own tokenizer
    ).save_pretrained(folder)
    (folder / "given.json").unlink()


def bi_encoder(folder: Path, pooling: str = "mean", *, normalise: bool = True) -> Path:
    """A sentence-transformers bi-encoder of two layers of width 24, saved by that library."""
    pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    inner = folder.with_name(f"{folder.name}-inner")
    _bert(None, inner)
    modules = [Transformer(str(inner), max_seq_length=40), Pooling(24, pooling_mode=pooling)]
    SentenceTransformer(modules=[*modules, Normalize()] if normalise else modules, device="cpu").save_pretrained(
        str(folder), create_model_card=False
    )
    return folder


def cross_encoder(folder: Path, outputs: int = 1, labels: Sequence[str] | None = None) -> Path:
    """BertForSequenceClassification, as transformers save it."""
    pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    _bert(outputs, folder, labels)
    return folder


def static(folder: Path, *, normalise: bool = False) -> Path:
    """A sentence-transformers StaticEmbedding."""
    pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    import tokenizers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, StaticEmbedding

    read = tokenizers.Tokenizer.from_str(tokenizer_json())
    rows = torch.randn((105, 16), generator=torch.Generator().manual_seed(0))
    modules = [StaticEmbedding(read, embedding_weights=rows)]
    SentenceTransformer(modules=[*modules, Normalize()] if normalise else modules, device="cpu").save_pretrained(
        str(folder), create_model_card=False
    )
    return folder


def model2vec(folder: Path) -> Path:
    """A model2vec folder with a weight for each token, and tokens that share a row."""
    library = pytest.importorskip("model2vec", reason="no model2vec: pip install '.[distill]'")
    import numpy as np
    import tokenizers

    rng = np.random.default_rng(0)
    library.StaticModel(
        rng.standard_normal((60, 16)).astype(np.float32),
        tokenizers.Tokenizer.from_str(tokenizer_json()),
        config={"model_type": "model2vec"},
        normalize=True,
        weights=rng.uniform(0.5, 2.0, 105),
        token_mapping=rng.integers(0, 60, 105),
    ).save_pretrained(folder)
    return folder


def onnx_encoder(folder: Path, pooling: str = "mean") -> Path:
    """The graph of a bi-encoder, as `optimum` and torch export it, with sentence-transformers' files beside it."""
    from transformers import BertModel

    bi_encoder(folder, pooling)
    inner = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(
            self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
        ) -> torch.Tensor:
            found: torch.Tensor = self.inner(input_ids, attention_mask, token_type_ids).last_hidden_state
            return found

    example = torch.tensor([[101, 1, 2, 102], [101, 3, 102, 0]])
    real = (example > 0).long()
    names = ("input_ids", "attention_mask", "token_type_ids")
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("sequence")
    torch.onnx.export(
        States(),
        (example, real, torch.zeros_like(example)),
        str(folder / "model.onnx"),
        input_names=list(names),
        output_names=["last_hidden_state"],
        dynamic_shapes=tuple({0: batch, 1: tokens} for _ in names),
        opset_version=18,
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    (folder / "model.safetensors").unlink()
    return folder
