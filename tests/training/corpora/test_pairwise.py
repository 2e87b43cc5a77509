"""The corpora of the interaction papers: how they are split, labelled and cut, on a few pairs of ours."""

from collections.abc import Iterator

import pytest

from training.corpora.pairwise import ANSWER_TOKENS, LONGEST, _read, read
from training.corpora.readers import answers, paraphrase, sick, sts
from training.pairs import Pair


@pytest.fixture(autouse=True)
def forgotten(data) -> Iterator[None]:
    """What was read is kept; each test has corpora of its own."""
    _read.cache_clear()
    yield
    _read.cache_clear()


def numbered(count: int, group: str = "", label: str | None = None) -> list[Pair]:
    return [Pair(f"{group} left {i}", f"{group} right {i}", i % 6, label, group) for i in range(count)]


def labelled(count: int) -> list[Pair]:
    return [Pair(f"left {i}", f"right {i}", None, str(i % 2)) for i in range(count)]


def test_a_pair_of_the_development_or_test_part_is_not_trained_on(monkeypatch) -> None:
    train = [Pair("A man!", "a dog", 1.0), Pair("a cat", "a dog", 2.0), Pair("x", "y", 3.0)]
    parts = {"train": train, "dev": [Pair("A dog", "a man", 4.0)], "test": [Pair("a cat", "a dog.", 5.0)]}
    monkeypatch.setattr(sick, "read", parts.__getitem__)
    found = read("sick")
    assert found.train == (train[2],)
    assert (found.dev, found.test) == ((parts["dev"][0],), {"test": (parts["test"][0],)})


def test_the_development_pairs_of_a_corpus_without_any_are_drawn_once_and_for_all(monkeypatch) -> None:
    monkeypatch.setattr(sts, "read", lambda year, name: numbered(750 if "train" in year else 10, f"{year}/{name}"))
    found = read("msrvid")
    assert (len(found.train), len(found.dev), len(found.test["test"])) == (675, 75, 10)
    assert set(found.train) | set(found.dev) == set(numbered(750, "2012-train/MSRvid"))
    assert found.dev != tuple(numbered(750, "2012-train/MSRvid")[:75])
    _read.cache_clear()
    assert read("msrvid") == found


def test_sts_2014_is_learnt_from_the_years_before_without_long_pairs(monkeypatch) -> None:
    long = " ".join(["word"] * (LONGEST + 1))
    years = {year: {"one": numbered(300, f"{year}/one")} for year in ("2012-train", "2012-test", "2013-test")}
    years["2013-test"]["two"] = [Pair(long, "short", 1.0), Pair("short", long, 1.0), Pair(long[5:], "fits", 2.0)]
    years["2014-test"] = {"images": numbered(4, "i"), "OnWN": numbered(5, "o")}
    monkeypatch.setattr(sts, "read_year", years.__getitem__)
    found = read("sts2014")
    assert len(found.dev) == 750
    assert len(found.train) + len(found.dev) == 900 + 1
    assert {name: len(pairs) for name, pairs in found.test.items()} == {"images": 4, "OnWN": 5}


@pytest.fixture
def questions(monkeypatch) -> dict[str, list[Pair]]:
    """Files of answer selection, each of one question that is called as all are."""
    answer = " ".join(map(str, range(ANSWER_TOKENS + 9)))
    files = [
        *(f"{part}-filtered" for part in ("train", "dev", "test")),
        "train-all",
        "dev-raw",
        "test-raw",
        "test-clean",
    ]
    found = {
        file: [Pair(f"{file} ?", answer, None, "1", "q1"), Pair(f"{file} ?", "no .", None, "0", "q1")] for file in files
    }
    monkeypatch.setattr(answers, "wikiqa", found.__getitem__)
    monkeypatch.setattr(answers, "trecqa", found.__getitem__)
    return found


def test_answers_are_cut_and_right_or_wrong(questions) -> None:
    found = read("wikiqa")
    right, wrong = found.train
    assert (right.target, wrong.target) == (1.0, 0.0)
    assert right.b.split(" ") == list(map(str, range(ANSWER_TOKENS)))
    assert (right.a, wrong.b, right.group) == ("train-filtered ?", "no .", "q1")
    assert list(found.test) == ["test"]
    assert list(read("trecqa").test) == ["raw", "clean"]


def test_tweets_are_for_pre_training_alone_and_share_no_sentence_with_a_test(monkeypatch, write) -> None:
    kept = labelled(1200)
    known = Pair("A man plays the guitar", "something else", None, "1")
    monkeypatch.setattr(paraphrase, "twitter_labelled", lambda: [*kept, known])
    monkeypatch.setattr(
        "training.corpora.pairwise.without_evaluation_sentences",
        lambda pairs: [p for p in pairs if "guitar" not in p.a],
    )
    found = read("twitter-labelled")
    assert found.test == {}
    assert len(found.dev) == 1000
    assert len(found.train) == 200
