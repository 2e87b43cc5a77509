"""The corpora whose gold is a label: MSRP, TrecQA, WikiQA, NLI, PIT-2015, SST."""

import pytest

from training.corpora import catalogue
from training.corpora.catalogue import Published
from training.corpora.files import CorpusError
from training.corpora.readers import answers, msrp, nli, pit2015, sst
from training.pairs import Pair


def test_msrp(write):
    write(msrp.FILES["train"], msrp.HEADER, ("1", "11", "12", "He left.", "He went away."))
    assert msrp.read("train") == [Pair("He left.", "He went away.", None, "1", "11-12")]


@pytest.mark.parametrize(
    ("read", "file"), [(answers.trecqa, "trecqa/train.tsv"), (answers.wikiqa, "wikiqa/WikiQA-dev.tsv")]
)
def test_questions_are_groups(write, read, file):
    write(
        file, answers.HEADER, ("q1", "1", "who ?", "Ann ."), ("q1", "0", "who ?", "no ."), ("q2", "0", "why ?", "x .")
    )
    pairs = read("train" if "trecqa" in file else "dev")
    assert [(pair.group, pair.label) for pair in pairs] == [("q1", "1"), ("q1", "0"), ("q2", "0")]
    assert pairs[0] == Pair("who ?", "Ann .", None, "1", "q1")


def test_the_number_of_questions_is_checked(write, monkeypatch):
    monkeypatch.setattr(catalogue, "PUBLISHED", {"trecqa/train.tsv": Published(2, {"0": 2}, groups=1)})
    write("trecqa/train.tsv", answers.HEADER, ("q1", "0", "a ?", "b"), ("q2", "0", "c ?", "d"))
    with pytest.raises(CorpusError) as caught:
        answers.trecqa("train")
    assert str(caught.value) == "trecqa/train.tsv: expected 1 groups (questions), got 2"


def test_an_answer_label_is_one_or_zero(write):
    write("trecqa/dev-raw.tsv", answers.HEADER, ("q1", "yes", "a ?", "b"))
    with pytest.raises(CorpusError, match=r"dev-raw\.tsv, line 2: expected one of 0, 1 in column label, got 'yes'"):
        answers.trecqa("dev-raw")


def test_nli(write):
    write("snli/snli-dev-tokenised.tsv", nli.HEADER, ("neutral", "A dog .", "A big dog ."))
    write("snli/snli_1.0_train.tsv.gz", nli.HEADER, ("entailment", "A dog.", "An animal."))
    write(nli.MULTINLI_FILE, nli.HEADER, ("contradiction", "Yes.", "No."))
    assert nli.snli("dev") == [Pair("A dog .", "A big dog .", None, "neutral")]
    assert nli.snli("train", "official") == [Pair("A dog.", "An animal.", None, "entailment")]
    assert nli.multinli() == [Pair("Yes.", "No.", None, "contradiction")]
    with pytest.raises(ValueError, match="split must be one of dev, test; got 'train'"):
        nli.snli("train")
    write("snli/snli-test-tokenised.tsv", nli.HEADER, ("-", "A dog .", "A cat ."))
    with pytest.raises(
        CorpusError, match="expected one of contradiction, entailment, neutral in column label, got '-'"
    ):
        nli.snli("test")


def test_pit_votes_become_a_score(write):
    header = ("topic_id", "topic", "votes", "label", "sentence_a", "sentence_b")
    rows = (
        ("3", "rain", "(4,1)", "1", "it rains", "rain !"),
        ("3", "rain", "(2,3)", "debatable", "it rains", "wet"),
        ("4", "sun", "(0,5)", "0", "sun", "moon"),
    )
    write(pit2015.FILES["dev"], header, *rows)
    assert [(p.target, p.label, p.group) for p in pit2015.read("dev")] == [
        (4.0, "1", "3"),
        (2.0, "debatable", "3"),
        (0.0, "0", "4"),
    ]
    assert [p.b for p in pit2015.read("dev", debatable=False)] == ["rain !", "moon"]
    write(pit2015.FILES["dev"], header, ("3", "rain", "(4,2)", "1", "a", "b"))
    with pytest.raises(CorpusError, match=r"line 2: expected five votes as \(yes,no\) in column votes, got '\(4,2\)'"):
        pit2015.read("dev")


def test_sst_classes(write):
    write("sst/sst-fine.dev.tsv", ("label", "sentence"), ("4", "wonderful ."), ("0", "dreadful ."))
    write("sst/sst-binary.dev.tsv", ("label", "sentence"), ("2", "so so ."))
    assert sst.read("dev", "fine") == [("wonderful .", 4), ("dreadful .", 0)]
    with pytest.raises(CorpusError, match="expected one of 0, 1 in column label, got '2'"):
        sst.read("dev")
