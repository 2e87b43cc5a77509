"""mteb's figures of our models are ours, on a handful of pairs; needs mteb (extra `frameworks`)."""

import numpy as np
import pytest

from tests import fakes
from training.pairs import Pair

pytest.importorskip("mteb", reason="no mteb: pip install '.[frameworks]'")
from benchmarks.mteb_models import Model, local_model, measure, ranking, ratings

pytestmark = pytest.mark.filterwarnings("default")
TEXTS = [
    ("a man plays the guitar", "a woman plays the flute", 3.2, "1"),
    ("a man plays the guitar", "a man is playing a guitar", 4.8, "1"),
    ("a dog runs", "a cat sleeps", 1.1, "0"),
    ("a dog runs", "the dog is playing", 3.9, "1"),
    ("the cat sleeps", "a man plays a guitar", 0.2, "0"),
    ("the cat sleeps", "the woman sleeps", 2.7, "0"),
]
PAIRS = [Pair(a, b, target=score, label=label, group=a) for a, b, score, label in TEXTS]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("models") / "avg-paraphrase"
    fakes.cosine_model(folder, "avg-paraphrase")
    return local_model(folder)


@pytest.mark.parametrize(("name", "split"), [("SICK-R", "test"), ("STSBenchmark", "validation"), ("STS15", "test")])
def test_its_own_tasks_of_ratings(model: Model, name: str, split: str) -> None:
    rows = measure(model, ratings(name, split, PAIRS))
    assert [(row.task, row.split, row.measure, row.rows) for row in rows] == [
        (name, split, "cosine_pearson", 6), (name, split, "cosine_spearman", 6),
    ]  # fmt: skip
    for row in rows:
        assert row.mteb == pytest.approx(row.ours, abs=1e-6)
    assert rows[0].ours != 0


def test_reranking(model: Model) -> None:
    places = measure(model, ranking("WikiQA", PAIRS))
    for row in places:
        assert row.mteb == pytest.approx(row.ours, abs=1e-5)
        assert 0 < row.ours <= 1
    assert [row.measure for row in places] == ["map_at_1000", "mrr_at_1000"]


def test_a_model_of_pairs_reranks_and_does_nothing_else(model: Model) -> None:
    # Ranks by the length of the second text: no embedding could have found the same order.
    pairs_only = Model("pairs", None, lambda a, b: np.array([float(len(text)) for text in b]))
    rows = measure(pairs_only, ranking("WikiQA", PAIRS))
    assert [row.mteb for row in rows] == pytest.approx([row.ours for row in rows], abs=1e-5)
    with pytest.raises(ValueError, match="mteb runs only reranking with it, not SICK-R"):
        measure(pairs_only, ratings("SICK-R", "test", PAIRS))
