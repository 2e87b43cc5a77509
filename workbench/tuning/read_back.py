"""A published model folder as a module that can be trained on: its weights are read from its graphs.

An export gives most weights their own names, but joins, turns or renames some. So a module of the same architecture is
exported with weights that are numbers of their own; where each number lies in that graph, the published graph has the
weight. The result must give the model's golden answers.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import nn

from contract.manifest import MANIFEST_NAME, Manifest
from contract.subwords import AnyTokenizer, load_tokenizer
from contract.tensors import load_tensors
from training.architectures import (
    ArchitectureConfig,
    DANConfig,
    GRANConfig,
    InteractionConfig,
    LSTMConfig,
    MGIMConfig,
    ProjectionConfig,
    PWIMConfig,
    RNNConfig,
    WordAveragingConfig,
    build_encoder,
    build_interaction,
)
from training.architectures.models import InteractionModel
from training.architectures.parts.heads import PairHead
from training.architectures.parts.layers import width
from training.architectures.transformer import BERTConfig, SentenceBERT, SentenceBERTConfig
from training.publishing.export import export_encoder, export_pair
from training.publishing.graphs import graphs_in
from training.recipes.recipe import without_gone
from training.words.storage import Int8Embedding, Storage, stored

Arrays = Mapping[str, npt.NDArray[np.generic]]
_CONFIGS: Mapping[str, type[ArchitectureConfig | InteractionConfig]] = {
    kind.__name__: kind
    for kind in (
        *(WordAveragingConfig, ProjectionConfig, DANConfig, RNNConfig, LSTMConfig, GRANConfig),
        *(PWIMConfig, MGIMConfig),
    )
}
_TRANSFORMERS = ("minilm", "sentence_bert")
_REASONS = {
    "cross_encoder": "it has a head for each of several tasks, and tuning one would move the others",
    "pwim_tasks": "it has a head for each of several tasks, and tuning one would move the others",
    **dict.fromkeys(
        (
            "bert_pair",
            "transformer_encoder",
            "transformer_pair",
            "transformer_classifier",
            "static_mean",
            "onnx_encoder",
        ),
        "it was imported, and imported models cannot be tuned here: tune it with the library that it comes from, and "
        "import it anew, or start from minilm-small",
    ),
}
_STEP = 2.0**-23  # between two float32 numbers from 1 to 2
_PROBE_WORDS = 16


class TuneRefused(ValueError):
    """A model, a file or a wish that tuning does not take; a message for the user."""


@dataclass(frozen=True)
class Start:
    """A published model that can be trained on."""

    manifest: Manifest
    network: nn.Module  # an encoder, or an `InteractionModel`
    heads: Mapping[str, PairHead]  # of a siamese model, by task
    tokenizer: AnyTokenizer
    config: ArchitectureConfig | InteractionConfig | SentenceBERTConfig
    storage: Storage  # of its words


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
        TuneRefused: its architecture is not known here, or its graph was exported otherwise.
    """
    manifest = Manifest.load(folder)
    manifest.verify(folder)
    config = config_of(manifest)
    arrays = _arrays(folder, manifest)
    if isinstance(config, SentenceBERTConfig):
        network: nn.Module = _transformer(manifest, config, arrays)
        storage: Storage = "int8" if any(name.endswith(".codes") for name in arrays) else "float32"
    else:
        network, storage = _rebuilt(manifest, config, arrays)
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
    return Start(manifest, network.eval(), _heads(folder, manifest), tokenizer, config, storage)


def config_of(manifest: Manifest) -> ArchitectureConfig | InteractionConfig | SentenceBERTConfig:
    """The architecture that a manifest records; raises TuneRefused, which says why it is not taken."""

    def refused(reason: str) -> TuneRefused:
        return TuneRefused(f"{manifest.id}: an architecture {manifest.architecture!r} cannot be tuned: {reason}")

    settings = manifest.provenance.recipe.get("architecture")
    known = _REASONS.get(manifest.architecture, "it is not known here")
    if manifest.similarity is None and manifest.entailment is None:
        raise refused("it scores no pairs")
    if not isinstance(settings, dict):
        raise refused(known)
    if manifest.architecture in _TRANSFORMERS:
        rest = {name: value for name, value in settings.items() if name not in ("bert", "kind")}
        config: Any = _made(SentenceBERTConfig, rest | {"bert": _made(BERTConfig, settings.get("bert"))})
    else:
        kind = _CONFIGS.get(str(settings.get("kind")))
        config = kind and _made(kind, {name: value for name, value in settings.items() if name != "kind"})
    if config is None:
        raise refused(known)
    found: ArchitectureConfig | InteractionConfig | SentenceBERTConfig = config
    return found


def _made(kind: type, settings: Any) -> Any:
    """A config of JSON settings; None where these are of another version."""
    if not isinstance(settings, dict):
        return None
    settings = without_gone(settings, kind)
    if not set(settings) <= {field.name for field in fields(kind)}:
        return None
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()})


def _arrays(folder: Path, manifest: Manifest) -> dict[str, npt.NDArray[np.generic]]:
    """Every initializer of the graph that reads texts, and the tensors outside it."""
    name = manifest.encoder or (None if manifest.similarity is None else manifest.similarity.graph)
    if name is None:
        raise TuneRefused(f"{manifest.id}: it has no graph that scores pairs")
    graph = onnx.load(manifest.path_of(folder, name), load_external_data=False).graph
    outside: dict[str, npt.NDArray[np.generic]] = dict(load_tensors(folder, manifest))
    return outside | {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for each in graphs_in(graph)
        for tensor in each.initializer
        if tensor.name not in outside
    }


def _rebuilt(
    manifest: Manifest, config: ArchitectureConfig | InteractionConfig, arrays: Arrays
) -> tuple[nn.Module, Storage]:
    """The network around the words as they are stored."""
    words, storage = _words(manifest, arrays)
    probe_words = stored(torch.randn(_PROBE_WORDS, width(words)), storage)
    if isinstance(config, PWIMConfig | MGIMConfig):
        similarity = manifest.similarity
        if similarity is None or similarity.classes is None:
            raise TuneRefused(f"{manifest.id}: its outputs are no classes of ratings")
        classes = len(similarity.classes)
        model, probe = (
            InteractionModel(build_interaction(config, each, classes), both_orders=similarity.symmetric)
            for each in (words, probe_words)
        )
        export: Callable[[nn.Module, Path, str], None] = export_pair
    else:
        model, probe = build_encoder(config, words), build_encoder(config, probe_words)  # type: ignore[assignment]
        export = export_encoder
    weights = recovered(probe, lambda module, path: export(module, path, "probe"), arrays, manifest)
    model.load_state_dict(weights, strict=False)
    return model, storage


def _words(manifest: Manifest, arrays: Arrays) -> tuple[nn.Module, Storage]:
    found = {
        name.rpartition(".")[2]: torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.rpartition(".")[0] in ("embedding", "network.embedding")
    }
    if set(found) == {"codes", "scale"}:
        kept = Int8Embedding(found["codes"].float())
        kept.codes, kept.scale = found["codes"], found["scale"]
        return kept, "int8"
    if set(found) == {"weight"}:
        return nn.Embedding.from_pretrained(found["weight"]), "float32"
    raise TuneRefused(f"{manifest.id}: its graph has no words in a form that is known here")


def recovered(
    probe: nn.Module, export: Callable[[nn.Module, Path], None], arrays: Arrays, manifest: Manifest
) -> dict[str, torch.Tensor]:
    """The weights of a module, but for its words, out of the arrays of a published graph.

    Args:
        probe: a module of that architecture; its weights are overwritten.
        export: writes it as the published one was written.
        arrays: of the published graph, by name.
        manifest: for messages.

    Raises:
        TuneRefused: the graphs have other names or shapes, or a weight is not in the graph.
    """
    weights = {name: value for name, value in probe.state_dict().items() if "embedding." not in name}
    total = sum(value.numel() for value in weights.values())
    if not total:
        return {}
    assert total < 1 / _STEP - 1, "more weights than there are numbers"
    first = 1
    for value in weights.values():  # the state dict shares memory with the module
        numbers = torch.arange(first, first + value.numel(), dtype=torch.float64)
        value.copy_((1 + numbers * _STEP).float().view(value.shape))
        first += value.numel()
    with tempfile.TemporaryDirectory(prefix="tune-") as folder:
        path = Path(folder) / "probe.onnx"
        export(probe, path)
        graph = onnx.load(path).graph
    found = np.full(total, np.nan, dtype=np.float32)
    for tensor in (each for inner in graphs_in(graph) for each in inner.initializer):
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or "embedding." in tensor.name:
            continue
        place = (values.astype(np.float64) - 1) / _STEP
        ours = (place == np.round(place)) & (place >= 1) & (place <= total)
        if not ours.any():
            continue
        there = arrays.get(tensor.name)
        if there is None or there.shape != values.shape:
            versions = ", ".join(f"{name} {version}" for name, version in manifest.provenance.environment.items())
            raise TuneRefused(
                f"{manifest.id}: its graph has no {tensor.name} {list(values.shape)}: it was exported by other "
                f"versions ({versions})"
            )
        found[place[ours].astype(np.int64) - 1] = there[ours]
    sizes = [value.numel() for value in weights.values()]
    parts = np.split(found, np.cumsum(sizes)[:-1])
    for name, part in zip(weights, parts, strict=True):
        if np.isnan(part).any():
            raise TuneRefused(f"{manifest.id}: its graph does not hold {name}")
    return {
        name: torch.from_numpy(part.reshape(weights[name].shape).copy())
        for name, part in zip(weights, parts, strict=True)
    }


def _transformer(manifest: Manifest, config: SentenceBERTConfig, arrays: Arrays) -> SentenceBERT:
    """A bi-encoder: its export keeps the names of all weights; int8 ones are their codes times their scale."""
    model = SentenceBERT(config)
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


def _heads(folder: Path, manifest: Manifest) -> dict[str, PairHead]:
    """The heads over two embeddings whose weights have their own names; a support vector machine is none."""
    found = {}
    graphs = {"similarity": manifest.similarity, "entailment": manifest.entailment}
    for task, described in graphs.items():
        if manifest.encoder is None or described is None or described.graph is None:
            continue
        graph = onnx.load(folder / described.graph).graph
        weights = {each.name: torch.from_numpy(onnx.numpy_helper.to_array(each).copy()) for each in graph.initializer}
        if not {"product.weight", "difference.weight", "output.weight"} <= set(weights):
            continue
        hidden, dim = weights["product.weight"].shape
        head = PairHead(dim, len(weights["output.weight"]), hidden, directed="direction.weight" in weights)
        if set(head.state_dict()) <= set(weights):
            head.load_state_dict({name: weights[name] for name in head.state_dict()})
            found[task] = head.eval()
    return found
