"""Pairs through one graph: batches within bounds, each distinct pair once, answers in their places."""

from pathlib import Path

import numpy as np
import pytest

from contract.manifest import Manifest
from contract.tokenizer import Encoded, Tokenizer
from service.batches import BATCH_CELLS, BATCH_PAIRS, batched_by_cells, padded_cells
from service.interaction import InteractionScorer
from service.telemetry import Telemetry
from service.workers import Workers


@pytest.mark.parametrize(
    ("shapes", "batches"),
    [
        ([(3, 2)], [[0]]),
        ([(2, 2), (1, 1), (2, 1)], [[1, 2, 0]]),  # 12 padded cells fit
        ([(1, 1)] * 5, [[0, 1, 2, 3], [4]]),  # no more than 4
        ([(9, 9), (1, 1)], [[1], [0]]),  # one over the budget is alone
        ([(1, 6), (6, 1)], [[0], [1]]),  # 6 x 6 together
        ([(6, 1), (6, 1), (1, 2)], [[2, 0], [1]]),  # 6 x 2 each
    ],
)
def test_batches_stay_within_the_padded_cells_and_the_pairs(shapes, batches) -> None:
    assert batched_by_cells(shapes, budget=24, most=4) == batches


@pytest.mark.parametrize(("longest", "largest"), [(48, 28), (30, BATCH_PAIRS)])
def test_no_pair_is_lost_or_doubled(longest: int, largest: int) -> None:
    shapes = [(a, b) for a, b in np.random.default_rng(0).integers(1, longest + 1, size=(500, 2)).tolist()]
    batches = batched_by_cells(shapes)
    assert sorted(position for batch in batches for position in batch) == list(range(500))
    assert all(padded_cells(shapes[i] for i in batch) <= BATCH_CELLS for batch in batches)
    assert max(map(len, batches)) == largest


class Recorder:
    """A pair graph that remembers what it was fed; its output tells the order of the two sentences."""

    def __init__(self) -> None:
        self.pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.shapes: list[tuple[int, int, int]] = []

    def __call__(self, feeds):
        a, b = feeds["input_ids_a"], feeds["input_ids_b"]
        sizes = zip(feeds["lengths_a"].tolist(), feeds["lengths_b"].tolist(), strict=True)
        pairs = [(tuple(x[:n]), tuple(y[:m])) for x, y, (n, m) in zip(a.tolist(), b.tolist(), sizes, strict=True)]
        self.pairs += pairs
        self.shapes.append((len(a), a.shape[1], b.shape[1]))
        return np.log(np.array([[sum(x), 2 * sum(y), 1, 1, 1] for x, y in pairs], dtype=np.float32))


def encoded(*ids: int) -> Encoded:
    return Encoded(ids, len(ids), 0, False)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def scorer(models: Path, recorder: Recorder) -> InteractionScorer:
    folder = models / "pair-sick"
    manifest = Manifest.load(folder)
    telemetry = Telemetry().model(manifest.id, manifest.graphs)
    tokenizer = Tokenizer.load(manifest.path_of(folder, manifest.tokenizer))
    runs = {"relatedness.onnx": recorder, "entailment.onnx": lambda feeds: recorder(feeds)[:, :3]}
    return InteractionScorer(manifest, tokenizer, runs, telemetry, Workers(1, 1), texts_kept=10)


def asymmetric(scorer: InteractionScorer) -> InteractionScorer:
    task = scorer.manifest.similarity
    assert task is not None
    scorer.manifest = scorer.manifest.model_copy(update={"similarity": task.model_copy(update={"symmetric": False})})
    return scorer


@pytest.mark.anyio
async def test_a_pair_that_stands_there_twice_is_scored_once(scorer, recorder) -> None:
    a = [encoded(1, 2), encoded(3), encoded(1, 2), encoded(1, 2)]
    b = [encoded(4, 5), encoded(6), encoded(4, 5), encoded(6)]
    raw = (await scorer.similarity(a, b)).raw_score
    assert len(recorder.pairs) == 3
    assert raw[0] == raw[2]
    assert len(set(raw.tolist())) == 3


@pytest.mark.anyio
async def test_a_pair_turned_round_is_the_same_where_order_does_not_matter(scorer, recorder) -> None:
    a, b = [encoded(1, 2, 3), encoded(4), encoded(7)], [encoded(4), encoded(1, 2, 3), encoded(4)]
    raw = (await scorer.similarity(a, b)).raw_score
    assert recorder.pairs == [((4,), (7,)), ((4,), (1, 2, 3))]
    assert raw[0] == raw[1] != raw[2]
    assert scorer.similarity_now(b[:1], a[:1]).raw_score == pytest.approx(raw[:1])


@pytest.mark.anyio
async def test_where_the_order_matters_both_are_scored(scorer, recorder) -> None:
    raw = (await asymmetric(scorer).similarity([encoded(1, 2), encoded(4)], [encoded(4), encoded(1, 2)])).raw_score
    assert sorted(recorder.pairs) == [((1, 2), (4,)), ((4,), (1, 2))]
    assert raw[0] != raw[1]
    recorder.pairs.clear()
    labels = await scorer.entailment([encoded(1, 2), encoded(4)], [encoded(4), encoded(1, 2)])
    assert sorted(recorder.pairs) == [((1, 2), (4,)), ((4,), (1, 2))]
    assert labels[0] != labels[1]


@pytest.mark.anyio
async def test_many_pairs_go_in_small_batches_and_come_back_in_order(scorer, recorder) -> None:
    rng = np.random.default_rng(1)
    a = [encoded(*rng.integers(1, 9, rng.integers(1, 40)).tolist()) for _ in range(300)]
    b = [encoded(*rng.integers(1, 9, rng.integers(1, 40)).tolist()) for _ in range(300)]
    raw = (await scorer.similarity(a, b)).raw_score
    assert all(n <= BATCH_PAIRS and n * rows * columns <= BATCH_CELLS for n, rows, columns in recorder.shapes)
    alone = [scorer.similarity_now([x], [y]).raw_score[0] for x, y in zip(a, b, strict=True)]
    assert raw == pytest.approx(alone)


@pytest.mark.anyio
async def test_measuring_learns_what_a_pair_and_its_cells_cost(scorer) -> None:
    assert scorer.seconds_per_pair == scorer.seconds_per_cell == 1e-3
    scorer.measure([encoded(1, 2, 3), encoded(1)], [encoded(4, 5), encoded(2)])
    assert 0 < scorer.seconds_per_cell < 1e-3
    assert 0 < scorer.seconds_per_pair < 1e-3
    scorer.seconds_per_pair, scorer.seconds_per_cell = 0.5, 0.1
    short, long = ((1,), (2,)), ((1,) * 8, (2,) * 8)
    assert scorer._expected([[short, short]]) == pytest.approx(1.0)  # a graph that pads by itself: by the pair
    assert scorer._expected([[short, long]]) == pytest.approx(2 * 64 * 0.1)  # padded to the larger one
