"""A published transformer -> the same with integer products: `models/x` -> `own-models/x-int8`.

Models published with float32 products keep their weights in int8 too, and make them float32 when they are opened. Here
they become codes of 7 bits that are multiplied as they are (`training.publish.integers`). Graphs of these models put
special tokens around ids themselves, with padding before the last one; here they get the inputs that transformers have
everywhere, so that a text is padded by its own length alone and answers stay the same to the last bit in any company.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from core.golden import GoldenPair, GoldenPairs
from core.graph import IDS, MASK, POSITIONS, SEGMENTS
from core.manifest import SHARED_NAME, Manifest
from core.subwords import Subwords
from training.errors import UserError
from training.families.transformer import BERTS_OWN
from training.publish.folders import environment, files_of, finish
from training.publish.graphs import clean, rename_values
from training.publish.integers import to_integers
from workbench.imports.model import check_id

SUFFIX = "-int8"
_TABLES = {".words.codes": IDS, ".positions.weight": POSITIONS, ".segments.weight": SEGMENTS}  # and what reads them
_OF_WEIGHTS = ("Cast", "Reshape", "Mul")  # what makes codes float32


class IntegersRefused(UserError, ValueError):
    """A model that gets no integer products; a message for the user."""


class WithIntegers(NamedTuple):
    """The new model, and how far its golden answers are from those of the model it was made from."""

    folder: Path
    difference: float


def with_integers(source: Path, models: Path) -> WithIntegers:
    """Write a model with integer products; one of its id is replaced.

    Calibrations and thresholds stay. Figures and fits of confidence go: they are of other answers.

    Args:
        source: the folder of a transformer.
        models: where the new model goes, as the old one's id with `-int8`.

    Raises:
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        IntegersRefused: it is no transformer, or is quantised already.
    """
    manifest = Manifest.load(source)
    manifest.verify(source)
    model_id = manifest.id + SUFFIX
    check_id(model_id, models, IntegersRefused)
    paths = {name: manifest.path_of(source, name) for name in manifest.files}
    graphs = {name: onnx.load(paths[name], load_external_data=False) for name in manifest.graphs}
    if any(node.op_type == "MatMulInteger" for model in graphs.values() for node in model.graph.node):
        raise IntegersRefused(f"{manifest.id}: it multiplies integers already")
    written = {name: model for name, model in graphs.items() if read_sequences(model.graph)}
    if not written:
        raise IntegersRefused(f"{manifest.id}: it is no transformer: nothing else gets integer products")
    golden = GoldenPairs.load(paths[manifest.golden]).pairs
    with tempfile.TemporaryDirectory(prefix="integers-") as temporary:
        folder, shared = Path(temporary) / model_id, Path(temporary) / SHARED_NAME
        folder.mkdir()
        shared.mkdir()
        for name, model in written.items():
            fold_weights(model.graph)
            clean(model, model_id)
            if not to_integers(model):
                raise IntegersRefused(f"{manifest.id}: {name} has no matrix of float32: it is quantised already")
            (folder / name).write_bytes(model.SerializeToString(deterministic=True))
        with_special_tokens(paths[manifest.tokenizer]).save(folder / manifest.tokenizer)
        for name in manifest.files.keys() - {*written, manifest.tokenizer}:
            is_shared = manifest.files[name].shared
            shutil.copyfile(paths[name], shared / paths[name].name if is_shared else folder / name)
        new = _described(manifest, model_id).model_copy(update={"files": manifest.files | files_of(folder)})
        finish(folder, new, (), [(pair.a, pair.b) for pair in golden], models, models / model_id)
    now = GoldenPairs.load(models / model_id / manifest.golden).pairs
    return WithIntegers(models / model_id, _difference(golden, now))


def read_sequences(graph: GraphProto) -> bool:
    """Give a transformer's graph that puts special tokens around ids itself the inputs of others, in place.

    Returns:
        Whether it is a transformer's graph, of either kind.
    """
    if any(each.name == MASK for each in graph.input):
        return True
    tables = [(node.output[0], node.input) for node in graph.node if node.op_type == "Gather"]
    read = {values[1]: name for _, values in tables for end, name in _TABLES.items() if values[0].endswith(end)}
    if len(read) != len(_TABLES):
        return False
    joins = {node.output[0]: len(node.input) for node in graph.node if node.op_type == "Concat" and _axis(node) == 1}
    pieces = joins[next(iter(read))]  # special tokens, and the texts between them
    (mask,) = (name for name, inputs in joins.items() if inputs == pieces and name not in read)
    nodes = [
        helper.make_node("Cast", [MASK], [mask], to=TensorProto.BOOL),
        helper.make_node("Shape", [MASK], ["tokens"], start=1, end=2),
    ]
    special = numpy_helper.from_array(np.array([pieces // 2 + 1]), "special_tokens")
    graph.initializer.append(special)
    for node in graph.node:
        match node.op_type, node.input[0]:
            case "Shape", "input_ids" | "input_ids_a":  # where both texts together count as the first one
                nodes.append(helper.make_node("Sub", ["tokens", special.name], node.output))
            case "Shape", "input_ids_b":
                nodes.append(helper.make_node("Sub", ["tokens", "tokens"], node.output))
            case "Shape", "lengths" | "lengths_a" | "lengths_b":
                nodes.append(helper.make_node("Shape", [MASK], node.output, end=1))
            case _ if node.output[0] not in {*read, mask}:
                nodes.append(node)
    wanted, kept = {each.name for each in graph.output}, list[NodeProto]()
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.insert(0, node)
            wanted.update(node.input)
    del graph.node[:], graph.input[:], graph.value_info[:]
    graph.node.extend(kept)
    names = (IDS, MASK, SEGMENTS, POSITIONS)
    graph.input.extend(helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names)
    rename_values(graph, read)
    return True


def _axis(node: NodeProto) -> int:
    return next(helper.get_attribute_value(each) for each in node.attribute if each.name == "axis")


def fold_weights(graph: GraphProto) -> None:
    """Make weights float32 that nodes make so of constants, in place."""
    constants = {each.name: each for each in graph.initializer if not each.external_data}
    kept = []
    for node in graph.node:
        if node.op_type in _OF_WEIGHTS and all(name in constants for name in node.input):
            given = {name: numpy_helper.to_array(constants[name]) for name in node.input}
            (array,) = ReferenceEvaluator(node).run(None, given)
            constants[node.output[0]] = numpy_helper.from_array(np.ascontiguousarray(array), node.output[0])
            graph.initializer.append(constants[node.output[0]])
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


def with_special_tokens(path: Path) -> Subwords:
    """The tokenizer, with what puts special tokens around texts where its file says nothing of it."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return Subwords(json.dumps(entries | {"post_processor": entries.get("post_processor") or BERTS_OWN}))


def _described(manifest: Manifest, model_id: str) -> Manifest:
    before = manifest.provenance
    update = {
        "created": datetime.now(UTC).date(),
        "recipe": before.recipe | {"integers_of": {"model": manifest.id, "fingerprint": manifest.fingerprint}},
        "commands": (*before.commands, f"python -m workbench integers models/{manifest.id}"),
        "environment": environment(),
    }
    title, provenance = f"{manifest.title}; products of integers", before.model_copy(update=update)
    return manifest.model_copy(update={"id": model_id, "title": title, "confidence": (), "provenance": provenance})


def _difference(before: Sequence[GoldenPair], after: Sequence[GoldenPair]) -> float:
    """The largest, of any answer."""
    now = (each.answers() for each in after)
    return max(
        abs(new[name] - value) for pair, new in zip(before, now, strict=True) for name, value in pair.answers().items()
    )
