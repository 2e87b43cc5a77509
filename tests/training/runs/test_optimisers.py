"""Optimisers for sparse words, and clipping."""

import copy

import pytest
import torch
from torch import nn
from torch.optim import Adadelta, Adagrad, Adam, SparseAdam

from tests.harness import toys
from training.architectures import CrossEncoder, CrossEncoderConfig, ProjectionConfig
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import BERTConfig
from training.recipes.recipe import OptimiserConfig
from training.runs.optimisers import build_optimisers, clip_gradients

IDS = torch.tensor([[1, 4, 2], [4, 7, 0]])
LENGTHS = torch.tensor([3, 2])


def test_words_and_composition_have_their_own_rates() -> None:
    model = toys.model(heads=True)
    others, words = build_optimisers(model, OptimiserConfig(learning_rate=0.1, embedding_learning_rate=0.2))
    assert isinstance(others, Adam)
    assert isinstance(words, SparseAdam)
    assert (others.param_groups[0]["lr"], words.param_groups[0]["lr"]) == (0.1, 0.2)
    assert [id(p) for p in words.param_groups[0]["params"]] == [id(model.embedding.weight)]
    assert len(others.param_groups[0]["params"]) == 10
    adagrad = build_optimisers(model, OptimiserConfig(name="adagrad", learning_rate=0.1, embedding_learning_rate=0.2))
    assert all(isinstance(each, Adagrad) for each in adagrad)
    assert [each.param_groups[0]["lr"] for each in adagrad] == [0.1, 0.2]


def test_a_frozen_encoder_leaves_the_heads_alone_to_learn() -> None:
    model = toys.model(ProjectionConfig(), heads=True)
    (only,) = build_optimisers(model, OptimiserConfig(heads_only=True))
    assert {id(p) for p in only.param_groups[0]["params"]} == {id(p) for p in model.heads.parameters()}
    assert not any(p.requires_grad for p in model.encoder.parameters())
    before = copy.deepcopy(model.encoder.state_dict())
    model.heads["similarity"](*[model.encode((IDS, LENGTHS))] * 2).sum().backward()
    only.step()
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())


def test_each_layer_of_a_transformer_is_slower_than_the_one_above_it() -> None:
    bert = BERTConfig(vocabulary=10, hidden=4, layers=3, attention_heads=1, inner=4, positions=9)
    model = CrossEncoder(CrossEncoderConfig(bert, {"similarity": 1}))
    config = OptimiserConfig(
        "adamw", learning_rate=1.0, layer_decay=0.5, heads_learning_rate=7.0, embedding_learning_rate=None
    )
    (optimiser,) = build_optimisers(model, config)
    rate_of = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    found = {name: rate_of[id(p)] for name, p in model.named_parameters() if p.requires_grad}
    expected = {"heads.": 7.0, "bert.layers.2.": 1.0, "bert.layers.1.": 0.5, "bert.layers.0.": 0.25, "bert.": 0.125}
    for name, rate in found.items():
        assert rate == next(wanted for prefix, wanted in expected.items() if name.startswith(prefix)), name
    assert len(optimiser.param_groups) == len(expected)


def test_adadelta_moves_the_composition_and_keeps_the_words_frozen() -> None:
    model = toys.model(ProjectionConfig())
    config = OptimiserConfig("adadelta", learning_rate=0.5, embedding_learning_rate=None)
    (optimiser,) = build_optimisers(model, config)
    assert isinstance(optimiser, Adadelta)
    assert optimiser.param_groups[0]["lr"] == 0.5
    assert not model.embedding.weight.requires_grad
    with pytest.raises(ValueError, match="adadelta keeps the words frozen: embedding_learning_rate must be None"):
        build_optimisers(model, OptimiserConfig("adadelta"))


def gradients() -> list[torch.Tensor]:
    """Parameters with gradients of a word embedding (word 4 twice) and a matrix."""
    torch.manual_seed(0)
    embedding, linear = WordEmbedding(toys.table().rows), nn.Linear(toys.DIM, 2)
    loss = (linear(embedding(IDS)) ** 2).sum() * 10
    loss.backward()
    return [embedding.weight, linear.weight, linear.bias]


def test_clipping_scales_all_gradients_by_their_joint_norm() -> None:
    parameters = gradients()
    before = [copy.deepcopy(p.grad).to_dense() for p in parameters]
    norm = float(torch.sqrt(sum((g**2).sum() for g in before)))
    assert norm > 1.0
    assert clip_gradients(parameters, 0.5) == pytest.approx(norm, rel=1e-6)
    after = [p.grad.to_dense() for p in parameters]
    assert float(torch.sqrt(sum((g**2).sum() for g in after))) == pytest.approx(0.5, rel=1e-5)
    for was, now in zip(before, after, strict=True):
        assert torch.allclose(now, was * (0.5 / norm), rtol=1e-5, atol=1e-8)
    assert parameters[0].grad.is_sparse
