"""A folder of transformers -> a graph of its states, embeddings or logits, by torch's exporter."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from onnx import ModelProto
from torch import Tensor, nn

from core.graph import MASK, SEGMENTS
from training.models.transformer import inputs_of
from training.publish.graphs import ParityError
from training.publish.network_graph import network_graph
from workbench.imports.files import CONFIG, LOGITS, ImportRefused, object_or_none, read_modules, sentence_model

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colours of a terminal
_HALVES = ("t5", "mt5", "umt5")  # of which the encoder alone embeds, as sentence-transformers takes them
STATES, EMBEDDING = "last_hidden_state", "sentence_embedding"


class Network(nn.Module):
    """A model of transformers, tensors in and one tensor out; modules of sentence-transformers may follow it."""

    def __init__(self, model: nn.Module, output: str, rest: nn.ModuleList | None = None) -> None:
        """`output`: what is taken of the model's outputs, or what the `rest` makes of its states."""
        super().__init__()
        self.model, self.output, self.rest = model, output, rest or nn.ModuleList()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Sequences [B, L] -> states [B, L, H], an embedding [B, D] or logits [B, K]."""
        more = {} if token_type_ids is None else {SEGMENTS: token_type_ids}
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, **more)
        if not len(self.rest):
            return getattr(found, self.output).float()
        features = {"token_embeddings": found.last_hidden_state.float(), MASK: attention_mask}
        for module in self.rest:
            features = module(features)
        return features[EMBEDDING].float()


def load_network(folder: Path, *, has_head: bool) -> Any:
    """The model of a folder in float32, with the plain attention where it has several.

    Raises:
        ImportRefused: a weight is missing, for which the library would take a new one.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTextEncoding

    states = AutoModelForTextEncoding if object_or_none(folder / CONFIG).get("model_type") in _HALVES else AutoModel
    kind = AutoModelForSequenceClassification if has_head else states
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    options |= {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
    options["ignore_mismatched_sizes"] = True  # named below
    with quiet():
        try:
            model, found = kind.from_pretrained(folder, attn_implementation="eager", **options)
        except ValueError:  # an architecture with one attention only
            model, found = kind.from_pretrained(folder, **options)
    for name, stored, stated in sorted(found["mismatched_keys"]):
        raise ImportRefused(
            f"{folder / CONFIG}: {name} would have the shape {tuple(stated)}, the weights have {tuple(stored)}"
        )
    # No state depends on the pooler, which many folders of encoders lack.
    if missing := sorted(name for name in found["missing_keys"] if not name.startswith("pooler.")):
        raise ImportRefused(f"{folder}: the weights lack {', '.join(missing[:3])} ({len(missing)} in all)")
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model.eval()


def export(folder: Path, has_head: bool, longest: int, tolerance: float) -> ModelProto:
    """The graph of a folder's model: its logits, its embedding where dense layers follow the pooling, or its states.

    Raises:
        ImportRefused: torch cannot export it.
        ParityError: the graph does not compute what the model does.
    """
    model = load_network(folder, has_head=has_head)
    rest = None
    if any(name == "Dense" for name, _ in read_modules(folder)):
        rest = nn.ModuleList(list(sentence_model(folder))[1:])
    output = LOGITS if has_head else STATES if rest is None else EMBEDDING
    network = Network(model, output, rest)
    try:
        with quiet():
            return network_graph(
                network, inputs_of(model), output, model.config.vocab_size, longest, "imported", tolerance=tolerance
            )
    except ParityError as error:
        raise ParityError(f"{folder}: {error}; where texts are too long for it, give --max-tokens") from error
    except Exception as error:  # torch.onnx.OnnxExporterError, or what the model's own code says of a shape
        reason = next(iter(_ESCAPES.sub("", str(error.__cause__ or error)).split("\n")))
        raise ImportRefused(
            f"{folder}: torch cannot export {model.config.model_type} to ONNX ({reason}): a folder with a graph of its "
            "own is taken by --graph"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings and progress bars of the libraries, which are not about the user's folder."""
    from transformers.utils import logging as theirs

    level = theirs.get_verbosity()
    theirs.set_verbosity_error()
    theirs.disable_progress_bar()
    try:
        # torch writes the graph that it could not export to stderr, 200 lines.
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        theirs.set_verbosity(level)
        theirs.enable_progress_bar()
