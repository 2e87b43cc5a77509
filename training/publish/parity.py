"""Comparison of an exported graph with its module: names, axes, shapes and values, at other sizes than the example's.

A model that matches words by the order of their similarities can have two that differ only by rounding errors. Module
and graph may then match different words, both correctly. Such a near tie is distinguished from an error by evaluating
the module with noise of the size of rounding errors: if that changes its output as much, the pair is a near tie. Near
ties are counted, and only a small share is allowed.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from core.graph import SPECS, GraphKind
from core.scoring import Array, Run
from core.sequences import pad
from core.tokenizer import PADDING_ID
from training.models import InteractionNetwork
from training.publish.export import Matrices, token_reader
from training.publish.graphs import ParityError
from training.publish.runtime import open_graph

LARGE_LOGIT = 16.0  # up to which float32 rounds by less than the tolerance
TOLERANCE = 1e-5  # largest difference of any output value; of embeddings and log-probabilities beyond 1, relative
# (batch, longest): below, at and far above the exporter's example; with single tokens and single sentences.
SIZES = ((1, 1), (1, 7), (2, 3), (3, 1), (5, 40), (64, 12), (33, 129))
# (batch, longest of a, longest of b), cut at the model's limit.
PAIR_SIZES = (
    *((1, 1, 1), (1, 7, 3), (2, 1, 9), (3, 5, 4), (64, 12, 9), (5, 9, 48), (6, 48, 48)),
    *((2, 4096, 2), (1, 5, 4096), (1, 4096, 4096)),
)
NEAR_TIES = 0.02  # largest share of pairs that may be near ties
# Relative noise of word vectors (averaged in states and cosines to the size of rounding errors), and number of draws.
ROUNDING, DRAWS = 1e-5, 16


def check_encoder(
    path: Path,
    encoder: nn.Module,
    vocabulary: int,
    tensors: Mapping[str, Array] | None = None,
) -> float:
    """Compare an ENCODER graph, with its outside tensors, with its module on random batches of different lengths.

    Also: a sentence has the same embedding alone and in a batch, and ids in the padding have no effect.

    Returns:
        The largest absolute difference seen.

    Raises:
        GraphMismatchError: names, dtypes or axes.
        ParityError: shapes or values, or sizes the graph cannot run.
    """
    rng = np.random.default_rng(0)

    def example(batch: int, longest: int) -> dict[str, Array]:
        return _sentences(rng, vocabulary, batch, longest)

    worst = _check_values(path, "encoder", encoder, example, tensors)
    run = _open(path, "encoder", tensors)
    feeds = example(9, 20)
    ids, lengths = feeds["input_ids"], feeds["lengths"]
    together = run(feeds)
    for row, length in enumerate(lengths):
        alone = run({"input_ids": ids[row : row + 1, :length], "lengths": lengths[row : row + 1]})
        _require_close(path, "a sentence alone and in a batch", alone[0], together[row], _allowed(together))
    dirty = np.where(ids == PADDING_ID, vocabulary - 1, ids)
    _require_close(path, "ids in the padding", run({**feeds, "input_ids": dirty}), together, _allowed(together))
    return worst


def check_tokens(path: Path, encoder: nn.Module, vocabulary: int, tensors: Mapping[str, Array] | None = None) -> float:
    """Compare a TOKENS graph with its module, and the mean of a sentence's tokens with its embedding.

    Returns and raises as `check_encoder`.
    """
    rng = np.random.default_rng(0)
    run, encoder, worst = _open(path, "tokens", tensors), encoder.cpu().eval(), 0.0
    for batch, longest in SIZES:
        feeds = _sentences(rng, vocabulary, batch, longest)
        found, lengths, real = run(feeds), feeds["lengths"], feeds["input_ids"] != PADDING_ID
        inputs = [torch.from_numpy(value) for value in feeds.values()]
        with torch.no_grad():
            parts, embeddings = token_reader(encoder)(*inputs).numpy(), encoder(*inputs).numpy()
        what = f"{batch} rows of up to {longest} tokens"
        worst = max(worst, _require_close(path, what, found[real], parts[real], TOLERANCE))
        means = np.stack([row[:length].mean(axis=0) for row, length in zip(found, lengths, strict=True)])
        worst = max(worst, _require_close(path, f"the mean of {what}", means, embeddings, TOLERANCE))
    return worst


def _sentences(rng: np.random.Generator, vocabulary: int, batch: int, longest: int) -> dict[str, Array]:
    """Feeds of an ENCODER graph: random sentences of 1 to `longest` tokens, at least one of them the longest."""
    lengths = rng.integers(1, longest + 1, batch)
    lengths[rng.integers(batch)] = longest
    ids = rng.integers(1, vocabulary, (batch, longest))
    ids[np.arange(longest)[None, :] >= lengths[:, None]] = PADDING_ID
    return {"input_ids": ids, "lengths": lengths}


def check_head(path: Path, head: nn.Module, dim: int, kind: Literal["head", "classifier"] = "head") -> float:
    """Compare a HEAD or CLASSIFIER graph with its module on random embeddings, as `check_encoder` does."""
    rng = np.random.default_rng(0)

    def example(batch: int, _: int) -> dict[str, Array]:
        draw = rng.standard_normal((len(SPECS[kind].inputs), batch, dim))
        return dict(zip(SPECS[kind].inputs, draw.astype(np.float32), strict=True))

    return _check_values(path, kind, head, example)


class ParityResult(NamedTuple):
    """Difference of a graph from its module."""

    difference: float  # largest absolute difference, without near ties
    near_ties: int  # pairs whose output differs because of rounding errors
    pairs: int  # number of compared pairs


def check_pair(
    path: Path, model: nn.Module, vocabulary: int, limit: int, tensors: Mapping[str, Array] | None = None
) -> ParityResult:
    """Compare a PAIR graph with its model on pairs of different lengths of random, equal, rearranged and repeated
    words.

    Also: a pair has the same output alone and in a batch, and ids in the padding have no effect.

    Args:
        path: the graph.
        model: what it was exported from.
        vocabulary: number of token ids.
        limit: most tokens of a sentence.
        tensors: weights that the graph leaves outside.

    Raises:
        GraphMismatchError: names, dtypes or axes.
        ParityError: shapes or values, or sizes the graph cannot run.
    """
    return _check_pairs(path, "pair", model, _pairs(vocabulary, limit), tensors)


def check_explanation(
    path: Path,
    network: InteractionNetwork,
    vocabulary: int,
    limit: int,
    tensors: Mapping[str, Array] | None = None,
) -> ParityResult:
    """Compare an EXPLANATION graph with its network, as `check_pair`; matrices must be within their declared ranges."""
    pairs = _pairs(vocabulary, limit)
    agreement = _check_pairs(path, "explanation", Matrices(network), pairs, tensors)
    run = _open(path, "explanation", tensors)
    for what, feeds in pairs:
        for matrix, values in zip(network.MATRICES, run(feeds).swapaxes(0, 1), strict=True):
            low, high = matrix.range
            if values.min() < low - TOLERANCE or values.max() > high + TOLERANCE:
                raise ParityError(f"{path.name}: {what}: {matrix.name} leaves {low:g}..{high:g}")
    return agreement


def moved_by_rounding(module: nn.Module, feeds: Mapping[str, Array]) -> float:
    """Largest change of the module's output under noise of the size of rounding errors on the word vectors."""
    embedding = getattr(getattr(module, "network", None), "embedding", None)
    if embedding is None:
        return 0.0  # a transformer matches nothing one to one: rounding decides nothing
    inputs = [torch.from_numpy(value) for value in feeds.values()]
    generator = torch.Generator().manual_seed(0)

    def noisy(_module: nn.Module, _inputs: object, words: Tensor) -> Tensor:
        return words * (1 + ROUNDING * torch.randn(words.shape, generator=generator))

    with torch.no_grad():
        plain = module(*inputs)
        handle = embedding.register_forward_hook(noisy)
        try:
            return max(float((module(*inputs) - plain).abs().max()) for _ in range(DRAWS))
        finally:
            handle.remove()


def _pairs(vocabulary: int, limit: int) -> list[tuple[str, dict[str, Array]]]:
    """(description, feeds) of each batch: random words at all sizes, then words with equal similarities."""
    rng = np.random.default_rng(0)

    def feeds(a: list[Array], b: list[Array]) -> dict[str, Array]:
        (ids_a, lengths_a), (ids_b, lengths_b) = (pad([row.tolist() for row in side]) for side in (a, b))
        return {"input_ids_a": ids_a, "lengths_a": lengths_a, "input_ids_b": ids_b, "lengths_b": lengths_b}

    def words(batch: int, longest: int, known: int = vocabulary) -> list[Array]:
        lengths = rng.integers(1, longest + 1, batch)
        lengths[rng.integers(batch)] = longest
        return [rng.integers(1, known, length) for length in lengths]

    batches = []
    for batch, longest_a, longest_b in PAIR_SIZES:
        longest_a, longest_b = min(longest_a, limit), min(longest_b, limit)
        what = f"{batch} pairs of up to {longest_a} and {longest_b} tokens"
        batches.append((what, feeds(words(batch, longest_a), words(batch, longest_b))))
    same = words(8, min(20, limit))
    short = min(8, limit)
    batches.append(("equal sentences", feeds(same, same)))
    batches.append(("rearranged words", feeds(same, [rng.permutation(row) for row in same])))
    batches.append(("repeated words", feeds(words(8, short, min(6, vocabulary)), words(8, short, min(6, vocabulary)))))
    return batches


def _check_pairs(
    path: Path,
    kind: GraphKind,
    module: nn.Module,
    batches: list[tuple[str, dict[str, Array]]],
    tensors: Mapping[str, Array] | None,
) -> ParityResult:
    run = _open(path, kind, tensors)
    module = module.cpu().eval()
    worst, near_ties, pairs = 0.0, 0, 0

    def compare(what: str, found: Array, expected: Array, feeds: dict[str, Array]) -> None:
        nonlocal worst, near_ties, pairs
        pairs += len(expected)
        for row, difference in enumerate(_differences(path, what, found, expected, relative=True)):
            if difference <= TOLERANCE:
                worst = max(worst, difference)
            elif moved_by_rounding(module, _one(feeds, row)) >= difference / 2:
                near_ties += 1
            else:  # NaN comes here too
                raise ParityError(f"{path.name}: {what}: differs by {difference:.2e}, allowed {TOLERANCE:.0e}")

    for what, feeds in batches:
        with torch.no_grad():
            expected = module(*(torch.from_numpy(value) for value in feeds.values())).numpy()
        together = run(feeds)
        compare(what, together, expected, feeds)
        dirty = {name: np.where(value == PADDING_ID, 1, value) for name, value in feeds.items()}  # no length is 0
        compare(f"{what}, ids in the padding", run(dirty), together, feeds)
        for row in range(0, len(expected), 3):
            one = _one(feeds, row)
            sizes = tuple(slice(len(one[name][0])) for name in ("input_ids_a", "input_ids_b"))
            own = (slice(row, row + 1), slice(None), *(sizes if together.ndim == 4 else ()))
            compare(f"{what}, a pair alone and in a batch", run(one), together[own], one)
    if near_ties > NEAR_TIES * pairs:
        raise ParityError(f"{path.name}: rounding decides {near_ties} of {pairs} pairs")
    return ParityResult(float(worst), near_ties, pairs)


def _one(feeds: Mapping[str, Array], row: int) -> dict[str, Array]:
    """A pair of a batch by itself, without padding."""
    one = {}
    for side in "ab":
        length = feeds[f"lengths_{side}"][row]
        one[f"input_ids_{side}"] = feeds[f"input_ids_{side}"][row : row + 1, :length]
        one[f"lengths_{side}"] = feeds[f"lengths_{side}"][row : row + 1]
    return one


def _open(path: Path, kind: GraphKind, tensors: Mapping[str, Array] | None = None) -> Run:
    run = open_graph(path, kind, tensors)

    def run_or_refuse(feeds: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        try:
            return run(feeds)
        except Exception as error:  # ONNX Runtime's exceptions have no common base
            sizes = ", ".join(f"{name} {list(value.shape)}" for name, value in feeds.items())
            raise ParityError(f"{path.name}: cannot run with {sizes}: {str(error).splitlines()[0]}") from error

    return run_or_refuse


def _check_values(
    path: Path,
    kind: GraphKind,
    module: nn.Module,
    example: Callable[[int, int], dict[str, Array]],
    tensors: Mapping[str, Array] | None = None,
) -> float:
    run = _open(path, kind, tensors)
    module = module.cpu().eval()
    worst = 0.0
    for batch, longest in SIZES:
        feeds = example(batch, longest)
        with torch.no_grad():
            expected: Tensor = module(*(torch.from_numpy(value) for value in feeds.values()))
        found = run(feeds)
        what = f"{batch} rows of up to {longest} tokens"
        allowed = _allowed(expected.numpy(), 1.0 if kind == "encoder" else LARGE_LOGIT)
        worst = max(worst, _require_close(path, what, found, expected.numpy(), allowed))
    return worst


def _allowed(expected: Array, large: float = 1.0) -> float:
    """The tolerance; where values are larger than `large`, so much wider."""
    return TOLERANCE * max(1.0, float(np.abs(expected).max()) / large)


def _differences(
    path: Path, what: str, found: Array, expected: Array, *, relative: bool = False
) -> npt.NDArray[np.float64]:
    """The largest difference of each row: absolute, or that of values beyond 1 relative to them."""
    if found.shape != expected.shape:
        raise ParityError(f"{path.name}: {what}: shape {found.shape}, the module gives {expected.shape}")
    differences = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    if relative:  # log-probabilities of unlikely classes go down to -30, where float32 itself steps by 2e-6
        differences /= np.maximum(1.0, np.abs(expected))
    return np.asarray(differences.reshape(len(differences), -1).max(axis=1))


def _require_close(path: Path, what: str, found: Array, expected: Array, tolerance: float) -> float:
    difference = float(np.max(_differences(path, what, found, expected)))
    if not difference <= tolerance:  # NaN fails too
        raise ParityError(f"{path.name}: {what}: differs by {difference:.2e}, allowed {tolerance:.0e}")
    return difference
