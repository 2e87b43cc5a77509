"""A folder of transformers -> a plain ONNX graph of its states or logits, by torch's own exporter.

optimum's exporter is not used: its releases ask for transformers before 5. Attention is the plain one ("eager"), whose
graph has nothing that depends on the sizes of the example.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.graph import OPSET
from workbench.imports.files import ImportRefused, check_weights
from workbench.imports.graph import IDS, MASK, SEGMENTS

STATES, LOGITS = "last_hidden_state", "logits"
# It warns about each torchvision operator that it cannot register; none is used.
logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)


class _Whole(nn.Module):
    """A model of transformers, tensors in and one tensor out."""

    def __init__(self, model: nn.Module, output: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.output, self.options = model, output, options

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        more = {} if token_type_ids is None else {SEGMENTS: token_type_ids}
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, **more, **self.options)
        return getattr(found, self.output).float()


def export(folder: Path, path: Path, output: str) -> None:
    """Write the graph of a folder's model: ids, a mask and perhaps segments -> its states or its logits.

    Raises:
        ImportRefused: no weights in safetensors, an architecture that transformers does not know, or one that torch
            cannot export.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification

    check_weights(folder)
    kind = AutoModelForSequenceClassification if output == LOGITS else AutoModel
    options = {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    with _quiet():
        try:
            try:
                model = kind.from_pretrained(folder, attn_implementation="eager", **options)
            except ValueError:  # an architecture with one attention only
                model = kind.from_pretrained(folder, **options)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ImportRefused(f"{folder}: transformers cannot open it: {str(error).strip()}") from error
        config = model.config
        names = [IDS, MASK, *([SEGMENTS] if (getattr(config, "type_vocab_size", 0) or 0) > 1 else [])]
        pad = config.pad_token_id or 0
        ids = torch.arange(5, 5 + 33).reshape(3, 11) % max(config.vocab_size - 1, 1) + 1
        mask = torch.ones_like(ids)
        ids[1, 7:], mask[1, 7:] = pad, 0
        example = (ids, mask, *([torch.zeros_like(ids)] if SEGMENTS in names else []))
        dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        decoder = {"use_cache": False} if hasattr(config, "use_cache") else {}
        try:
            with torch.no_grad():
                torch.onnx.export(
                    _Whole(model.eval(), output, decoder),
                    example,
                    str(path),
                    input_names=names,
                    output_names=[output],
                    dynamic_shapes=tuple(dims for _ in names),
                    opset_version=OPSET,
                    external_data=True,
                    dynamo=True,
                    verbose=False,
                )
        except Exception as error:  # the exporter's own share no public base class
            raise ImportRefused(
                f"{folder}: torch cannot export {config.model_type} to ONNX: {str(error).strip().splitlines()[0]}"
            ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings and progress bars of the libraries, which are not about the user's folder."""
    from transformers.utils import logging as theirs

    level = theirs.get_verbosity()
    theirs.set_verbosity_error()
    theirs.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        theirs.set_verbosity(level)
        theirs.enable_progress_bar()
