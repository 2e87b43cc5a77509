"""The parity check lets an equal graph pass and refuses every way of being unequal.

The graphs are written node by node, for an exporter does not make these mistakes on demand.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from torch import Tensor, nn

from core.graph import ENCODER, HEAD
from core.manifest import Matrix
from core.tokenizer import Encoded
from tests.harness import fakes, toys
from training.models import WordAveraging, WordAveragingConfig
from training.models.heads import PairHead
from training.models.kinds import InteractionModel
from training.models.layers import WordEmbedding, masked_mean
from training.publish import parity
from training.publish.export import Matrices, export_pair
from training.publish.parity import ParityError, check_encoder, check_explanation, check_head, check_pair
from training.publish.texts import texts

ROWS = toys.table().rows
VOCABULARY = len(ROWS)
Node = onnx.NodeProto
make = helper.make_node
MEAN, MEAN_POSITIONS = "sentence_embedding", "sentence_embedding_positions"


def averaging(path: Path, *, rows: np.ndarray = ROWS, positions: list[Node] | None = None, **extra: np.ndarray) -> Path:
    """Word averaging by hand; `positions` makes the tensor MEAN_POSITIONS [tokens] in another way."""
    nodes = fakes.mean_of_rows("input_ids", "lengths", MEAN, positions)
    fakes.save_graph(path, ENCODER, nodes, {"table": rows, **extra}, {"dim": toys.DIM})
    return path


@pytest.fixture
def encoder() -> WordAveraging:
    return WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.onnx"


@pytest.fixture
def faithful(monkeypatch: pytest.MonkeyPatch) -> Callable[[nn.Module], None]:
    """`faithful(module)`: whatever graph is opened answers as the module does now, without an export."""

    def answer_as(module: nn.Module) -> None:
        kept = copy.deepcopy(module).eval()

        def run(feeds: dict[str, np.ndarray]) -> np.ndarray:
            with torch.no_grad():
                return kept(*(torch.from_numpy(value) for value in feeds.values())).numpy()

        monkeypatch.setattr(parity, "open_graph", lambda *_: run)

    return answer_as


def test_an_equal_graph_passes_and_large_values_may_differ_by_their_rounding_and_no_more(
    path: Path, encoder: WordAveraging
) -> None:
    assert 0 < check_encoder(averaging(path), encoder, VOCABULARY) < 1e-6
    rows = ROWS * np.float32(1000)
    large = WordAveraging(WordAveragingConfig(), WordEmbedding(rows))
    assert check_encoder(averaging(path, rows=rows * np.float32(1 + 3e-7)), large, VOCABULARY) > 1e-5
    with pytest.raises(ParityError, match="differs by"):
        check_encoder(averaging(path, rows=rows * np.float32(1 + 3e-5)), large, VOCABULARY)


@pytest.mark.parametrize(("value", "difference"), [(0.5, r"\d"), (np.nan, "nan")])
def test_one_wrong_value_is_refused(path: Path, encoder: WordAveraging, value: float, difference: str) -> None:
    rows = ROWS.copy()
    rows[7, 2] = value
    with pytest.raises(ParityError, match=rf"^graph\.onnx: .* rows of up to .* tokens: differs by {difference}.*"):
        check_encoder(averaging(path, rows=rows), encoder, VOCABULARY)


def test_a_frozen_time_axis_is_refused(path: Path, encoder: WordAveraging) -> None:
    # What a traced `arange(3)` becomes: right for the exporter's example, and nowhere else.
    frozen = averaging(path, positions=[make("Identity", ["traced"], [MEAN_POSITIONS])], traced=np.arange(3))
    with pytest.raises(ParityError, match=r"cannot run with input_ids \[1, 7\], lengths \[1\]"):
        check_encoder(frozen, encoder, VOCABULARY)


def test_an_axis_frozen_at_a_large_size_is_refused(path: Path, encoder: WordAveraging) -> None:
    # Tokens beyond the 64th are silently forgotten; nothing fails to run.
    nodes = [
        make("Shape", ["input_ids"], ["tokens_1"], start=1, end=2),
        make("Squeeze", ["tokens_1"], ["tokens"]),
        make("Range", ["zero", "tokens", "one"], ["all"]),
        make("Less", ["all", "limit"], ["near"]),
        make("Where", ["near", "all", "never"], [MEAN_POSITIONS]),
    ]
    forgetful = averaging(path, positions=nodes, limit=np.array(64), never=np.array(10**6))
    with pytest.raises(ParityError, match="33 rows of up to 129 tokens: differs by"):
        check_encoder(forgetful, encoder, VOCABULARY)


def pair_head(path: Path, head: PairHead, a: str, b: str) -> Path:
    """A directed pair head by hand, reading its two inputs under these names."""
    constants = {name: value.detach().numpy().T.copy() for name, value in head.named_parameters()}
    nodes = [
        make("Mul", [a, b], ["product"]),
        make("Sub", [a, b], ["signed"]),
        make("Abs", ["signed"], ["difference"]),
        make("MatMul", ["product", "product.weight"], ["h1"]),
        make("MatMul", ["difference", "difference.weight"], ["h2"]),
        make("MatMul", ["signed", "direction.weight"], ["h3"]),
        make("Sum", ["h1", "h2", "h3", "product.bias"], ["inside"]),
        make("Sigmoid", ["inside"], ["hidden"]),
        make("MatMul", ["hidden", "output.weight"], ["logits"]),
        make("Add", ["logits", "output.bias"], ["biased"]),
        make("LogSoftmax", ["biased"], ["raw_output"], axis=-1),
    ]
    fakes.save_graph(path, HEAD, nodes, constants, {"dim": toys.DIM, "outputs": 3})
    return path


def test_a_head_whose_sides_are_exchanged_is_refused(path: Path) -> None:
    torch.manual_seed(0)
    head = PairHead(toys.DIM, 3, directed=True)
    assert check_head(pair_head(path, head, "embedding_a", "embedding_b"), head, toys.DIM) < 1e-5
    with pytest.raises(ParityError, match="differs by"):
        check_head(pair_head(path, head, "embedding_b", "embedding_a"), head, toys.DIM)


class Leaking(nn.Module):
    """Word averaging with an embedding that depends on what it should not."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = WordAveraging(WordAveragingConfig(), WordEmbedding(ROWS))


class Centred(Leaking):
    """Takes the batch's mean away: a sentence's embedding depends on its neighbours."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        embedding = self.inner(input_ids, lengths)
        return embedding - embedding.mean(0, keepdim=True)


class Stretched(Leaking):
    """Counts the columns: a sentence's embedding depends on its padding."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        return self.inner(input_ids, lengths) + torch.ones_like(input_ids).sum(1, keepdim=True)


class Unmasked(Leaking):
    """Adds up all tokens: the padding's row is zero, but only as long as it is padding."""

    def forward(self, input_ids: Tensor, lengths: Tensor) -> Tensor:
        return self.inner.embedding(input_ids).sum(1) / lengths[:, None]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Centred, "a sentence alone and in a batch: differs"),
        (Stretched, "a sentence alone and in a batch: differs"),
        (Unmasked, "ids in the padding: differs"),
    ],
)
def test_a_faithful_graph_of_a_leaking_module_is_refused(
    path: Path, faithful: Callable[[nn.Module], None], module: type[nn.Module], message: str
) -> None:
    leaking = module()
    faithful(leaking)
    with pytest.raises(ParityError, match=message):
        check_encoder(path, leaking, VOCABULARY)


class Compared(nn.Module):
    """Log-probability that two sentences' mean words are near; a quick stand-in for an interaction network."""

    MATRICES: ClassVar[tuple[Matrix, ...]] = (Matrix(name="near", description="of the two words", range=(0.0, 1.0)),)

    def __init__(self) -> None:
        super().__init__()
        self.embedding = WordEmbedding(ROWS)
        self.scale = 1.0

    def forward(self, a: Tensor, lengths_a: Tensor, b: Tensor, lengths_b: Tensor) -> Tensor:
        means = [masked_mean(self.embedding(ids), lengths) for ids, lengths in ((a, lengths_a), (b, lengths_b))]
        return self.read((means[0] - means[1]) * self.scale)

    def read(self, difference: Tensor) -> Tensor:
        return torch.log_softmax(difference[:, :3], dim=1)

    def matrices(self, a: Tensor, lengths_a: Tensor, b: Tensor, lengths_b: Tensor) -> Tensor:
        near = torch.sigmoid(self.scale * self.embedding(a) @ self.embedding(b).transpose(1, 2))
        rows, columns = (
            torch.arange(ids.shape[1])[None, :] < lengths[:, None] for ids, lengths in ((a, lengths_a), (b, lengths_b))
        )
        return (near * rows[:, :, None] * columns[:, None])[:, None]


def exported_pair(path: Path, network: nn.Module) -> InteractionModel:
    model = InteractionModel(network, both_orders=False)
    export_pair(model, path, "toy")
    return model


def test_an_equal_pair_graph_passes_and_a_wrong_one_does_not(path: Path) -> None:
    model = exported_pair(path, Compared())
    agreement = check_pair(path, model, VOCABULARY, 40)
    assert 0 < agreement.difference < 1e-6
    assert agreement.near_ties == 0
    assert agreement.pairs > 200
    model.network.scale = 1.001
    with pytest.raises(ParityError, match=r"^graph\.onnx: .* pairs of up to .* tokens: differs by \d.*, allowed 1e-05"):
        check_pair(path, model, VOCABULARY, 40)
    model.network.scale = float("nan")
    with pytest.raises(ParityError, match="differs by nan"):
        check_pair(path, model, VOCABULARY, 40)


class CentredPairs(Compared):
    """An answer that depends on the batch."""

    def read(self, difference: Tensor) -> Tensor:
        return super().read(difference - difference.mean(0, keepdim=True))


class UnmaskedPairs(Compared):
    """An answer that counts the padding."""

    def forward(self, a: Tensor, lengths_a: Tensor, b: Tensor, lengths_b: Tensor) -> Tensor:
        return self.read(self.embedding(a).sum(1) - self.embedding(b).sum(1))


@pytest.mark.parametrize(
    ("network", "message"),
    [(CentredPairs, "a pair alone and in a batch: differs"), (UnmaskedPairs, "ids in the padding: differs")],
)
def test_a_faithful_graph_of_a_leaking_network_is_refused(
    path: Path, faithful: Callable[[nn.Module], None], network: type[nn.Module], message: str
) -> None:
    model = InteractionModel(network(), both_orders=False)
    faithful(model)
    with pytest.raises(ParityError, match=message):
        check_pair(path, model, VOCABULARY, 40)


class Decided(Compared):
    """Says which of the two is larger; of equal ones, what it was told to say."""

    def __init__(self) -> None:
        super().__init__()
        self.first_of_equals = True

    def read(self, difference: Tensor) -> Tensor:
        larger = difference[:, :1] >= 0 if self.first_of_equals else difference[:, :1] > 0
        return torch.log_softmax(torch.cat([larger.float(), difference[:, 1:2] * 0], dim=1), dim=1)


def test_what_rounding_decides_is_counted_and_too_much_of_it_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = exported_pair(path, Decided())
    # The same words in another order have the same mean, but for rounding.
    assert 0 < check_pair(path, model, VOCABULARY, 40).near_ties <= 5
    model.network.first_of_equals = False  # now the 8 equal sentences are decided otherwise too
    with pytest.raises(ParityError, match=r"^graph\.onnx: rounding decides \d+ of \d+ pairs$"):
        check_pair(path, model, VOCABULARY, 40)
    monkeypatch.setattr(parity, "NEAR_TIES", 0.1)
    agreement = check_pair(path, model, VOCABULARY, 40)
    assert 8 <= agreement.near_ties <= 0.1 * agreement.pairs
    assert agreement.difference < 1e-6  # of the others


def test_matrices_are_held_too_and_to_their_ranges(path: Path, faithful: Callable[[nn.Module], None]) -> None:
    network = Compared()
    faithful(Matrices(network))
    assert check_explanation(path, network, VOCABULARY, 40).difference < 1e-6
    network.scale = 1.01
    with pytest.raises(ParityError, match="differs by"):
        check_explanation(path, network, VOCABULARY, 40)
    network.scale = 1.0
    narrow = Matrix(name="near", description="of the two words", range=(0.0, 0.6))
    network.MATRICES = (narrow,)  # type: ignore[misc]
    with pytest.raises(ParityError, match=r"^graph\.onnx: .*: near leaves 0..0\.6$"):
        check_explanation(path, network, VOCABULARY, 40)


class _Words:
    """A tokenizer of these entries, that reads nothing of any text."""

    def __init__(self, *entries: str) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def token(self, i: int) -> str:
        return self._entries[i]

    def encode(self, text: str, max_tokens: int) -> Encoded:
        return Encoded((), 0, 0, False)


@pytest.mark.parametrize(
    ("entries", "why"), [(("[PAD]", "[UNK]"), r"no words, but \[PAD\], \[UNK\]"), (("cat",), "0 have 1 to 8 tokens")]
)
def test_a_vocabulary_without_words_ends_the_search_for_texts(entries: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        texts(_Words(*entries), 4, 8)  # type: ignore[arg-type]
