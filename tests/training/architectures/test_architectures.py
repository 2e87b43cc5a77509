"""One battery for every architecture: every parameter takes part, and company changes nothing."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from contract.tokenizer import pad
from tests.harness import toys
from training.architectures import (
    ArchitectureConfig,
    GRANConfig,
    LSTMConfig,
    RNNConfig,
    WordAveragingConfig,
    build_encoder,
)
from training.architectures.models import SiameseModel, output_dim
from training.architectures.parts.layers import WordEmbedding
from training.objectives.supervised import LabelledPairs, SupervisedConfig, SupervisedObjective
from training.publishing.export import export_encoder
from training.publishing.parity import TOLERANCE, check_encoder
from training.publishing.runtime import open_graph
from training.words.storage import Int8Embedding

CONFIGS = get_args(ArchitectureConfig)
VARIANTS: tuple[ArchitectureConfig, ...] = (
    *(kind() for kind in CONFIGS),
    RNNConfig(activation="identity"),
    LSTMConfig(output_gate=False),
    LSTMConfig(hidden=5, peepholes=False, forget_bias=2.5),  # MaLSTM
    LSTMConfig(pooling="mean", hidden=5, tags="eos"),
    LSTMConfig(pooling="mean", bidirectional=True, peepholes=False),
    LSTMConfig(pooling="mean", bidirectional=True, combine="tanh", output_gate=False),
    GRANConfig(gated=False),
    GRANConfig(variant=2),
    GRANConfig(variant=3),
    GRANConfig(variant=4),
    GRANConfig(variant=5),
    GRANConfig(bidirectional=True),
    GRANConfig(bidirectional=True, combine="tanh"),
)


def label(config: ArchitectureConfig) -> str:
    """The name and whatever is not the default, so that a failure says which variant it was."""
    changed = [f"{k}={v}" for k, v in vars(config).items() if v != getattr(type(config)(), k)]
    return "-".join([config.name, *changed])


every_architecture = pytest.mark.parametrize("config", VARIANTS, ids=label)

TEXTS = [pair.a for pair in toys.RATED] + [pair.b for pair in toys.RATED] + ["dog", "mow"]
IDS = [toys.tokenizer().encode(text, toys.MAX_TOKENS).ids for text in TEXTS]


def tensors(ids: list[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    input_ids, lengths = pad(ids)
    return torch.from_numpy(input_ids), torch.from_numpy(lengths)


def objective(model: SiameseModel) -> SupervisedObjective:
    pairs = LabelledPairs(toys.RATED, toys.tokenizer(), toys.MAX_TOKENS)
    return SupervisedObjective(model, pairs, pairs, SupervisedConfig(entailment_weight=1.0), batch_size=4, seed=0)


@every_architecture
def test_every_parameter_gets_a_gradient(config: ArchitectureConfig) -> None:
    model = toys.model(config, heads=True).train()
    loss, parts = objective(model).loss(np.arange(len(toys.RATED)))
    loss.backward()
    assert set(parts) == {"similarity", "entailment", "penalty"}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.to_dense().abs().max() > 0, name
    used = {i for pair in toys.RATED for text in (pair.a, pair.b) for i in toys.tokenizer().encode(text, 12).ids}
    touched = model.embedding.weight.grad.to_dense().abs().sum(1).nonzero().flatten().tolist()
    assert set(touched) == used  # never the padding, never a word that was not there


@every_architecture
def test_neither_company_nor_padding_moves_an_embedding(config: ArchitectureConfig) -> None:
    encoder = toys.model(config).encoder.eval()
    input_ids, lengths = tensors(IDS)
    wider = torch.cat([input_ids, torch.zeros(len(IDS), 9, dtype=torch.int64)], dim=1)
    dirty = torch.where(torch.arange(wider.shape[1]) < lengths[:, None], wider, 7)
    with torch.no_grad():
        expected = encoder(input_ids, lengths)
        assert expected.shape == (len(IDS), output_dim(encoder))
        assert torch.allclose(torch.cat([encoder(*tensors([ids])) for ids in IDS]), expected, atol=1e-6)
        assert torch.allclose(encoder(dirty, lengths), expected, atol=1e-6)


# An export takes seconds: each architecture, and the options whose nodes no other export of the tests has. How words
# are stored concerns no architecture, so one of them tries every storage.
EXPORTS = [(kind(), Int8Embedding) for kind in CONFIGS]
EXPORTS += [
    (LSTMConfig(pooling="mean", hidden=5, tags="eos", output_gate=False), Int8Embedding),
    (LSTMConfig(hidden=6, layers=2, bidirectional=True, scale=3.0), Int8Embedding),
    (GRANConfig(variant=4), Int8Embedding),
    (GRANConfig(variant=5), Int8Embedding),
    (GRANConfig(bidirectional=True, combine="tanh"), Int8Embedding),
    (WordAveragingConfig(), WordEmbedding),
]


@pytest.mark.parametrize(
    ("config", "storage"), EXPORTS, ids=[f"{label(config)}-{storage.__name__}" for config, storage in EXPORTS]
)
def test_it_exports_and_its_graph_is_equal_at_sizes_never_traced(
    config: ArchitectureConfig, storage: type[nn.Module], tmp_path: Path
) -> None:
    rows = toys.table().rows
    torch.manual_seed(0)
    encoder = build_encoder(config, storage(rows if storage is WordEmbedding else torch.from_numpy(rows)))
    path = tmp_path / "encoder.onnx"
    export_encoder(encoder, path, "toy")
    assert b"site-packages" not in path.read_bytes()
    assert check_encoder(path, encoder, len(rows)) <= TOLERANCE
    # And as the service runs it, from text.
    input_ids, lengths = pad(IDS)
    found = open_graph(path, "encoder")({"input_ids": input_ids, "lengths": lengths})
    with torch.no_grad():
        assert found == pytest.approx(encoder(*tensors(IDS)).numpy(), abs=TOLERANCE)
