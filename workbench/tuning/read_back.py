"""A published model as a module that can be trained on: its weights are read from its graph, where they have names.

Two kinds keep the names of all weights in their graphs, and are tuned: averages of words, and transformers that read
one text. The result must give the model's golden answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from core.manifest import MANIFEST_NAME, Manifest
from core.subwords import AnyTokenizer, load_tokenizer
from training.architectures import WordAveragingConfig, build_encoder
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.errors import UserError
from training.recipes.recipe import without_gone
from training.words.served import graph_arrays, rows_of
from training.words.storage import Storage

_TRANSFORMERS = ("minilm", SentenceBERTConfig.name)
_IMPORTED = ("transformer_encoder", "transformer_pair", "transformer_classifier", "static_mean")


class TuneRefused(UserError, ValueError):
    """A model, a file or a wish that tuning does not take; a message for the user."""


@dataclass(frozen=True)
class Start:
    """A published model that can be trained on."""

    manifest: Manifest
    network: nn.Module  # an encoder of single sentences
    tokenizer: AnyTokenizer
    storage: Storage  # of its words

    @property
    def averages(self) -> bool:
        """Whether it is an average of words."""
        return not isinstance(self.network, SentenceBERT)


def look_for(folders: Iterable[Path], name: str) -> Path:
    """The folder of a model, in the first of these folders that has it; raises TuneRefused, which names those there."""
    ids: list[str] = []
    for models in dict.fromkeys(folders):
        if (models / name / MANIFEST_NAME).is_file():
            return models / name
        ids += sorted(path.parent.relative_to(models).as_posix() for path in models.glob(f"**/{MANIFEST_NAME}"))
    where = " or ".join(map(str, dict.fromkeys(folders)))
    raise TuneRefused(f"--from {name}: there is no such model in {where} (--models); there: {', '.join(ids) or 'none'}")


def read_start(folder: Path) -> Start:
    """Read a model folder.

    Raises:
        ManifestError, ArtifactError: it is no model folder, or incomplete.
        TuneRefused: it is of a kind that is not tuned, or its graph does not hold a weight.
    """
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    check_kind(manifest)
    arrays = graph_arrays(folder, manifest)
    storage: Storage = "int8" if any(name.endswith(".codes") for name in arrays) else "float32"
    if manifest.architecture in _TRANSFORMERS:
        network: nn.Module = _transformer(manifest, arrays)
    else:
        network = build_encoder(WordAveragingConfig(), WordEmbedding(rows_of(folder, arrays)))
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
    return Start(manifest, network.eval(), tokenizer, storage)


def check_kind(manifest: Manifest) -> None:
    """Raise TuneRefused for a model of another kind; the message says which ones are tuned."""
    if manifest.architecture in _IMPORTED:
        reason = "it was imported: tune it with the library that it comes from, and import it anew"
    elif manifest.architecture not in (WordAveragingConfig.name, *_TRANSFORMERS):
        reason = f"an architecture {manifest.architecture!r} is not tuned"
    elif manifest.similarity is None or manifest.similarity.comparison != "cosine":
        reason = "its score is not the cosine of two embeddings"
    else:
        return
    raise TuneRefused(f"{manifest.id}: {reason}; start from avg-paraphrase or minilm-small")


def _transformer(manifest: Manifest, arrays: Mapping[str, npt.NDArray[np.generic]]) -> SentenceBERT:
    """A bi-encoder; int8 weights are their codes times their scale."""
    settings = manifest.provenance.recipe.get("architecture")
    bert = settings.get("bert") if isinstance(settings, dict) else None
    try:
        model = SentenceBERT(SentenceBERTConfig(BERTConfig(**without_gone(bert, BERTConfig))))  # type: ignore[arg-type]
    except (TypeError, AttributeError) as error:
        raise TuneRefused(f"{manifest.id}: its manifest does not say how large it is: {error}") from error
    weights = {}
    for name, value in model.state_dict().items():
        owner = name.removesuffix(".weight")
        if name in arrays:
            array = np.array(arrays[name])
        elif f"{owner}.codes" in arrays:
            codes, scale = (np.array(arrays[f"{owner}.{part}"]).astype(np.float32) for part in ("codes", "scale"))
            # Words [V, H] have a scale for each row; layers [inputs, outputs] one for each block of an output's inputs,
            # or, published by an earlier version, for each output.
            parts = codes.reshape(len(scale), -1, codes.shape[1]) if scale.ndim == 3 else codes
            array = (parts * scale).reshape(codes.shape)
            array = array if owner.endswith(".words") else array.T
        else:
            raise TuneRefused(f"{manifest.id}: its graph does not hold {name}")
        if array.shape != tuple(value.shape):
            raise TuneRefused(f"{manifest.id}: {name} has shape {list(array.shape)}, expected {list(value.shape)}")
        weights[name] = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
    model.load_state_dict(weights)
    return model
