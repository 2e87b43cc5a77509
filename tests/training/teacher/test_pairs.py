"""What a teacher gives: rated pairs, graded answers, words; which are made, which never are, and that they are kept."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from tests.harness import toy_runs
from training.data.leakage import pair_key
from training.data.pairs import Pair
from training.data.pairwise import CorpusParts
from training.data.words.tables import sif_weights
from training.recipes.sources.rated import TeacherPairs
from training.teacher.answers import teacher_answers
from training.teacher.distill import choose_vocabulary, count_words, distil, distil_table
from training.teacher.pairs import NEIGHBOURS, partners, rate, teacher_pairs

SICK = [
    Pair("a man plays", "the man plays a flute", 4.0),
    Pair("a dog sleeps", "the cat sleeps", 2.5),
    Pair("a dog sleeps", "a man plays", 1.0),
]
HELD_OUT = [Pair("The cat sleeps.", "a man plays", 1.5), Pair("two birds sing", "a dog sleeps", 2.0)]
CAPTIONS = [f"caption number {word} is here" for word in "one two three four five six seven eight".split()]  # noqa: SIM905
CONFIG = TeacherPairs(captions=6, in_domain=8, general=3)


class ToyTeacher:
    """Encodes a text by its letters; counts how often it was asked."""

    name = "toy"

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls += 1
        return np.array([[text.count(c) + 0.1 for c in "aeioudnst"] for text in texts], dtype=np.float32)


class ToyHead(nn.Module):
    """Log-probabilities that put all on rating 5 for equal encodings, else mostly on 2."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        same = ((a - b).abs().sum(1) < 0.05).float()[:, None]
        five, two = torch.tensor([[-50.0, -50, -50, -50, 0]]), torch.tensor([[-50.0, 0, -50, -50, -50]])
        return torch.log_softmax(same * five + (1 - same) * two, dim=1)


class ToyLabels(nn.Module):
    """Log-probabilities of the labels: entailed as far as the first sentence has more of the first letter."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        more = a[:, 0] - b[:, 0]
        return torch.log_softmax(torch.stack([more, -more, torch.zeros_like(more)], dim=1), dim=1)


def made(
    folder: Path, teacher: ToyTeacher | None = None, config: TeacherPairs = CONFIG, labels: nn.Module | None = None
) -> list[Pair]:
    captions = ["too short", *CAPTIONS]
    return teacher_pairs(config, SICK, HELD_OUT, captions, teacher or ToyTeacher(), (ToyHead(), labels), folder)


def test_pairs_are_of_either_kind_rated_and_of_no_sick_pair(tmp_path: Path) -> None:
    pairs = made(tmp_path)
    texts = {text for pair in pairs for text in (pair.a, pair.b)}
    domain = {text for pair in SICK for text in (pair.a, pair.b)}
    # The first fitting captions; and "a man plays" is in a SICK pair with each of the others.
    assert texts == (domain - {"a man plays"}) | set(CAPTIONS[:6])
    keys = {pair_key(pair.a, pair.b) for pair in pairs}
    assert len(keys) == len(pairs)
    assert keys.isdisjoint(pair_key(p.a, p.b) for p in (*SICK, *HELD_OUT))
    assert keys >= {pair_key("the man plays a flute", "the cat sleeps")}  # the only one left to both
    assert all((pair.a in domain) == (pair.b in domain) for pair in pairs)
    assert {round(pair.target or 0.0, 3) for pair in pairs} == {2.0}


def test_they_are_made_once(tmp_path: Path) -> None:
    teacher = ToyTeacher()
    first = made(tmp_path, teacher)
    assert made(tmp_path, teacher) == first
    assert teacher.calls == 1
    made(tmp_path, teacher, TeacherPairs(captions=6, in_domain=8, general=3, seed=1))
    assert teacher.calls == 1  # other pairs of the same sentences
    assert len(list(tmp_path.glob("pairs-*.npz"))) == 2


def test_a_teacher_that_knows_labels_says_how_likely_each_is_in_the_order_of_the_pair(tmp_path: Path) -> None:
    assert {pair.label_odds for pair in made(tmp_path / "unlabelled")} == {None}
    first = made(tmp_path, labels=ToyLabels())
    assert made(tmp_path, labels=ToyLabels()) == first  # as kept
    rows = ToyTeacher().encode(CAPTIONS)
    encoded = {text: row / np.linalg.norm(row) * 10 for text, row in zip(CAPTIONS, rows, strict=True)}
    captions = [pair for pair in first if pair.a in encoded]
    assert len({pair.label_odds for pair in captions}) > 1
    for pair in captions:
        more = encoded[pair.a][0] - encoded[pair.b][0]
        expected = np.exp([more, -more, 0.0])
        assert pair.label_odds == pytest.approx(expected / expected.sum(), rel=0.02)  # encodings are kept as float16


def test_ratings_are_expected_values_of_scaled_unit_encodings() -> None:
    encodings = np.array([[3.0, 4.0], [0.6, 0.8], [1.0, 0.0]], dtype=np.float16)
    found = rate(ToyHead(), encodings, np.array([[0, 1], [0, 2]]))
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([5.0, 2.0])  # length does not count


def test_partners_are_mostly_near_and_each_pair_is_there_once() -> None:
    angle = np.linspace(0, np.pi, 600)  # neighbours on a half circle are the nearest
    encodings = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float16)
    pairs = partners(encodings, 10, np.random.default_rng(0))
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    apart = pairs[:, 1] - pairs[:, 0]
    assert 3000 < len(pairs) <= 6000
    assert 0.55 < (apart <= NEIGHBOURS).mean() < 0.85
    assert (apart > 400).any()


class Letters:
    """Encodes a text as its counts of a and b, the b negative when it says so."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[text.count("a"), text.count("b") - 2 * text.count("-b")] for text in texts], np.float32)


PARTS = {
    "wikiqa": [Pair("a ?", f"{'a' * i}b .", 1.0, "1", f"q{i}") for i in range(6)],
    "trecqa": [Pair("b ?", "it is n't -b", 0.0, "0", "q"), Pair("b ?", "a", 0.0, "0", "q")],
}


def test_the_target_is_the_teachers_cosine_and_never_below_zero(tmp_path: Path, monkeypatch) -> None:
    toy_runs.read_instead(monkeypatch, pairwise=lambda corpus: CorpusParts(tuple(PARTS[corpus]), (), {}))
    teacher = Letters()
    found = teacher_answers(teacher, ("wikiqa", "trecqa"), None, 0, tmp_path)
    graded = {(pair.b, pair.group): pair for pair in found}
    assert len(graded) == 8
    for i in range(6):
        pair = graded[PARTS["wikiqa"][i].b, f"q{i}"]
        assert pair.target == pytest.approx(i / np.hypot(i, 1), abs=1e-3)
        assert pair.label is None
    assert graded["it is n't -b", "q"].target == 0.0
    assert graded["a", "q"].target == 0.0
    assert "it isn't -b" in teacher.asked  # detokenised, as it was taught


WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ter", "ing") for b in ("ness", "un", "re", "fa", "so", "dur")]
HIDDEN = 12


class Toy:
    """Every letter has a direction in a plane of 4 dimensions of 12; a text is the sum, plus a constant."""

    name = "toy"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rng = np.random.default_rng(0)
        letters = rng.standard_normal((26, 4))
        plane = np.linalg.qr(rng.standard_normal((HIDDEN, 4)))[0].T
        sums = [sum(letters[ord(c) - 97] for c in text) for text in texts]
        return (np.array(sums) @ plane + 3.0).astype(np.float32)


def test_words_are_counted_as_the_tokenizer_splits_them() -> None:
    assert count_words(["The cat doesn't.", "the CAT"]) == Counter({"the": 2, "cat": 2, "does": 1, "n't": 1, ".": 1})


def test_the_vocabulary_is_the_most_frequent_words_with_the_preferred_ones() -> None:
    counts = Counter({"a": 9, "b": 5, "c": 5, "d": 2, "once": 1})
    assert choose_vocabulary(counts, [], 10) == ["a", "b", "c", "d"]  # "once" is below the minimum
    assert choose_vocabulary(counts, [], 2) == ["a", "b"]  # ties by the alphabet
    assert choose_vocabulary(counts, ["once", "never"], 10) == ["a", "b", "c", "d", "once", "never"]
    # A preferred word ranks as if seen twice: after "c", before "d", which was seen twice indeed.
    assert choose_vocabulary(counts, ["never"], 4) == ["a", "b", "c", "never"]
    assert choose_vocabulary(counts, [], 10, minimum=5) == ["a", "b", "c"]


def test_distilled_vectors_are_centred_principal_components_with_sif_weights(tmp_path: Path) -> None:
    counts = Counter({word: 10 * (i + 1) for i, word in enumerate(WORDS)})
    found = distil(Toy(), WORDS, counts, dim=4, sif=1e-2, cache=tmp_path)
    assert found.shape == (len(WORDS), 4)
    assert found.dtype == np.float32
    plain = found / sif_weights(counts, WORDS, 1e-2)[:, None]
    assert plain.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-4)
    # Four components hold the whole plane: distances are those of the teacher.
    encoded = Toy().encode(WORDS).astype(np.float64)
    for i, j in ((0, 1), (3, 17), (29, 4)):
        expected = np.linalg.norm(encoded[i] - encoded[j])
        assert np.linalg.norm(plain[i] - plain[j]) == pytest.approx(expected, abs=0.02)  # kept as float16
    variance = plain.var(axis=0)
    assert (np.diff(variance) < 0).all()


def test_the_whole_road_gives_a_table_that_reads_rare_words(tmp_path: Path) -> None:
    counts = Counter(dict.fromkeys(WORDS, 5) | {"kaka": 1})
    table = distil_table(
        Toy(), counts, ["teacherword"], words=100, dim=4, pieces=80, buckets=3, sif=1e-3, cache=tmp_path
    )
    assert table.tokenizer.words == (*sorted(WORDS), "teacherword")
    assert table.rows.shape == (len(table.tokenizer), 4)
    # The toy is linear in letters, so pieces can stand for a word that was left out.
    ids = table.tokenizer.encode("kaness", 9).ids
    left_out = table.tokenizer.fallback("kaness")
    known, guessed = table.rows[list(ids)].sum(0), table.rows[left_out].sum(0)
    assert len(ids) == 1
    assert known @ guessed / np.linalg.norm(known) / np.linalg.norm(guessed) > 0.9
