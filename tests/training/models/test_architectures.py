"""One battery for every architecture: company and padding move nothing, every weight learns, its graph is equal."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from core.sequences import pad
from tests.harness import toys
from training.data.words.storage import Int8Embedding
from training.models import (
    ArchitectureConfig,
    CrossEncoder,
    CrossEncoderConfig,
    DANConfig,
    GRANConfig,
    HeadsConfig,
    InteractionConfig,
    LSTMConfig,
    MGIMConfig,
    ProjectionConfig,
    PWIMConfig,
    PWIMTasks,
    PWIMTasksConfig,
    RNNConfig,
    WordAveragingConfig,
    build_encoder,
)
from training.models.kinds import InteractionModel, Precision, SiameseModel, output_dim
from training.models.layers import WordEmbedding
from training.models.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.publish.export import export_encoder, export_pair, export_tokens
from training.publish.graphs import ParityError
from training.publish.parity import TOLERANCE, check_encoder, check_pair, check_tokens
from training.publish.runtime import open_graph

MGIM, PWIM = MGIMConfig(hidden=5), PWIMConfig(hidden=5, maps=(8, 8), grid=8)
BERT = BERTConfig(vocabulary=105, hidden=12, layers=2, attention_heads=3, inner=24, positions=120)
HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}
ENCODERS: tuple[ArchitectureConfig, ...] = (
    *(kind() for kind in get_args(ArchitectureConfig)),
    RNNConfig(activation="identity"),
    LSTMConfig(output_gate=False),
    LSTMConfig(hidden=5, peepholes=False, forget_bias=2.5),  # MaLSTM
    LSTMConfig(pooling="mean", hidden=5),
    LSTMConfig(pooling="mean", bidirectional=True, peepholes=False),
    LSTMConfig(pooling="mean", bidirectional=True, output_gate=False),
    GRANConfig(gated=False),
    *(GRANConfig(variant=variant) for variant in (2, 3, 4, 5)),
    GRANConfig(bidirectional=True),
)
OF_PAIRS: tuple[Any, ...] = (
    MGIM,
    replace(MGIM, comparison=True, first_word=True, copied_start=True, dropout=0.3),
    replace(MGIM, conditional=False, projected=True),
    replace(MGIM, attention=False),
    replace(MGIM, attention=False, conditional=False, comparison=True, first_word=True),
    PWIM,
    *(replace(PWIM, grid=grid) for grid in (1, 32)),
    replace(PWIM, focus="none"),
    replace(PWIM, focus="dropout", word_scale=2.0),
    replace(PWIM, context=False, same_words=True),
)
TASKS = PWIMTasksConfig(replace(PWIM, same_words=True), HEADS, hidden=7)
WITH_LAYERS = [
    each(replace(BERT, layout=layout))
    for each in (SentenceBERTConfig, CrossEncoderConfig)
    for layout in ("bert", "mpnet")
]
VARIANTS = (*ENCODERS, *OF_PAIRS, TASKS, *WITH_LAYERS)
PAIRS = toys.id_pairs()


def label(config: Any) -> str:
    """The name and whatever is not the default, so that a failure says which variant it was."""
    if config in (TASKS, *WITH_LAYERS):
        return f"{config.name}-{config.bert.layout}" if hasattr(config, "bert") else config.name
    return f"{config.name}-{toys.changed(config, {'mgim': MGIM, 'pwim': PWIM}.get(config.name) or type(config)())}"


def build(config: Any, seed: int = 0) -> nn.Module:
    """A seeded model around the toy words; an encoder of words has heads for ratings and labels."""
    torch.manual_seed(seed)
    if isinstance(config, InteractionConfig):
        return toys.network(config, seed)
    if isinstance(config, SentenceBERTConfig):
        return SentenceBERT(config)
    if isinstance(config, CrossEncoderConfig):
        return CrossEncoder(config)
    return PWIMTasks(config, toys.words()) if isinstance(config, PWIMTasksConfig) else toys.model(config, heads=True)


def answer(model: nn.Module, inputs: toys.Inputs) -> Tensor:
    """All that a model says of pairs, in one row for each: embeddings, and what each head gives out."""
    if isinstance(model, SiameseModel):
        sides = model.encode_pair(inputs[:2], inputs[2:])
        outputs = [*sides, *(head(*sides) for head in model.heads.values())]
    elif isinstance(model, SentenceBERT):
        outputs = [model(*inputs[:2]), model(*inputs[2:])]
    else:
        found = model(*inputs)
        outputs = list(found.values()) if isinstance(found, dict) else [found]
    assert all(output.dtype == torch.float32 for output in outputs)
    return torch.cat(outputs, dim=1)


def test_no_architecture_is_left_out() -> None:
    known = get_args(ArchitectureConfig | InteractionConfig | HeadsConfig)
    assert {type(config) for config in VARIANTS} == {*known, SentenceBERTConfig}


@pytest.mark.parametrize("config", VARIANTS, ids=label)
@torch.no_grad()
def test_neither_company_nor_its_order_nor_padding_moves_an_answer_or_a_matrix(config: Any) -> None:
    model = build(config).eval()

    def run(*arguments: Any) -> Tensor:
        inputs = toys.pair_tensors(*arguments)
        output = answer(model, inputs)
        if not hasattr(model, "matrices") or (isinstance(config, MGIMConfig) and not config.attention):
            return output
        matrices = model.matrices(*inputs)
        room = nn.functional.pad(matrices, (0, 50 - matrices.shape[3], 0, 50 - matrices.shape[2]))
        return torch.cat([output, room.flatten(1)], dim=1)

    alone = torch.cat([run([pair]) for pair in PAIRS])
    assert alone.std(0).max() > 1e-3
    near = {"rtol": 1e-5, "atol": 1e-5 if isinstance(config, InteractionConfig | PWIMTasksConfig) else 1e-6}
    for arguments in ((PAIRS,), (PAIRS, 9, 4), (PAIRS, 0, 30, 7)):
        torch.testing.assert_close(run(*arguments), alone, **near)
    torch.testing.assert_close(run(PAIRS[::-1]).flip(0), alone, **near)
    if isinstance(model, SiameseModel):
        size, inputs = output_dim(model.encoder), toys.pair_tensors(PAIRS)
        sides = model.encode(inputs[:2]), model.encode(inputs[2:])
        torch.testing.assert_close(torch.cat(sides, dim=1), alone[:, : 2 * size], **near)
    again = build(config).eval()
    assert torch.equal(answer(again, toys.pair_tensors(PAIRS)), answer(model, toys.pair_tensors(PAIRS)))


IN_TRAINING = [(config, "float32") for config in VARIANTS]
IN_TRAINING += [(c, "bfloat16") for c in VARIANTS if isinstance(c, ArchitectureConfig | CrossEncoderConfig)]


@pytest.mark.parametrize(("config", "precision"), IN_TRAINING, ids=[f"{label(c)}-{p}" for c, p in IN_TRAINING])
def test_every_parameter_gets_a_gradient(config: Any, precision: Precision) -> None:
    model, rated = build(config).train(), PAIRS[: len(toys.RATED)]
    low = precision == "bfloat16"
    if isinstance(model, SiameseModel):
        model.precision, low = precision, False  # by itself
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        output = answer(model, toys.pair_tensors(rated))
    (output[0].sum() + (output[1:] ** 2).sum()).backward()
    gradients = {name: p.grad.to_dense() for name, p in model.named_parameters() if p.grad is not None}
    assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
    trained = {name for name, gradient in gradients.items() if gradient.abs().max() > 0}
    # A key's bias adds the same to all scores of a query: the softmax takes it out. A transformer's words are frozen.
    still = {name for name in gradients if name.endswith((".key.bias", ".attn.k.bias"))}
    frozen = "bert.embeddings.word_embeddings.weight"
    assert trained | still == {name for name, _ in model.named_parameters()} - {frozen}
    if frozen not in dict(model.named_parameters()):  # never the padding, never a word that was not there
        touched = model.embedding.weight.grad.to_dense().abs().sum(1).nonzero().flatten().tolist()
        assert set(touched) == {i for pair in rated for side in pair for i in side}


def test_low_precision_is_of_training_only() -> None:
    full, low = toys.model(GRANConfig()), toys.model(GRANConfig())
    low.precision = "bfloat16"
    batch = toys.pair_tensors(PAIRS)[:2]
    assert not torch.equal(full.encode(batch), low.encode(batch))
    torch.testing.assert_close(full.encode(batch), low.encode(batch), atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(full.eval().encode(batch), low.eval().encode(batch), atol=0, rtol=0)


# An export takes seconds: each architecture, and the options whose nodes no other export of the tests has. How words
# are stored concerns no architecture; GRAN's other variants, and its two directions, are those of PARTS, below.
ROWS = toys.table().rows
EXPORTS: list[tuple[ArchitectureConfig, type[nn.Module]]] = [
    (WordAveragingConfig(), WordEmbedding),
    *((kind(), Int8Embedding) for kind in (DANConfig, ProjectionConfig, RNNConfig)),
    (LSTMConfig(pooling="mean", hidden=5, output_gate=False), Int8Embedding),
    (LSTMConfig(hidden=6, layers=2, bidirectional=True, scale=3.0), Int8Embedding),
    (GRANConfig(variant=5), Int8Embedding),
]


def test_an_encoder_of_each_architecture_is_exported() -> None:
    assert {type(config) for config, _ in EXPORTS} == set(get_args(ArchitectureConfig))


@pytest.mark.parametrize(("config", "storage"), EXPORTS, ids=[f"{label(c)}-{s.__name__}" for c, s in EXPORTS])
def test_an_encoders_graph_is_equal_at_sizes_never_traced(config: Any, storage: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = build_encoder(config, storage(ROWS if storage is WordEmbedding else torch.from_numpy(ROWS)))
    path = tmp_path / "encoder.onnx"
    export_encoder(encoder, path, "toy")
    assert b"site-packages" not in path.read_bytes()
    assert check_encoder(path, encoder, len(ROWS)) <= TOLERANCE
    # And as the service runs it.
    input_ids, lengths = pad([side for pair in PAIRS for side in pair])
    found = open_graph(path, "encoder")({"input_ids": input_ids, "lengths": lengths})
    with torch.no_grad():
        expected = encoder(torch.from_numpy(input_ids), torch.from_numpy(lengths)).numpy()
    assert found == pytest.approx(expected, abs=TOLERANCE)


def test_a_graph_with_all_published_options_of_mgim_is_equal_at_sizes_never_traced(tmp_path: Path) -> None:
    """That of PWIM is made in test_pwim.py, of both orders in test_interaction.py."""
    network = toys.network(
        replace(MGIM, hidden=3, comparison=True, first_word=True, shared_words=True, overlaps=True, projected=True)
    )
    network.embedding = Int8Embedding(torch.from_numpy(ROWS))
    network.mark_numbers([i % 3 == 0 for i in range(len(ROWS))])  # type: ignore[operator]
    model = InteractionModel(network, both_orders=False)
    export_pair(model, tmp_path / "pair.onnx", "toy")
    # In MGIM nothing is chosen by an order, and so by rounding.
    assert check_pair(tmp_path / "pair.onnx", model, len(ROWS), 60).near_ties == 0


# What each word puts into the embedding of a GRAN.
PARTS = [GRANConfig(), GRANConfig(bidirectional=True), GRANConfig(variant=3), GRANConfig(variant=4)]


@pytest.mark.parametrize("config", PARTS, ids=label)
def test_the_mean_of_the_parts_is_the_embedding_as_a_graph_too(config: GRANConfig, tmp_path: Path) -> None:
    """Variants 3 and 4 with a gate so far below 0 that it rounds to 0, and has no logarithm."""
    encoder: Any = toys.model(config, seed=3).encoder.eval()
    assert encoder.has_token_parts
    inputs = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 0, 0, 0]]), torch.tensor([4, 2, 1])
    with torch.no_grad():
        parts, embeddings = encoder.token_parts(*inputs), encoder(*inputs)
        for row, length in enumerate(inputs[1].tolist()):
            torch.testing.assert_close(parts[row, :length].mean(0), embeddings[row], atol=1e-6, rtol=1e-5)
        if config.variant in (3, 4):  # what came before is dropped
            gates = encoder.gates[0].words
            gates.bias[gates.out_features // 2 :] = -300.0  # those on the running sum
            parts = encoder.token_parts(*inputs)
            assert torch.isfinite(parts).all()
            assert (parts[0, :3] == 0).all()
            assert (parts[0, 3] != 0).all()
    export_tokens(encoder, tmp_path / "tokens.onnx", "toy")
    assert check_tokens(tmp_path / "tokens.onnx", encoder, len(ROWS)) < 1e-5
    with pytest.raises(ParityError):
        check_tokens(tmp_path / "tokens.onnx", toys.model(config, seed=4).encoder.eval(), len(ROWS))
