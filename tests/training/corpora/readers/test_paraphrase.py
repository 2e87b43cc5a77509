import pytest

from training.corpora.files import CorpusError
from training.corpora.readers import malstm, paraphrase
from training.pairs import Pair


def test_positives_have_label_one(write):
    write("quora-paraphrase/train.tsv.gz", ("sentence_a", "sentence_b"), ("how are you", "how do you do"))
    write("twitter-url-paraphrase/train.tsv.gz", ("sentence_a", "sentence_b"), ("rain", "it rains"))
    assert paraphrase.quora() == [Pair("how are you", "how do you do", None, "1")]
    assert paraphrase.twitter_url() == [Pair("rain", "it rains", None, "1")]


def test_simplification_keeps_its_sources(write):
    header = ("source", "split", "complex", "simple")
    write(
        paraphrase.SIMPLIFICATION_FILE,
        header,
        ("asset", "valid", "hard one", "one"),
        ("wikisplit", "tune", "x y", "x . y"),
    )
    assert paraphrase.simplification() == [
        Pair("hard one", "one", None, "1", "asset"),
        Pair("x y", "x . y", None, "1", "wikisplit"),
    ]
    write(paraphrase.SIMPLIFICATION_FILE, header, ("simpwiki", "tune", "x", "y"))
    with pytest.raises(CorpusError, match=r"expected one of .* in column source, got 'simpwiki'"):
        paraphrase.simplification()


def test_only_the_train_part_of_the_bible_is_read(write):
    header = ("version_a", "version_b", "split", "sentence_a", "sentence_b")
    write(paraphrase.BIBLE_FILE, header, ("KJV", "ASV", "train", "thou", "ye"), ("YLT", "BBE", "dev", "p", "q"))
    assert paraphrase.bible() == [Pair("thou", "ye", None, "1", "KJV-ASV")]


def test_malstm_pairs_that_are_sick_pairs_are_dropped(write):
    header = ("score", "sentence_a", "sentence_b", "also_in")
    write(
        malstm.PAIRS_FILE, header, ("4.2", "a", "b", "-"), ("3", "c", "d", "sick-test"), ("2", "e", "f", "sick-train")
    )
    assert malstm.pretraining_pairs() == [Pair("a", "b", 4.2)]
