"""A published model as a module that can be trained on: its weights are read from its graph, where they have names.

Two kinds keep the names of all weights in their graphs, and are tuned: averages of words, and transformers that embed
one text, published here or imported by their weights. The library transformers builds a network from the `config.json`
in the folder. The result must give the model's golden answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from core.manifest import MANIFEST_NAME, Manifest
from core.sequences import SequenceFeeds
from core.subwords import AnyTokenizer, Subwords, load_tokenizer
from training.data.words.served import graph_arrays, rows_of
from training.errors import UserError
from training.models import WordAveragingConfig, build_encoder
from training.models.layers import WordEmbedding
from training.models.transformer import (
    SequenceEncoder,
    inputs_of,
    words_of,
)
from training.publish.network_graph import GraphStorage, stored_weights

# How the weights of a network are named in its graph, by the module that was exported: here, and by an import.
_EXPORTED_AS = ("network.", "model.")


class TuneRefused(UserError, ValueError):
    """A model, a file or a wish that tuning does not take; a message for the user."""

    exit_code = 2


class WorseThanStart(TuneRefused):
    """The tuned model is not published: it is worse than the model that it started from."""

    exit_code = 1


@dataclass(frozen=True)
class Start:
    """A published model that can be trained on."""

    manifest: Manifest
    network: nn.Module  # an encoder of single sentences
    tokenizer: AnyTokenizer
    storage: GraphStorage

    @property
    def averages(self) -> bool:
        """Whether it is an average of words."""
        return not isinstance(self.network, SequenceEncoder)

    @property
    def prompt(self) -> str:
        """What stands before both texts of a similarity."""
        return self.manifest.prompts.text if self.manifest.prompts is not None else ""


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
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
    if manifest.network_config is not None:
        encoder, storage = _transformer(folder, manifest, tokenizer)
        return Start(manifest, encoder.eval(), tokenizer, storage)
    arrays = graph_arrays(folder, manifest)
    storage = "int8" if any(name.endswith(".codes") for name in arrays) else "float32"
    network = build_encoder(WordAveragingConfig(), WordEmbedding(rows_of(folder, arrays)))
    return Start(manifest, network.eval(), tokenizer, storage)


def check_kind(manifest: Manifest) -> None:
    """Raise TuneRefused for a model of another kind; the message says which ones are tuned."""
    if manifest.similarity is None or manifest.similarity.comparison != "cosine":
        reason = "its score is not the cosine of two embeddings"
    elif manifest.network_config is None and manifest.architecture != WordAveragingConfig.name:
        reason = f"{manifest.architecture!r} is neither an average of words nor a transformer imported by its weights"
    else:
        return
    raise TuneRefused(f"{manifest.id}: {reason}; start from avg-paraphrase or minilm-small")


def _transformer(folder: Path, manifest: Manifest, tokenizer: AnyTokenizer) -> tuple[SequenceEncoder, GraphStorage]:
    from transformers import AutoConfig, AutoModel

    assert manifest.network_config is not None
    assert manifest.encoder is not None
    if manifest.pooling is None or not isinstance(tokenizer, Subwords):
        raise TuneRefused(f"{manifest.id}: its graph pools by itself, so what is to be learnt ends within it")
    try:
        config = AutoConfig.from_pretrained(manifest.path_of(folder, manifest.network_config))
        # Whatever precision the configuration names: the graph's weights are read in float32.
        network: Any = AutoModel.from_config(config, attn_implementation="eager", dtype=torch.float32)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise TuneRefused(f"{manifest.id}: transformers cannot build its network: {error}") from None
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # no state depends on it
    held, storage = stored_weights(folder, manifest, manifest.encoder)
    weights = {
        name: held[prefix + name] for name in network.state_dict() for prefix in _EXPORTED_AS if prefix + name in held
    }
    _load(network, weights, manifest)
    words_of(network).weight.requires_grad_(False)
    feeds = SequenceFeeds(tokenizer.special_tokens(1), inputs_of(network), None, manifest.limits.max_tokens)
    return SequenceEncoder(network, feeds, manifest.pooling), storage


def _load(network: nn.Module, weights: Mapping[str, npt.NDArray[np.float32]], manifest: Manifest) -> None:
    own = network.state_dict()
    for name, array in weights.items():
        if name in own and array.shape != tuple(own[name].shape):
            raise TuneRefused(f"{manifest.id}: {name} has shape {list(array.shape)}, expected {list(own[name].shape)}")
    found = {name: torch.from_numpy(np.array(array, dtype=np.float32)) for name, array in weights.items()}
    if missing := network.load_state_dict(found, strict=False).missing_keys:
        raise TuneRefused(f"{manifest.id}: its graph does not hold {missing[0]}")
