"""An exported graph against the module it came from: names, axes, shapes, values, at sizes never traced."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from contract.graph import GraphKind
from contract.padding import PADDING_ID
from contract.scoring import Array, Run
from training.runtime import open_graph

TOLERANCE = 1e-5  # largest absolute difference of any output value
# (batch, longest): below, at and far above the exporter's example; single tokens and single sentences.
SIZES = ((1, 1), (1, 7), (2, 3), (3, 1), (5, 40), (64, 12), (33, 129))


class ParityError(Exception):
    """A graph that does not compute what its module computes; it is not published."""


def check_encoder(path: Path, encoder: nn.Module, vocabulary: int, *, seed: int = 0) -> float:
    """Hold an ENCODER graph against its module on ragged random batches.

    Also: a sentence alone gives what it gives in the batch, and ids in the padding move nothing.

    Returns:
        The largest absolute difference seen.

    Raises:
        GraphMismatchError: names, dtypes or axes.
        ParityError: shapes or values, or sizes the graph cannot run.
    """
    rng = np.random.default_rng(seed)

    def example(batch: int, longest: int) -> dict[str, Array]:
        lengths = rng.integers(1, longest + 1, batch)
        lengths[rng.integers(batch)] = longest
        ids = rng.integers(1, vocabulary, (batch, longest))
        ids[np.arange(longest)[None, :] >= lengths[:, None]] = PADDING_ID
        return {"input_ids": ids, "lengths": lengths}

    worst = _check_values(path, "encoder", encoder, example)
    run = _open(path, "encoder")
    feeds = example(9, 20)
    together = run(feeds)
    for row, length in enumerate(feeds["lengths"]):
        alone = run(
            {"input_ids": feeds["input_ids"][row : row + 1, :length], "lengths": feeds["lengths"][row : row + 1]}
        )
        _require_close(path, "a sentence alone and in a batch", alone[0], together[row], TOLERANCE)
    dirty = np.where(feeds["input_ids"] == PADDING_ID, vocabulary - 1, feeds["input_ids"])
    _require_close(path, "ids in the padding", run({**feeds, "input_ids": dirty}), together, TOLERANCE)
    return worst


def check_head(path: Path, head: nn.Module, dim: int, *, seed: int = 0) -> float:
    """Hold a HEAD graph against its module on random embeddings; returns and raises as `check_encoder`."""
    rng = np.random.default_rng(seed)

    def example(batch: int, _: int) -> dict[str, Array]:
        draw = rng.standard_normal((2, batch, dim)).astype(np.float32)
        return {"embedding_a": draw[0], "embedding_b": draw[1]}

    return _check_values(path, "head", head, example)


def _open(path: Path, kind: GraphKind) -> Run:
    run = open_graph(path, kind)

    def run_or_refuse(feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        try:
            return run(feeds)
        except Exception as error:  # ONNX Runtime's own have no common base
            sizes = ", ".join(f"{name} {list(value.shape)}" for name, value in feeds.items())
            raise ParityError(f"{path.name}: cannot run with {sizes}: {str(error).splitlines()[0]}") from error

    return run_or_refuse


def _check_values(
    path: Path, kind: GraphKind, module: nn.Module, example: Callable[[int, int], dict[str, Array]]
) -> float:
    run = _open(path, kind)
    module = module.cpu().eval()
    worst = 0.0
    for batch, longest in SIZES:
        feeds = example(batch, longest)
        with torch.no_grad():
            expected: Tensor = module(*(torch.from_numpy(value) for value in feeds.values()))
        found = run(feeds)
        what = f"{batch} rows of up to {longest} tokens"
        worst = max(worst, _require_close(path, what, found, expected.numpy(), TOLERANCE))
    return worst


def _require_close(path: Path, what: str, found: Array, expected: Array, tolerance: float) -> float:
    if found.shape != expected.shape:
        raise ParityError(f"{path.name}: {what}: shape {found.shape}, the module gives {expected.shape}")
    difference = float(np.abs(found.astype(np.float64) - expected.astype(np.float64)).max())
    if not difference <= tolerance:  # NaN fails too
        raise ParityError(f"{path.name}: {what}: differs by {difference:.2e}, allowed {tolerance:.0e}")
    return difference
