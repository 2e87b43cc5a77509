"""The word vectors of a published model as a word table, to train other models on without distilling again.

A row is its int8 codes times its scale, where it is not stored as float32. Quantising it again gives the same codes and
scale, so models that freeze these rows share one file of them in `models/shared`
(`training.families.words`).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from core.errors import ArtifactError
from core.manifest import Manifest
from core.tensors import load_tensors
from core.tokenizer import Tokenizer
from training.data.words.tables import Matrix, WordTable

Arrays = Mapping[str, npt.NDArray[np.generic]]
_FORMS = (("embedding.codes", "embedding.scale"), ("embedding.weight",))  # int8, float32


def served_words(folder: Path) -> WordTable:
    """The tokenizer and rows float32 [V, D] of a model folder.

    Raises:
        ManifestError, ArtifactError: no model, a broken one, or one with words in another form.
    """
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    rows = rows_of(folder, graph_arrays(folder, manifest))
    return WordTable(Tokenizer.load(manifest.path_of(folder, manifest.tokenizer)), rows)


def graph_arrays(folder: Path, manifest: Manifest) -> Arrays:
    """Every weight of a model's encoder by its name, those outside its graph too."""
    arrays: dict[str, npt.NDArray[np.generic]] = dict(load_tensors(folder, manifest))
    if manifest.encoder is not None:
        graph = onnx.load(manifest.path_of(folder, manifest.encoder), load_external_data=False).graph
        inside = [tensor for tensor in graph.initializer if tensor.name not in arrays]
        arrays |= {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in inside}
    return arrays


def rows_of(folder: Path, arrays: Arrays) -> Matrix:
    """The word vectors among the weights; raises ArtifactError for words in another form."""
    for form in _FORMS:
        found = [[array for name, array in arrays.items() if name.endswith(part)] for part in form]
        if all(len(each) == 1 for each in found):
            rows = np.ones((), dtype=np.float32)
            for (array,) in found:
                rows = rows * array.astype(np.float32)
            return rows
    known = " or ".join(" and ".join(form) for form in _FORMS)
    raise ArtifactError(f"{folder}: expected words as {known}, found {', '.join(arrays) or 'none'}")
