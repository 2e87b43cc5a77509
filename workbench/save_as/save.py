"""A model folder of ours -> a folder of another library, written and read back by that library, and compared."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import tokenizers
from onnx import TensorProto, helper, numpy_helper

from contract.graph import ENCODER
from contract.manifest import Manifest
from contract.scoring import Embeddings
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer
from training.errors import UserError
from training.publishing.graphs import rename_values
from training.publishing.runtime import PublishedModel
from training.publishing.texts import texts
from workbench.save_as.vocabulary import PAD, UNKNOWN, Vocabulary, vocabulary_of

Form = Literal["sentence-transformers", "model2vec", "onnx"]
TEXTS, _LONGEST, _BATCH = 400, 100, 32
_LIBRARY = {"sentence-transformers": "sentence-transformers", "model2vec": "model2vec", "onnx": "onnxruntime"}
_USE = {
    "sentence-transformers": 'SentenceTransformer("{folder}").encode(["A sentence."])  # from sentence_transformers',
    "model2vec": 'StaticModel.from_pretrained("{folder}").encode(["A sentence."])  # from model2vec',
    "onnx": "input_ids and attention_mask (padding to the right) -> sentence_embedding; ids by tokenizer.json",
}


class SaveRefused(UserError, ValueError):
    """A model that has no such form; says why, and which form it has."""


class SaveReport(NamedTuple):
    """How near the other library's answers are to ours."""

    library: str  # with its version
    texts: int
    read: int  # of these, whose every word both read
    difference: float  # largest of those texts' embeddings
    cosine: float  # least over all texts

    @property
    def sentence(self) -> str:
        """For the command line and the folder's README."""
        return (
            f"{self.library}, {self.texts} texts: in {self.read} it reads every word as we do, embeddings differ by at "
            f"most {self.difference:.1e}; least cosine over all {self.cosine:.4f}"
        )


def save_as(form: Form, source: Path, folder: Path) -> SaveReport:
    """Write a model in the form of another library; returns how near that is.

    Args:
        form: which.
        source: folder of the model.
        folder: a new or empty one.

    Raises:
        SaveRefused: the model has no such form.
        FileExistsError: the folder has files.
        ArtifactError: the model is missing or broken.
        ModuleNotFoundError: the library is not installed.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    manifest = Manifest.load(source)
    manifest.verify(source)
    model = PublishedModel(source, manifest)
    folder.mkdir(parents=True, exist_ok=True)
    match form:
        case "sentence-transformers":
            read = _sentence_transformers(*_rows(model), folder)
        case "model2vec":
            read = _model2vec(*_rows(model), folder, manifest.limits.max_tokens)
        case "onnx":
            read = _onnx(model, source, folder)
    done = _compared(form, model, read)
    _write_readme(form, manifest, folder, done)
    return done


def _rows(model: PublishedModel) -> tuple[Vocabulary, npt.NDArray[np.float32]]:
    """The tokenizer of an average of words, and the embedding of each of its entries; [UNK] is the mean of our buckets.

    Raises:
        SaveRefused: it is no average of words, or its tokenizer has another form.
    """
    manifest = model.manifest
    if not manifest.additive or not isinstance(model.tokenizer, Tokenizer):
        raise SaveRefused(
            f"{manifest.id}: its architecture, {manifest.architecture}, is no average of our words"
            + ("; it can be saved as onnx" if manifest.encoder is not None else "")
        )
    vocabulary = vocabulary_of(model.tokenizer)
    rows = model.embed_ids([(i,) for i in range(1, len(model.tokenizer))])
    buckets = rows[-model.tokenizer.buckets :].mean(axis=0)
    rows = np.concatenate([np.zeros_like(rows[:1]), rows])[vocabulary.ids]
    rows[vocabulary.tokenizer.token_to_id(UNKNOWN)] = buckets
    return vocabulary, np.ascontiguousarray(rows, dtype=np.float32)


def _sentence_transformers(vocabulary: Vocabulary, rows: Embeddings, folder: Path) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    module = StaticEmbedding(vocabulary.tokenizer, embedding_weights=rows)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder), create_model_card=False)
    read = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    return lambda found: read.encode(found, show_progress_bar=False)


def _model2vec(vocabulary: Vocabulary, rows: Embeddings, folder: Path, most: int) -> Callable[[list[str]], Any]:
    from model2vec import StaticModel

    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "max_length": most}
    StaticModel(rows, vocabulary.tokenizer, config, normalize=False).save_pretrained(folder)
    return StaticModel.from_pretrained(folder).encode


def _onnx(model: PublishedModel, source: Path, folder: Path) -> Callable[[list[str]], Any]:
    """Write `model.onnx`, all weights in it, and `tokenizer.json`, whose ids need no special tokens.

    Raises:
        SaveRefused: it has no encoder of single sentences.
    """
    manifest = model.manifest
    if manifest.encoder is None:
        raise SaveRefused(f"{manifest.id}: it reads both texts of a pair together, and has no encoder of one")
    ours = onnx.load(manifest.path_of(source, manifest.encoder), load_external_data=False)
    graph, arrays = ours.graph, load_tensors(source, manifest)
    for tensor in graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(arrays[tensor.name]), tensor.name))
    ids, lengths = (f"ours/{name}" for name in ENCODER.inputs)
    rename_values(graph, dict(zip(ENCODER.inputs, (ids, lengths), strict=True)))
    constants = {"given/axis": np.array([1]), "given/one": np.array(1)}
    nodes = [
        helper.make_node("ReduceSum", ["attention_mask", "given/axis"], ["given/counted"], keepdims=0),
        helper.make_node("Max", ["given/counted", "given/one"], [lengths]),  # a text without a word is read as padding
    ]
    if isinstance(model.tokenizer, Tokenizer):
        vocabulary = vocabulary_of(model.tokenizer)
        vocabulary.tokenizer.save(str(folder / "tokenizer.json"))
        constants["given/our_ids"] = vocabulary.ids
        nodes.append(helper.make_node("Gather", ["given/our_ids", "input_ids"], [ids]))
    else:
        model.tokenizer.save(folder / "tokenizer.json")
        nodes.append(helper.make_node("Identity", ["input_ids"], [ids]))
    nodes += graph.node
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    for name in ("input_ids", "attention_mask"):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]))
    (output,) = ENCODER.outputs
    graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", manifest.dim]))
    onnx.checker.check_model(ours)
    onnx.save(ours, folder / "model.onnx")
    return _reader(folder, manifest.limits.max_tokens)


def _reader(folder: Path, most: int) -> Callable[[list[str]], Any]:
    """As another program reads them: the library `tokenizers`, padding to the right, ONNX Runtime."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(most)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id(PAD), pad_token=PAD)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])

    def run(batch: list[str]) -> Any:
        read = tokenizer.encode_batch(batch, add_special_tokens=False)
        ids, mask = (np.array([getattr(each, name) for each in read]) for name in ("ids", "attention_mask"))
        return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]

    return lambda found: np.concatenate([run(found[i : i + _BATCH]) for i in range(0, len(found), _BATCH)])


def _compared(form: Form, model: PublishedModel, read: Callable[[list[str]], Any]) -> SaveReport:
    """Hold what the unmodified library reads in the folder against what we do."""
    found = texts(model.tokenizer, TEXTS, min(model.manifest.limits.max_tokens, _LONGEST))
    ours, theirs = model.embed(found).astype(np.float64), np.asarray(read(found), dtype=np.float64)
    whole = np.ones(len(found), dtype=bool)
    if isinstance(model.tokenizer, Tokenizer):  # it hashes words into buckets, which nothing else does
        buckets = len(model.tokenizer) - model.tokenizer.buckets
        whole = np.array([max(model.tokenizer.encode(text, TEXTS).ids) < buckets for text in found])
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosines = (ours * theirs).sum(axis=1)[lengths > 0] / lengths[lengths > 0]
    library = f"{_LIBRARY[form]} {version(_LIBRARY[form])}"
    off = np.abs(ours - theirs)[whole]
    return SaveReport(library, len(found), int(whole.sum()), float(off.max(initial=0.0)), float(cosines.min()))


def _write_readme(form: Form, manifest: Manifest, folder: Path, done: SaveReport) -> None:
    heads = [task for task in manifest.tasks if task != "similarity" or manifest.score_task("similarity").graph]
    lines = [
        f"# {manifest.id} for {form}",
        f"{manifest.title}. Saved by `python -m workbench save-as {form} {manifest.id}`.",
        f"```\n{_USE[form].format(folder=folder.name)}\n```",
        f"Parity: {done.sentence}.",
        "Only embeddings are here: scores are not calibrated as the service's are"
        + (f", and its tasks {', '.join(heads)} stay behind." if heads else "."),
    ]
    data = "\n".join(f"- {each.name}: {each.licence}" for each in manifest.training_data)
    (folder / "README.md").write_text("\n\n".join([*lines, f"Trained on:\n\n{data}"]) + "\n", encoding="utf-8")
