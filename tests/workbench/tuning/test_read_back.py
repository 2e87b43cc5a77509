"""Weights of a published folder, read back from its graphs."""

from pathlib import Path

import numpy as np
import pytest
import torch

from contract.manifest import Manifest
from tests.harness import toys
from tests.workbench.tuning import starts
from training.architectures import WordAveraging
from training.architectures.parts.layers import WordEmbedding
from training.architectures.transformer import SentenceBERT
from workbench.tuning.read_back import TuneRefused, check_kind, read_start


def test_an_average_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    start = read_start(starts.average_model(tmp_path, "toy"))
    assert isinstance(start.network, WordAveraging)
    assert isinstance(start.network.embedding, WordEmbedding)
    rows = toys.table().rows
    np.testing.assert_allclose(start.network.embedding.weight.detach(), rows, rtol=0, atol=np.abs(rows).max() / 127)
    assert start.storage == "int8"


def test_a_transformer_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    start = read_start(starts.transformer_model(tmp_path, "toy"))
    original = starts.shaken(SentenceBERT(starts.BERT))
    for (name, value), found in zip(original.state_dict().items(), start.network.state_dict().values(), strict=True):
        largest = float(value.abs().max())
        torch.testing.assert_close(found, value, rtol=0, atol=largest / 127, msg=name)
    assert start.storage == "int8"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"architecture": "cross_encoder"}, "an architecture 'cross_encoder' is not tuned; start from avg-paraphrase"),
        ({"architecture": "transformer_encoder"}, "it was imported: tune it with the library that it comes from"),
        ({"similarity": None}, "its score is not the cosine"),
    ],
)
def test_what_is_not_tuned_is_refused_with_the_reason(tmp_path: Path, fields: dict[str, object], reason: str) -> None:
    manifest = Manifest.load(starts.average_model(tmp_path, "toy"))
    with pytest.raises(TuneRefused, match=f"toy: {reason}"):
        check_kind(manifest.model_copy(update=fields))
