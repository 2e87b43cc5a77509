"""What each word puts into the embedding of a GRAN: their mean is the embedding, as a module and as a graph."""

from pathlib import Path

import pytest
import torch

from tests.harness import toys
from training.architectures import GRANConfig
from training.publishing.export import export_tokens
from training.publishing.graphs import ParityError
from training.publishing.parity import check_tokens

WITH = (GRANConfig(), GRANConfig(variant=3), GRANConfig(variant=4), GRANConfig(bidirectional=True))
IDS, LENGTHS = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 0, 0, 0]]), torch.tensor([4, 2, 1])


@pytest.mark.parametrize("config", WITH, ids=str)
def test_the_mean_of_the_parts_is_the_embedding(config: GRANConfig) -> None:
    encoder = toys.model(config, seed=3).encoder.eval()
    assert encoder.has_token_parts
    with torch.no_grad():
        parts, embeddings = encoder.token_parts(IDS, LENGTHS), encoder(IDS, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(parts[row, :length].mean(0), embeddings[row], atol=1e-6, rtol=1e-5)


# The gates of variants 3 and 4 are exported shut, below.
@pytest.mark.parametrize("config", [GRANConfig(), GRANConfig(bidirectional=True)], ids=str)
def test_the_graph_gives_the_same_parts_and_the_check_sees_another_encoder(config: GRANConfig, tmp_path: Path) -> None:
    encoder = toys.model(config, seed=3).encoder.eval()
    export_tokens(encoder, tmp_path / "tokens.onnx", "toy")
    assert check_tokens(tmp_path / "tokens.onnx", encoder, len(toys.tokenizer())) < 1e-5
    other = toys.model(config, seed=4).encoder.eval()
    with pytest.raises(ParityError):
        check_tokens(tmp_path / "tokens.onnx", other, len(toys.tokenizer()))


@pytest.mark.parametrize("variant", [3, 4])
def test_a_gate_that_is_shut_drops_what_came_before(variant: int, tmp_path: Path) -> None:
    """A gate so far below 0 that it rounds to 0 has no logarithm."""
    encoder = toys.model(GRANConfig(variant=variant), seed=3).encoder.eval()
    gates = encoder.gates[0].words
    with torch.no_grad():
        gates.bias[gates.out_features // 2 :] = -300.0  # those on the running sum
        parts = encoder.token_parts(IDS, LENGTHS)
    assert torch.isfinite(parts).all()
    assert (parts[0, :3] == 0).all()
    assert (parts[0, 3] != 0).all()
    path = tmp_path / "tokens.onnx"
    export_tokens(encoder, path, "gran")
    assert check_tokens(path, encoder, len(toys.tokenizer())) < 1e-5
