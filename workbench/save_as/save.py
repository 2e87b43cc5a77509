"""A model folder of ours -> a folder of another library, read back by that library and compared."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np

from contract.manifest import Manifest
from contract.scoring import Embeddings
from contract.text import split_words
from contract.tokenizer import Tokenizer
from training.publishing.runtime import PublishedModel
from training.publishing.texts import texts
from workbench.save_as.onnx_encoder import read_onnx, save_onnx
from workbench.save_as.static import (
    read_model2vec,
    read_sentence_transformers,
    save_model2vec,
    save_sentence_transformers,
)
from workbench.save_as.vocabulary import unread_words

logger = logging.getLogger(__name__)

Form = Literal["sentence-transformers", "model2vec", "onnx"]
TEXTS, _LONGEST = 400, 100
_LIBRARY = {"sentence-transformers": "sentence-transformers", "model2vec": "model2vec", "onnx": "onnxruntime"}
_USE = {
    "sentence-transformers": 'SentenceTransformer("{folder}").encode(["A sentence."])  # from sentence_transformers',
    "model2vec": 'StaticModel.from_pretrained("{folder}").encode(["A sentence."])  # from model2vec',
    "onnx": "input_ids and attention_mask (padding to the right) -> sentence_embedding; ids by tokenizer.json",
}


@dataclass(frozen=True)
class Saved:
    """How near the other library's answers are to ours."""

    library: str  # with its version
    texts: int
    read: int  # of these, whose every word both read
    difference: float | None  # largest of those texts' embeddings; None: there is no such text
    cosine: float  # least over all texts
    unread: tuple[str, ...]  # words of the texts that only our tokenizer reads

    @property
    def sentence(self) -> str:
        """For the command line and the folder's README."""
        same = "" if self.difference is None else f", embeddings differ by at most {self.difference:.1e}"
        return (
            f"{self.library}, {self.texts} texts: in {self.read} it reads every word as we do{same}; least cosine over "
            f"all {self.cosine:.4f}"
        )


def save_as(form: Form, source: Path, folder: Path) -> Saved | None:
    """Write a model in the form of another library; returns how near that is, None where it is not installed.

    Args:
        form: which.
        source: folder of the model.
        folder: a new or empty one.

    Raises:
        SaveRefused: the model has no such form.
        FileExistsError: the folder has files.
        ArtifactError: the model is missing or broken.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    manifest = Manifest.load(source)
    manifest.verify(source)
    model = PublishedModel(source, manifest)
    match form:
        case "sentence-transformers":
            save_sentence_transformers(model, folder)
        case "model2vec":
            save_model2vec(model, folder)
        case "onnx":
            save_onnx(model, source, folder)
    done = compare(form, model, folder)
    _write_readme(form, manifest, folder, done)
    return done


def compare(form: Form, model: PublishedModel, folder: Path) -> Saved | None:
    """Let the unmodified library read the folder; None where it is not installed."""
    try:
        read: Callable[[list[str]], Embeddings]
        match form:
            case "sentence-transformers":
                read = read_sentence_transformers(folder)
            case "model2vec":
                read = read_model2vec(folder)
            case "onnx":
                read = read_onnx(folder, model.manifest.limits.max_tokens)
    except ModuleNotFoundError as error:
        logger.warning("%s is not installed (%s): parity is not measured", form, error.name)
        return None
    found = texts(model.tokenizer, TEXTS, min(model.manifest.limits.max_tokens, _LONGEST))
    ours, theirs = model.embed(found).astype(np.float64), read(found).astype(np.float64)
    unread: dict[str, None] = {}
    whole = np.ones(len(found), dtype=bool)
    if isinstance(model.tokenizer, Tokenizer):
        for i, text in enumerate(found):
            missing = unread_words(model.tokenizer, split_words(text))
            unread |= dict.fromkeys(missing)
            whole[i] = not missing
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosines = (ours * theirs).sum(axis=1)[lengths > 0] / lengths[lengths > 0]
    return Saved(
        library=f"{_LIBRARY[form]} {version(_LIBRARY[form])}",
        texts=len(found),
        read=int(whole.sum()),
        difference=float(np.abs(ours - theirs)[whole].max()) if whole.any() else None,
        cosine=float(cosines.min()),
        unread=tuple(unread),
    )


def _write_readme(form: Form, manifest: Manifest, folder: Path, done: Saved | None) -> None:
    heads = [task for task in manifest.tasks if task != "similarity" or manifest.score_task("similarity").graph]
    lines = [
        f"# {manifest.id} for {form}",
        f"{manifest.title}. Saved by `python -m workbench save-as {form} {manifest.id}`.",
        f"```\n{_USE[form].format(folder=folder.name)}\n```",
        "Parity: " + ("not measured, the library is not installed." if done is None else done.sentence + "."),
        "Only embeddings are here: scores are not calibrated as the service's are"
        + (f", and its tasks {', '.join(heads)} stay behind." if heads else "."),
    ]
    data = "\n".join(f"- {each.name}: {each.licence}" for each in manifest.training_data)
    (folder / "README.md").write_text("\n\n".join([*lines, f"Trained on:\n\n{data}"]) + "\n", encoding="utf-8")
