"""The word vectors of a published model as a word table, to train other models on without distilling again.

A row is its int8 codes times its scale. Quantising it again gives the same codes and scale, so models that freeze
these rows share one file of them in `models/shared` (`training.publishing.families.interaction`).
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from contract.errors import ArtifactError
from contract.manifest import Manifest
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer
from training.words.tables import WordTable

CODES, SCALE = "embedding.codes", "embedding.scale"


def served_words(folder: Path) -> WordTable:
    """The tokenizer and rows float32 [V, D] of a model folder whose words are stored as int8.

    Raises:
        ManifestError, ArtifactError: no model, a broken one, or one with words in another form.
    """
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    arrays: dict[str, npt.NDArray[np.generic]] = dict(load_tensors(folder, manifest))
    if manifest.encoder is not None:
        graph = onnx.load(manifest.path_of(folder, manifest.encoder), load_external_data=False).graph
        inside = [tensor for tensor in graph.initializer if tensor.name not in arrays]
        arrays |= {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in inside}
    found = {part: [array for name, array in arrays.items() if name.endswith(part)] for part in (CODES, SCALE)}
    if any(len(each) != 1 for each in found.values()):
        raise ArtifactError(f"{folder}: expected words as {CODES} and {SCALE}, found {', '.join(arrays) or 'none'}")
    (codes,), (scale,) = found.values()
    rows = codes.astype(np.float32) * scale.astype(np.float32)
    return WordTable(Tokenizer.load(manifest.path_of(folder, manifest.tokenizer)), rows)
