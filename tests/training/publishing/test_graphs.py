"""Weights that two graphs of a model hold."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from contract.tensors import tensors_of
from training.publishing.graphs import SHARED_BYTES, share_weights

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
