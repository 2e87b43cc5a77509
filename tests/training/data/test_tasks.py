"""Mixtures of corpora: how they are split, labelled and cut, what each teaches, and what is left out of it."""

from collections.abc import Iterator

import pytest

from tests.harness import toy_runs
from training.data import sts_split, tasks
from training.data.leakage import pair_key
from training.data.pairs import Pair
from training.data.pairwise import ANSWER_TOKENS, LONGEST, _read, read
from training.data.readers import intents, labelled_pairs, sts


def written(write, name: str, *rows: tuple[str, ...]) -> None:
    """Rows of a file in the table of labelled pairs."""
    known = labelled_pairs.FILES[name]
    write(known.file, known.header, *rows)


@pytest.fixture
def evaluation(write):
    """One sentence in an evaluation set, one premise in each of the three parts for entailment."""
    write(sts.path_of("2016-test", "headlines"), sts.HEADER, ("3", "Ice melts.", "It snows."))
    premises = {"snli-dev": "A man sings .", "snli-test": "A man swims .", "multinli": "A man waits."}
    for name, premise in premises.items():
        written(write, name, ("neutral", premise, "Someone is alive."))


def test_evaluation_sentences_and_premises_are_left_out(write, evaluation):
    rows = [
        ("neutral", "x", "A man runs.", "It rains."),
        ("neutral", "x", "A man runs.", "Ice melts"),  # a sentence of STS
        ("neutral", "x", "a man sings", "He is loud."),  # premises of SNLI and MultiNLI
        ("neutral", "x", "A man swims.", "He is wet."),
        ("neutral", "x", "A man waits.", "He stands."),
        ("neutral", "x", "A man leaves.", "Someone is alive."),  # their hypotheses may come again
    ]
    written(write, "snli-train", *rows)
    assert [(pair.a, pair.b) for pair in tasks.read("snli-train")] == [
        ("A man runs.", "It rains."),
        ("A man leaves.", "Someone is alive."),
    ]


def test_texts_of_cosines_are_in_no_part_that_measures_entailment(evaluation):
    texts = ["It rains.", "a man SINGS", "A man swims.", "A man waits.", "someone is alive", "A man runs."]
    assert tasks.without_entailment_texts(texts) == ["It rains.", "A man runs."]


def test_pairs_to_choose_by_are_not_measured(monkeypatch):
    pairs = [Pair(f"a {i}", f"b {i}", label="neutral") for i in range(5000)]
    toy_runs.read_instead(monkeypatch, labelled=lambda name: pairs)
    for name in ("snli", "multinli"):
        chosen = tasks.development(name)
        assert len(chosen) == 600
        assert not {p.a for p in chosen} & {p.a for p in tasks.measured(pairs)}


def test_a_negation_that_differs_in_marks_alone_is_none(write, evaluation):
    rows = [
        ("x", "contradiction", "It rains", "It rains."),
        ("x", "contradiction", "It rains", "It does not rain"),
        ("x", "paraphrase", "It pours", "It pours."),
    ]
    written(write, "cannot", *rows)
    expected = [("It does not rain", "contradiction"), ("It pours.", "entailment")]
    assert [(pair.b, pair.label) for pair in tasks.read("cannot")] == expected
    assert [(pair.b, pair.label) for pair in tasks.read("negations")] == [("It does not rain", "0"), ("It pours.", "1")]


def test_ratings_of_sick_become_values_from_0_to_1_and_test_pairs_are_left_out(write, monkeypatch):
    rain = ("It rains", "It pours")
    pairs = {
        "sick-train": [Pair("A dog runs", "A dog walks", 1.0, "neutral"), Pair(*rain, 5.0, "entailment")],
        "sick-dev": [Pair(*rain[::-1], 5.0, "entailment")],
        "sick-test": [],
    }
    toy_runs.read_instead(monkeypatch, labelled=pairs.__getitem__)
    assert tasks.read("sick") == (Pair("A dog runs", "A dog walks", 0.0, "neutral"),)


def test_premises_get_the_hypothesis_of_another_group_as_neutral(write, evaluation):
    star, ice = ("A star is hot.", "a star glows"), ("Ice is cold.", "ice cools")
    written(write, "entailment-bank", (*star, "entailment", "1", "step"), (*ice, "entailment", "2", "x"))
    assert [((p.a, p.b), p.label) for p in tasks.read("entailment-bank")] == [
        *((pair, "entailment") for pair in (star, ice)),
        *((pair, "neutral") for pair in ((star[0], ice[1]), (ice[0], star[1]))),
    ]


def test_a_sentence_that_does_not_answer_does_not_entail_the_question(write, evaluation):
    rows = (("entailment", "Who came?", "Ann did."), ("not_entailment", "Who left?", "It rains."))
    written(write, "qnli-dev", *rows)
    assert tasks.read("qnli-not") == (Pair("It rains.", "Who left?", label="not_entailment"),)


def test_answers_that_stand_in_a_set_kept_aside_are_left_out(write, evaluation):
    said = "Beer keeps for a year when it is cold."
    write("bank-faq/hdfc-bank-faq.tsv.gz", ("question", "answer"), ("x", f"Well: {said} So do."))
    rows = [
        ("q", answer, "1", "g", "beer") for answer in (f"Yes! {said}", "Some say that it keeps for many years or so.")
    ]
    written(write, "stackexchange", *rows)
    assert [p.b for p in tasks.read("stackexchange")] == ["Some say that it keeps for many years or so."]


def test_requests_are_edited_with_quora_s_questions(write, evaluation):
    written(write, "qqp-labelled", ("1", "How do I raise money?", "What is Rome?"))
    for name in intents.FILES:
        write(intents.FILES[name], ("text", "intent"), ("import my data", name), ("Ice melts.", name))
    assert tasks.requests("intents-hwu64") == [("import my data", "hwu64")]  # the other one is a sentence of STS
    found = tasks.read("request-edits")
    assert {p.label for p in found} == {"0", "1"}
    assert any({p.a, p.b} == {"import my data", "export my data"} for p in found)
    with pytest.raises(ValueError, match="corpus must be one of snli-train"):
        tasks.read("intents-hwu64")


def test_edits_of_two_makers_are_kept_for_measuring(write):
    rows = [(maker, "swap", "0", f"a dog {maker}", f"a cat {maker}") for maker in ("sugarcrepe", "valse", "negclip")]
    written(write, "caption-contrast", *rows)
    assert tasks.read("caption-contrast") == (Pair("a dog negclip", "a cat negclip", tasks.CONTRAST),)


@pytest.fixture(autouse=True)
def forgotten(data) -> Iterator[None]:
    """What was read is kept; each test has corpora of its own."""
    for kept in (_read, tasks._read):
        kept.cache_clear()
    yield
    for kept in (_read, tasks._read):
        kept.cache_clear()


def numbered(count: int, group: str = "", label: str | None = None) -> list[Pair]:
    return [Pair(f"{group} left {i}", f"{group} right {i}", i % 6, label, group) for i in range(count)]


def test_a_pair_of_the_development_or_test_part_is_not_trained_on(monkeypatch) -> None:
    train = [Pair("A man!", "a dog", 1.0), Pair("a cat", "a dog", 2.0), Pair("x", "y", 3.0)]
    dev, test = Pair("A dog", "a man", 4.0), Pair("a cat", "a dog.", 5.0)
    parts = {"sick-train": train, "sick-dev": [dev], "sick-test": [test]}
    toy_runs.read_instead(monkeypatch, labelled=parts.__getitem__)
    found = read("sick")
    assert (found.train, found.dev, found.test) == ((train[2],), (dev,), {"test": (test,)})


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


def test_answers_are_cut_and_right_or_wrong(monkeypatch) -> None:
    """Files of answer selection, each of one question that is called as all are."""
    answer = " ".join(map(str, range(ANSWER_TOKENS + 9)))
    toy_runs.read_instead(
        monkeypatch,
        labelled=lambda name: [
            *(Pair(f"{name} ?", answer, None, "1", "q1"), Pair(f"{name} ?", "no .", None, "0", "q1"))
        ],
    )
    found = read("wikiqa")
    right, wrong = found.train
    assert (right.target, wrong.target) == (1.0, 0.0)
    assert right.b.split(" ") == list(map(str, range(ANSWER_TOKENS)))
    assert (right.a, wrong.b, right.group) == ("wikiqa-train-filtered ?", "no .", "q1")
    assert list(found.test) == ["test"]
    assert list(read("trecqa").test) == ["raw", "clean"]


def test_tweets_are_for_pre_training_alone_and_share_no_sentence_with_a_test(monkeypatch, write) -> None:
    kept = [Pair(f"left {i}", f"right {i}", None, str(i % 2)) for i in range(1200)]
    known = Pair("A man plays the guitar", "something else", None, "1")
    toy_runs.read_instead(monkeypatch, labelled={"twitter-labelled": [*kept, known]}.__getitem__)
    monkeypatch.setattr(
        "training.data.pairwise.without_evaluation_sentences",
        lambda pairs: [p for p in pairs if "guitar" not in p.a],
    )
    found = read("twitter-labelled")
    assert found.test == {}
    assert len(found.dev) == 1000
    assert len(found.train) == 200


SETS = [("2014-test", "images"), ("2015-test", "belief")]


@pytest.fixture
def two_sets(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sts, "TRANSFER_SETS", SETS)
    for (year, name), count in zip(SETS, (40, 20), strict=True):
        rows = [(str(i % 6), f"{name} first {i}", f"{name} second {i}") for i in range(count)]
        write(f"sts/{year}/{name}.tsv", sts.HEADER, *rows)


def sizes(part: tuple[Pair, ...]) -> dict[str, int]:
    groups = [pair.group for pair in part]
    return {group: groups.count(group) for group in groups}


def test_every_set_gives_40_10_and_50_percent(two_sets) -> None:
    split = sts_split.read(seed=3)
    assert sizes(split.train) == {"2014-test/images": 16, "2015-test/belief": 8}
    assert sizes(split.dev) == {"2014-test/images": 4, "2015-test/belief": 2}
    assert sizes(split.test) == {"2014-test/images": 20, "2015-test/belief": 10}
    assert len({p.a for part in (split.train, split.dev, split.test) for p in part}) == 60


def test_a_pair_of_a_held_out_part_is_in_no_other(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sts, "TRANSFER_SETS", SETS)
    rows = [(str(i % 6), f"Number {i}.", f"and {i}") for i in range(20)]
    turned = [(score, b, a.upper()) for score, a, b in rows]  # the same two_sets again, in the other order
    for (year, name), content in zip(SETS, (rows, turned), strict=True):
        write(f"sts/{year}/{name}.tsv", sts.HEADER, *content)
    split = sts_split.read(seed=0)
    train, dev, test = ({pair_key(p.a, p.b) for p in part} for part in (split.train, split.dev, split.test))
    assert len(split.test) == 20  # never cut
    assert (train & dev, train & test, dev & test) == (set(), set(), set())
    assert len(train | dev | test) == 20  # nothing is lost altogether
