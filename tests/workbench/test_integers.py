"""Published transformers with integer products: what stays, what goes, and answers that no company moves by a bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.golden import INTEGER_TOLERANCE
from core.manifest import Manifest
from core.sequences import feeds_of
from core.tensors import load_tensors
from service.engine.graph import open_session
from tests.harness.effort import looking
from training.publish.integers import to_integers
from workbench.integers import IntegersRefused, fold_weights, read_sequences, with_integers, with_special_tokens

PUBLISHED = Path(__file__).parents[2] / "models"
GRAPHS = {"minilm-small": "encoder.onnx", "minilm-cross": "pair.onnx"}
pytestmark = pytest.mark.artifacts


class Opened(NamedTuple):
    """One graph of a published model: as it is, reading sequences, and of these with integer products."""

    published: Callable[[Any], Any]  # rows of the ids of each side
    sequences: Callable[[Any], Any]
    integers: Callable[[Any], Any]


@pytest.fixture(scope="module", params=GRAPHS)
def graphs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    folder, name = PUBLISHED / request.param, GRAPHS[request.param]
    manifest, model = Manifest.load(folder), onnx.load(_path(folder, name), load_external_data=False)
    paths = [tmp_path_factory.mktemp("graphs") / each for each in ("sequences.onnx", "integers.onnx")]
    assert read_sequences(model.graph)
    onnx.save(model, paths[0])
    fold_weights(model.graph)
    to_integers(model)
    onnx.save(model, paths[1])
    tokenizer = with_special_tokens(_path(folder, manifest.tokenizer))

    def opened(path: Path) -> Callable[[Any], Any]:
        kind, tensors = manifest.graph_kinds[name], load_tensors(folder, manifest)
        run = open_session(path, kind, ["CPUExecutionProvider"], threads=1, must_use_cuda=False, tensors=tensors)
        feeds = feeds_of(run.signature, kind, tokenizer, None, manifest.max_tokens(name), where=name)
        sides = 2 if kind == "pair" else 1
        return lambda pairs: feeds.rows(run, [*zip(*pairs, strict=True)][:sides])

    return Opened(*map(opened, (_path(folder, name), *paths)))


def _path(folder: Path, name: str) -> Path:
    return Manifest.load(folder).path_of(folder, name)


def test_a_graph_that_reads_sequences_answers_as_the_published_one(graphs: Opened) -> None:
    rng = np.random.default_rng(0)
    pairs = [[tuple(rng.integers(1_000, 30_000, size).tolist()) for size in sizes] for sizes in ((1, 7), (11, 3))]
    assert graphs.sequences(pairs) == pytest.approx(graphs.published(pairs), abs=1e-5)


_TEXT = st.lists(st.integers(1_000, 30_000), min_size=1, max_size=24).map(tuple)
_PAIRS = st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=5)


@looking(8)
@given(mine=_PAIRS, others=_PAIRS)
def test_an_answer_is_the_same_to_the_last_bit_in_any_company(
    graphs: Opened, mine: list[Any], others: list[Any]
) -> None:
    together = graphs.integers([*mine, *others])
    for place, pair in enumerate(mine):
        assert np.array_equal(together[place], graphs.integers([pair])[0])


def test_calibrations_stay_and_what_was_measured_with_other_answers_goes(tmp_path: Path) -> None:
    models, before = tmp_path / "own-models", Manifest.load(PUBLISHED / "minilm-small")
    folder, difference = with_integers(PUBLISHED / "minilm-small", models)
    after = Manifest.load(folder)
    assert (after.id, after.similarity, after.limits) == ("minilm-small-int8", before.similarity, before.limits)
    assert (after.confidence, after.figures) == ((), ())
    made_of = {"model": before.id, "fingerprint": before.fingerprint}
    assert after.provenance.recipe["integers_of"] == made_of
    assert 0 < difference < INTEGER_TOLERANCE
    with pytest.raises(IntegersRefused, match="minilm-small-int8: it multiplies integers already"):
        with_integers(folder, models)
    with pytest.raises(IntegersRefused, match="avg-paraphrase: it is no transformer"):
        with_integers(PUBLISHED / "avg-paraphrase", models)
    assert [path.name for path in sorted(models.iterdir())] == ["minilm-small-int8", "shared"]
