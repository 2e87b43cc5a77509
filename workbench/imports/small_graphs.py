"""Graphs that are written: a mean of rows and the labels of logits, which are made here, and what others made."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, numpy_helper, parser

from core.graph import OPSET
from training.publish.graphs import clean
from training.publish.integers import to_half, to_integers
from workbench.imports.files import ImportRefused
from workbench.imports.model import Storage

_HEAD = f'<ir_version: 10, opset_import: ["" : {OPSET}]>'


def classes_graph(labels: int, model_id: str) -> ModelProto:
    """A CLASSIFIER graph whose embedding is the logits."""
    model = parser.parse_model(f"""{_HEAD}
        classes (float[batch, {labels}] sentence_embedding) => (float[batch, {labels}] raw_output) {{
            raw_output = LogSoftmax <axis: int = 1> (sentence_embedding)
        }}""")
    clean(model, model_id)
    return model


def mean_graph(rows: npt.NDArray[np.float32], left_out: int | None, normalise: bool, model_id: str) -> ModelProto:
    """An ENCODER graph of a table of rows: their mean, without those of one id; 0 where every token is left out."""
    kept = "kept = Identity (real)"
    if left_out is not None:
        kept = f"""
            other = Constant <value_int: int = {left_out}> ()
            is_other = Equal (input_ids, other)
            is_read = Not (is_other)
            kept = And (real, is_read)"""
    ending = "sentence_embedding = Identity (mean)"
    if normalise:
        ending = """
            squares = ReduceSumSquare <keepdims: int = 1> (mean, second)
            length = Sqrt (squares)
            least = Constant <value_float: float = 1e-12> ()
            divisor = Max (length, least)
            sentence_embedding = Div (mean, divisor)"""
    model = parser.parse_model(f"""{_HEAD}
        mean (int64[batch, tokens] input_ids, int64[batch] lengths)
            => (float[batch, {rows.shape[1]}] sentence_embedding) {{
            first = Constant <value_ints: ints = [0]> ()
            second = Constant <value_ints: ints = [1]> ()
            zero = Constant <value_int: int = 0> ()
            one = Constant <value_int: int = 1> ()
            shape = Shape <start: int = 1, end: int = 2> (input_ids)
            width = Squeeze (shape)
            places = Range (zero, width, one)
            row = Unsqueeze (places, first)
            until = Unsqueeze (lengths, second)
            real = Less (row, until)
            {kept}
            weights = Cast <to: int = 1> (kept)
            of_row = Unsqueeze (weights, second)
            states = Gather (table, input_ids)
            product = MatMul (of_row, states)
            sums = Squeeze (product, second)
            total = ReduceSum <keepdims: int = 1> (weights, second)
            at_least_one = Constant <value_float: float = 1.0> ()
            count = Max (total, at_least_one)
            mean = Div (sums, count)
            {ending}
        }}""")
    model.graph.initializer.append(numpy_helper.from_array(rows, "table"))
    clean(model, model_id)
    return model


def save_graph(model: ModelProto, path: Path, storage: Storage) -> None:
    """Write a graph, its weights as they are, in float16 or in int8.

    Raises:
        ImportRefused: it is too large for one file, or has no weights in float32.
    """
    if storage != "float32" and not (to_integers if storage == "int8" else to_half)(model):
        raise ImportRefused(f"--{storage}: {path.name} has no weights in float32: its graph is quantised already")
    try:
        onnx.checker.check_model(model)
        path.write_bytes(model.SerializeToString(deterministic=True))
    except ValueError as error:  # protobuf's limit
        raise ImportRefused(f"a graph of 2 GB or more cannot be written in one file: give --int8 ({error})") from error
