"""What an exported file says about itself, what it keeps to itself, and what several share."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

import training
from core.errors import ArtifactError, GraphMismatchError
from core.graph import CLASSIFIER, ENCODER, EXPLANATION, HEAD, OPSET, PAIR
from core.tensors import tensors_of
from tests.harness import toys
from tests.harness.exports import EXPORT
from training.data.words.storage import Int8Embedding
from training.models.focus import greedy_matching
from training.models.heads import SentenceHead
from training.models.kinds import InteractionModel
from training.publish.export import export_encoder, export_explanation, export_head, export_pair
from training.publish.graphs import SHARED_BYTES, graphs_in, share_weights
from training.publish.runtime import open_graph


def opened(path: Path) -> onnx.ModelProto:
    return onnx.load(path, load_external_data=False)


def shapes(values: list[onnx.ValueInfoProto]) -> dict[str, list[str | int]]:
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph of each kind; the words of those of pairs are outside."""
    folder = tmp_path_factory.mktemp("exported")
    model = toys.model(heads=True)
    export_encoder(model.encoder, folder / "encoder.onnx", "toy-model")
    export_head(model.heads["similarity"], toys.DIM, folder / "head.onnx", "toy-model")
    torch.manual_seed(0)
    export_head(SentenceHead(toys.DIM, 5, hidden=6), toys.DIM, folder / "classifier.onnx", "toy-model", CLASSIFIER)
    export_pair(InteractionModel(sums(), both_orders=False), folder / "pair.onnx", "toy-model", list(WORDS))
    export_explanation(Matching(Int8Embedding(rows())), folder / "explanation.onnx", "toy-model", list(WORDS))
    return folder


def rows() -> torch.Tensor:
    return torch.from_numpy(toys.table().rows)


class Sums(nn.Module):
    """Log-probabilities of five classes by the sum of the words of each sentence."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.output = nn.Linear(2 * toys.DIM, 5)

    def forward(self, a: Tensor, lengths_a: Tensor, b: Tensor, lengths_b: Tensor) -> Tensor:
        sums = [self.embedding(ids).sum(1) / lengths[:, None] for ids, lengths in ((a, lengths_a), (b, lengths_b))]
        return torch.log_softmax(self.output(torch.cat(sums, dim=1)), dim=1)


def sums() -> Sums:
    torch.manual_seed(0)
    return Sums(Int8Embedding(rows())).eval()


class Matching(nn.Module):
    """Two matrices of the words, one of them by a loop, which has a graph of its own inside."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding

    def matrices(self, a: Tensor, lengths_a: Tensor, b: Tensor, lengths_b: Tensor) -> Tensor:
        real = [
            torch.arange(ids.shape[1])[None] < lengths[:, None] for ids, lengths in ((a, lengths_a), (b, lengths_b))
        ]
        alike = self.embedding(a) @ self.embedding(b).transpose(1, 2)
        return torch.stack([alike, greedy_matching(alike, real[0][:, :, None] & real[1][:, None])], dim=1)


WORDS = {f"network.embedding.{name}": value.numpy() for name, value in Int8Embedding(rows()).named_buffers()}


SPECS = {"encoder": ENCODER, "head": HEAD, "classifier": CLASSIFIER, "pair": PAIR, "explanation": EXPLANATION}


@pytest.mark.parametrize("name", SPECS)
def test_names_axes_and_opset_are_those_of_the_contract_and_nothing_is_unread_or_there_twice(
    exported: Path, name: str
) -> None:
    model, spec = opened(exported / f"{name}.onnx"), SPECS[name]
    sizes = {"dim": toys.DIM, "outputs": 5, "matrices": 2}
    for values, tensors in ((model.graph.input, spec.inputs), (model.graph.output, spec.outputs)):
        assert shapes(values) == {n: [sizes.get(axis, axis) for axis in t.axes] for n, t in tensors.items()}
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    open_graph(exported / f"{name}.onnx", spec.kind, {} if name == "encoder" else WORDS)  # its words are inside
    for graph in graphs_in(model.graph):
        read = {each for inner in graphs_in(graph) for node in inner.node for each in node.input}
        assert {tensor.name for tensor in graph.initializer} <= read
    assert len(list(graphs_in(model.graph))) == (2 if name == "explanation" else 1)  # the loop was looked into
    held = [(t.data_type, *t.dims, t.raw_data) for t in model.graph.initializer]
    inside = [each for each in held if each[-1]]  # words outside have no data here
    assert len(set(inside)) == len(inside)


def test_the_file_tells_nothing_of_the_machine_it_was_made_on(exported: Path) -> None:
    checkout = str(Path(training.__file__).parent.parent)
    for name in SPECS:
        content = (exported / f"{name}.onnx").read_bytes()
        for trace in (checkout, "site-packages", ".py", "File ", "torch", "nn_module"):
            assert trace.encode() not in content


def test_the_same_module_gives_the_same_bytes(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.onnx, "export", EXPORT)
    export_explanation(Matching(Int8Embedding(rows())), tmp_path / "explanation.onnx", "toy-model", list(WORDS))
    assert (tmp_path / "explanation.onnx").read_bytes() == (exported / "explanation.onnx").read_bytes()


def test_words_left_outside_are_given_when_the_graph_is_opened(exported: Path) -> None:
    assert [path.name for path in exported.iterdir() if path.suffix != ".onnx"] == []  # nothing lies beside it
    ids = np.array([[1, 2, 3, 9], [4, 5, 0, 0]])
    names = ("input_ids_a", "lengths_a", "input_ids_b", "lengths_b")
    feeds = dict(zip(names, (ids, np.array([4, 2]), ids[:, :3], np.array([3, 1])), strict=True))
    with torch.no_grad():
        expected = sums()(*(torch.from_numpy(value) for value in feeds.values()))
    found = open_graph(exported / "pair.onnx", "pair", WORDS)(feeds)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    turned = {name: np.ascontiguousarray(value[::-1]) for name, value in WORDS.items()}
    others = open_graph(exported / "pair.onnx", "pair", turned)(feeds)
    assert np.abs(others - found).max() > 1e-3
    # The arrays live as long as the graph that reads them.
    run = open_graph(exported / "pair.onnx", "pair", {name: value.copy() for name, value in WORDS.items()})
    np.testing.assert_array_equal(run(feeds), found)

    # A graph of another kind, or without its words, is not opened.
    with pytest.raises(GraphMismatchError, match=r"^head\.onnx: inputs of a encoder graph are"):
        open_graph(exported / "head.onnx", "encoder")
    with pytest.raises(ArtifactError, match=r"pair.onnx: onnxruntime cannot open it: .*network.embedding.codes"):
        open_graph(exported / "pair.onnx", "pair")


LARGE = np.arange(SHARED_BYTES // 4, dtype=np.float32)


def write(path: Path, **weights: np.ndarray) -> None:
    graph = helper.make_graph(
        [], "toy", [], [], [numpy_helper.from_array(rows, name) for name, rows in weights.items()]
    )
    onnx.save(helper.make_model(graph), path)


def test_weights_that_two_graphs_hold_are_stored_once(tmp_path: Path) -> None:
    write(tmp_path / "encoder.onnx", words=LARGE, own=LARGE + 1)
    write(tmp_path / "tokens.onnx", words=LARGE)
    files = share_weights(tmp_path)
    assert files == {"words": "weights.0.npy"}
    np.testing.assert_array_equal(np.load(tmp_path / "weights.0.npy"), LARGE)
    for name in ("encoder.onnx", "tokens.onnx"):
        assert tensors_of((tmp_path / name).read_bytes(), files) == files
    assert (tmp_path / "tokens.onnx").stat().st_size < 200


def test_small_ones_and_others_of_the_same_name_stay(tmp_path: Path) -> None:
    write(tmp_path / "encoder.onnx", small=LARGE[1:], other=LARGE, turned=LARGE)
    write(tmp_path / "tokens.onnx", small=LARGE[1:], other=LARGE + 1, turned=LARGE[:, None])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert share_weights(tmp_path) == {}
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
