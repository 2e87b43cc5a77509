"""mteb's figures of our models are ours, on a handful of pairs; needs mteb (extra `frameworks`)."""

import pytest

from tests.harness import fakes
from training.pairs import Pair

pytest.importorskip("mteb", reason="no mteb: pip install '.[frameworks]'")
from benchmarks.mteb_models import Encoder, measure

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
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tmp_path_factory.mktemp("models") / "avg-paraphrase"
    fakes.cosine_model(folder, "avg-paraphrase")
    return Encoder(folder)


@pytest.mark.parametrize(("name", "split"), [("SICK-R", "test"), ("STSBenchmark", "validation"), ("STS15", "test")])
def test_its_own_tasks_of_ratings(encoder: Encoder, name: str, split: str) -> None:
    rows = measure(encoder, name, split, PAIRS)
    assert [(row.task, row.split, row.measure, row.rows) for row in rows] == [
        (name, split, "cosine_pearson", 6), (name, split, "cosine_spearman", 6),
    ]  # fmt: skip
    for row in rows:
        assert row.mteb == pytest.approx(row.ours, abs=1e-6)
    assert rows[0].ours != 0
