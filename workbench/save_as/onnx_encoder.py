"""A siamese encoder as ONNX with the inputs that most programs give: `input_ids` and `attention_mask`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnx import TensorProto, helper, numpy_helper

from contract.graph import ENCODER
from contract.scoring import Embeddings
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer
from training.publishing.graphs import rename_values
from training.publishing.runtime import PublishedModel
from workbench.save_as.static import SaveRefused
from workbench.save_as.vocabulary import PAD, vocabulary_of

_OURS = "ours/"  # before the names that the other inputs take
_BATCH = 32


def save_onnx(model: PublishedModel, source: Path, folder: Path) -> None:
    """Write `model.onnx`, all weights in it, and `tokenizer.json`, whose ids need no special tokens.

    Args:
        model: opened from `source`.
        source: its folder.
        folder: to write into.

    Raises:
        SaveRefused: it has no encoder of single sentences.
    """
    manifest = model.manifest
    if manifest.encoder is None:
        raise SaveRefused(f"{manifest.id}: it reads both texts of a pair together, and has no encoder of one")
    ours = onnx.load(manifest.path_of(source, manifest.encoder), load_external_data=False)
    arrays = load_tensors(source, manifest)
    for tensor in ours.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(arrays[tensor.name]), tensor.name))
    graph = ours.graph
    ids, lengths = (_OURS + name for name in ENCODER.inputs)
    rename_values(graph, dict(zip(ENCODER.inputs, (ids, lengths), strict=True)))
    (output,) = ENCODER.outputs
    node = helper.make_node
    constants = [
        numpy_helper.from_array(np.array([1]), "given/axis"),
        numpy_helper.from_array(np.array(1), "given/one"),
    ]
    nodes = [
        node("ReduceSum", ["attention_mask", "given/axis"], ["given/counted"], keepdims=0),
        node("Max", ["given/counted", "given/one"], [lengths]),  # a text without a word is read as padding
    ]
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model.tokenizer, Tokenizer):
        vocabulary = vocabulary_of(model.tokenizer)
        vocabulary.tokenizer.save(str(folder / "tokenizer.json"))
        constants.append(numpy_helper.from_array(vocabulary.ids, "given/our_ids"))
        nodes.append(node("Gather", ["given/our_ids", "input_ids"], [ids]))
    else:
        model.tokenizer.save(folder / "tokenizer.json")
        nodes.append(node("Identity", ["input_ids"], [ids]))
    whole = [*nodes, *graph.node]
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend(whole)
    graph.initializer.extend(constants)
    for name in ("input_ids", "attention_mask"):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]))
    graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", manifest.dim]))
    onnx.checker.check_model(ours)
    (folder / "model.onnx").write_bytes(ours.SerializeToString(deterministic=True))


def read_onnx(folder: Path, max_tokens: int) -> Callable[[list[str]], Embeddings]:
    """The saved graph as another program uses it: the library `tokenizers`, padding to the right, ONNX Runtime."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(max_tokens)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id(PAD), pad_token=PAD)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])

    def read(texts: list[str]) -> Embeddings:
        found = []
        for start in range(0, len(texts), _BATCH):
            batch = tokenizer.encode_batch(texts[start : start + _BATCH], add_special_tokens=False)
            feeds = {
                "input_ids": np.array([each.ids for each in batch], dtype=np.int64),
                "attention_mask": np.array([each.attention_mask for each in batch], dtype=np.int64),
            }
            found.append(session.run(None, feeds)[0])
        return np.concatenate(found)

    return read
