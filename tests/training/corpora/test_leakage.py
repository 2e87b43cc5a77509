import logging

import pytest

from training.corpora import leakage, msrp, pit2015, sick, sts, stsb, trecqa, wikiqa
from training.pairs import Pair


def test_the_form_in_which_sentences_are_compared():
    assert leakage.normalise_for_overlap("  The U.S.  team's _new_\tcar -- it's \u201cred\u201d! ") == (
        "the us teams new car its red"
    )
    assert leakage.normalise_for_overlap("?!") == ""


@pytest.fixture
def evaluation(write):
    write(sick.FILES["train"], sick.HEADER, ("1", "A cat sleeps.", "A dog barks.", "1.5", "NEUTRAL"))
    write(sts.path_of("2013-test", "OnWN"), sts.HEADER, ("1", "a body of water.", "a dry place"))
    write(stsb.FILES["dev"], stsb.HEADER, ("5", "Benchmark dev", "dev two", "g", "s", "2015", "1"))
    write(stsb.FILES["train"], stsb.HEADER, ("5", "Benchmark train", "train two", "g", "s", "2015", "1"))
    write(msrp.FILES["test"], msrp.HEADER, ("1", "1", "2", "Shares rose.", "Shares went up."))
    write(msrp.FILES["train"], msrp.HEADER, ("1", "3", "4", "Shares fell.", "Shares went down."))
    header = ("topic_id", "topic", "score_0_5", "label", "sentence_a", "sentence_b")
    write(pit2015.FILES["test"], header, ("1", "t", "3", "debatable", "what a day", "such a day"))
    write(wikiqa.FILES["dev"], trecqa.HEADER, ("1", "1", "who was he ?", "He was n't there -LRB- ever -RRB- ."))
    write(wikiqa.FILES["train"], trecqa.HEADER, ("1", "1", "train question ?", "train answer"))


@pytest.mark.usefixtures("evaluation")
def test_sentences_of_every_evaluation_set_and_of_no_training_set():
    sentences = leakage.evaluation_sentences()
    assert sentences == {
        "a cat sleeps", "a dog barks", "a body of water", "a dry place", "benchmark dev", "dev two", "shares rose",
        "shares went up", "what a day", "such a day", "who was he", "he was nt there lrb ever rrb",
        "he wasnt there ever",
    }  # fmt: skip


@pytest.mark.usefixtures("evaluation")
def test_corpora_can_be_chosen():
    assert leakage.evaluation_sentences(["pit2015"]) == {"what a day", "such a day"}
    with pytest.raises(ValueError, match=r"corpus must be one of sick, sts, .*; got 'quora'"):
        leakage.evaluation_sentences(["quora"])


@pytest.mark.usefixtures("evaluation")
def test_absent_sets_are_named_in_one_warning(caplog):
    with caplog.at_level(logging.WARNING):
        leakage.evaluation_sentences(["sick"])
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("2 evaluation sets are not filtered out, being absent: SICK: ")
    assert "SICK_trial.txt" in message
    assert "SICK_test_annotated.txt" in message


@pytest.mark.usefixtures("evaluation")
def test_texts_and_pairs_with_an_evaluation_sentence_are_dropped():
    texts = ["A CAT SLEEPS", "a cat sleeps well", "Such a day!", "He wasn't there (ever)."]
    assert list(leakage.without_evaluation_sentences(texts)) == ["a cat sleeps well"]
    pairs = [Pair("new", "a dog barks"), Pair("a dry place", "new"), Pair("new", "newer")]
    assert list(leakage.without_evaluation_sentences(pairs)) == [Pair("new", "newer")]


def test_a_given_set_of_sentences_is_used(data):
    assert list(leakage.without_evaluation_sentences(["One.", "two"], {"one"})) == ["two"]


def test_another_data_folder_is_read_afresh(write, monkeypatch, tmp_path):
    write(sick.FILES["train"], sick.HEADER, ("1", "A cat sleeps.", "A dog barks.", "1.5", "NEUTRAL"))
    assert "a cat sleeps" in leakage.evaluation_sentences(["sick"])
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path / "other"))
    assert leakage.evaluation_sentences(["sick"]) == frozenset()


def test_pairs_are_the_same_in_either_order():
    assert leakage.pair_key("B it is!", "a") == leakage.pair_key("A", "b it is") == ("a", "b it is")
    train = [Pair("A cat.", "A dog."), Pair("A cat.", "A bird.")]
    assert leakage.without_pairs(train, [Pair("a dog", "a cat")]) == [train[1]]
