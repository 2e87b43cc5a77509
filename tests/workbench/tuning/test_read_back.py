"""Weights of a published folder, read back from its graphs."""

import json
from pathlib import Path

import pytest
import torch

from contract.manifest import Manifest
from tests.workbench.tuning import starts
from training.architectures import GRANConfig, LSTMConfig, WordAveragingConfig
from training.architectures.parts.heads import PairHead
from training.architectures.transformer import SentenceBERT
from workbench.tuning.read_back import TuneRefused, config_of, read_start


@pytest.mark.parametrize(
    "config", [GRANConfig(), LSTMConfig(pooling="mean", bidirectional=True, hidden=5)], ids=["gran", "bilstm"]
)
def test_every_weight_of_an_encoder_comes_back(tmp_path: Path, config: GRANConfig | LSTMConfig) -> None:
    start = read_start(starts.siamese_model(tmp_path, "toy", config))
    found = starts.weights_of(start.network)
    assert len(found) >= 4
    for name, value in starts.weights_of(starts.encoder(config)).items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)
    assert (start.config, start.storage) == (config, "int8")


def test_a_transformer_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    start = read_start(starts.transformer_model(tmp_path, "toy"))
    original = starts.shaken(SentenceBERT(starts.BERT))
    for (name, value), found in zip(original.state_dict().items(), start.network.state_dict().values(), strict=True):
        largest = float(value.abs().max())
        torch.testing.assert_close(found, value, rtol=0, atol=largest / 127, msg=name)
    assert start.storage == "int8"


def test_heads_come_back(tmp_path: Path) -> None:
    head = starts.shaken(PairHead(8, 5, hidden=6))
    start = read_start(starts.siamese_model(tmp_path, "toy", WordAveragingConfig(), {"similarity": head}))
    assert set(start.heads) == {"similarity"}
    for name, value in head.state_dict().items():
        torch.testing.assert_close(start.heads["similarity"].state_dict()[name], value, rtol=0, atol=0, msg=name)


def test_what_cannot_be_read_back_is_refused_with_the_reason(tmp_path: Path) -> None:
    folder = starts.siamese_model(tmp_path, "toy", WordAveragingConfig())
    manifest = Manifest.load(folder)

    def told(**fields: object) -> Manifest:
        content = json.loads(manifest.model_dump_json()) | fields
        return Manifest.model_validate(content)

    bare = json.loads(manifest.provenance.model_dump_json()) | {"recipe": {}}
    with pytest.raises(TuneRefused, match="'cross_encoder' cannot be tuned: it has a head for each of several tasks"):
        config_of(told(architecture="cross_encoder", provenance=bare))
    with pytest.raises(TuneRefused, match="'onnx_encoder' cannot be tuned: it was imported, and imported"):
        config_of(told(architecture="onnx_encoder", provenance=bare))
    other = bare | {"recipe": {"architecture": {"kind": "WordAveragingConfig", "sharpness": 3}}}
    with pytest.raises(TuneRefused, match="it is not known here"):
        config_of(told(provenance=other))


def test_a_graph_of_another_exporter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its names are others, and a weight would be looked for in the wrong place."""
    folder = starts.siamese_model(tmp_path, "toy", LSTMConfig(hidden=5))
    from workbench.tuning import read_back

    arrays = read_back._arrays
    monkeypatch.setattr(
        read_back, "_arrays", lambda *args: {n.replace("cat", "joined"): v for n, v in arrays(*args).items()}
    )
    with pytest.raises(TuneRefused, match=r"its graph has no cat .*: it was exported by other versions \(torch"):
        read_start(folder)
