"""Published graphs in ONNX Runtime against the torch module they came from."""

from pathlib import Path

import numpy as np
import pytest
import torch

from contract.errors import GraphMismatchError
from tests import toys
from training.architectures.models import SiameseModel
from training.publishing.export import export_encoder, export_head
from training.publishing.runtime import BATCH, open_graph


@pytest.fixture(scope="module")
def model() -> SiameseModel:
    return toys.model(heads=True)


@pytest.fixture(scope="module")
def folder(model: SiameseModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    export_encoder(model.encoder, folder / "encoder.onnx", "toy")
    export_head(model.heads["entailment"], toys.DIM, folder / "head.onnx", "toy")
    return folder


def test_an_encoder_gives_what_its_module_gives(folder: Path, model: SiameseModel) -> None:
    run = open_graph(folder / "encoder.onnx", "encoder")
    rng = np.random.default_rng(0)
    for batch, tokens in ((1, 1), (4, 9), (BATCH, 31)):
        feeds = {
            "input_ids": rng.integers(1, len(toys.tokenizer()), (batch, tokens)),
            "lengths": rng.integers(1, tokens + 1, batch),
        }
        with torch.no_grad():
            expected = model.encoder.eval()(*(torch.from_numpy(value) for value in feeds.values())).numpy()
        found = run(feeds)
        assert found.dtype == np.float32
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_head_gives_what_its_module_gives(folder: Path, model: SiameseModel) -> None:
    run = open_graph(folder / "head.onnx", "head")
    a, b = np.random.default_rng(1).standard_normal((2, 11, toys.DIM)).astype(np.float32)
    with torch.no_grad():
        expected = model.heads["entailment"](torch.from_numpy(a), torch.from_numpy(b)).numpy()
    assert run({"embedding_a": a, "embedding_b": b}) == pytest.approx(expected, abs=1e-6)


def test_feeds_are_named_so_their_order_does_not_matter(folder: Path) -> None:
    run = open_graph(folder / "encoder.onnx", "encoder")
    ids, lengths = np.array([[3, 4]]), np.array([2])
    one, two = run({"input_ids": ids, "lengths": lengths}), run({"lengths": lengths, "input_ids": ids})
    assert np.array_equal(one, two)


def test_a_graph_of_another_kind_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(GraphMismatchError, match=r"^head\.onnx: inputs of a encoder graph are"):
        open_graph(folder / "head.onnx", "encoder")
    with pytest.raises(GraphMismatchError, match=r"^encoder\.onnx: inputs of a pair graph are"):
        open_graph(folder / "encoder.onnx", "pair")
