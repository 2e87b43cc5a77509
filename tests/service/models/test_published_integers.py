"""The published transformers multiply integers: answers that no company moves by a bit, and a graph for GPUs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.golden import INTEGER_TOLERANCE
from core.manifest import Manifest
from core.sequences import feeds_of
from core.subwords import load_tokenizer
from core.tensors import load_tensors
from service.engine.graph import open_session
from tests.harness.effort import looking

PUBLISHED = Path(__file__).parents[3] / "models"
GRAPHS = {"minilm": "encoder.onnx", "minilm-small": "encoder.onnx", "minilm-cross": "pair.onnx"}
pytestmark = pytest.mark.artifacts
Rows = Callable[[Any], Any]  # pairs of ids -> rows


@pytest.fixture(scope="module", params=GRAPHS)
def graphs(request: pytest.FixtureRequest) -> tuple[Rows, Rows]:
    """One graph of a published model, and what a GPU opens in its place."""
    folder, name = PUBLISHED / request.param, GRAPHS[request.param]
    manifest = Manifest.load(folder)
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))

    def opened(file: str) -> Rows:
        kind, tensors = manifest.graph_kinds[name], load_tensors(folder, manifest)
        path = manifest.path_of(folder, file)
        run = open_session(path, kind, ["CPUExecutionProvider"], threads=1, must_use_cuda=False, tensors=tensors)
        feeds = feeds_of(run.signature, kind, tokenizer, manifest.pooling_of(name), manifest.max_tokens(name), where="")
        sides = 2 if kind == "pair" else 1
        assert run.has_integers == (file == name)
        return lambda pairs: feeds.rows(run, [*zip(*pairs, strict=True)][:sides])

    return opened(name), opened(manifest.on_cuda[name])


_TEXT = st.lists(st.integers(1_000, 30_000), min_size=1, max_size=24).map(tuple)
_PAIRS = st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=5)


@looking(8)
@given(mine=_PAIRS, others=_PAIRS)
def test_an_answer_is_the_same_to_the_last_bit_in_any_company(
    graphs: tuple[Rows, Rows], mine: list[Any], others: list[Any]
) -> None:
    integers, _ = graphs
    together = integers([*mine, *others])
    for place, pair in enumerate(mine):
        assert np.array_equal(together[place], integers([pair])[0])


def test_what_a_gpu_opens_answers_alike(graphs: tuple[Rows, Rows]) -> None:
    rng = np.random.default_rng(0)
    pairs = [[tuple(rng.integers(1_000, 30_000, size).tolist()) for size in sizes] for sizes in ((9, 7), (11, 3))]
    integers, on_cuda = (each(pairs) for each in graphs)
    scale = max(1.0, float(np.abs(integers).max()))
    assert on_cuda == pytest.approx(integers, abs=2 * INTEGER_TOLERANCE * scale)


@pytest.mark.parametrize("model", GRAPHS)
def test_all_kinds_of_cpu_with_avx2_compute_what_stands_between_the_products_alike(model: str) -> None:
    folder = PUBLISHED / model
    manifest = Manifest.load(folder)
    for name in manifest.on_cuda:
        graph = onnx.load(manifest.path_of(folder, name), load_external_data=False).graph
        assert {node.op_type for node in graph.node}.isdisjoint({"Softmax", "DynamicQuantizeLinear"})
