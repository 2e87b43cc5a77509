import pytest

from training.corpora import malstm, paraphrase, ppdb
from training.corpora.files import CorpusError
from training.pairs import Pair


def test_positives_have_label_one(write):
    write("quora-paraphrase/val.tsv", ("sentence_a", "sentence_b"), ("how are you", "how do you do"))
    write("twitter-url-paraphrase/train.tsv.gz", ("sentence_a", "sentence_b"), ("rain", "it rains"))
    assert paraphrase.quora("val") == [Pair("how are you", "how do you do", None, "1")]
    assert paraphrase.twitter_url() == [Pair("rain", "it rains", None, "1")]


def test_labelled_tweets_keep_their_negatives(write):
    header = ("label", "sentence_a", "sentence_b")
    write(paraphrase.TWITTER_LABELLED_FILE, header, ("0", "a", "b"), ("1", "c", "d"))
    assert [pair.label for pair in paraphrase.twitter_labelled()] == ["0", "1"]


def test_simplification_sources_can_be_chosen(write):
    header = ("source", "split", "complex", "simple")
    write(
        paraphrase.SIMPLIFICATION_FILE,
        header,
        ("asset", "valid", "hard one", "one"),
        ("wikisplit", "tune", "x y", "x . y"),
    )
    assert len(paraphrase.simplification()) == 2
    assert paraphrase.simplification(["asset"]) == [Pair("hard one", "one", None, "1", "asset")]
    with pytest.raises(ValueError, match=r"source must be one of .*; got 'simpwiki'"):
        paraphrase.simplification(["simpwiki"])


def test_bible_splits(write):
    header = ("version_a", "version_b", "split", "sentence_a", "sentence_b")
    write(paraphrase.BIBLE_FILE, header, ("KJV", "ASV", "train", "thou", "ye"), ("YLT", "BBE", "dev", "p", "q"))
    assert paraphrase.bible() == [Pair("thou", "ye", None, "1", "KJV-ASV")]
    assert [pair.group for pair in paraphrase.bible("dev")] == ["YLT-BBE"]


def test_ppdb_words(write):
    write(ppdb.NEIGHBOURS_FILE, ("big large huge",), ("small tiny",))
    write(ppdb.WORD_PAIR_FILES["2.0-xxl"][0], ("tag", "longer", "shorter"), ("[NN]", "automobile", "car"))
    write(ppdb.WORD_PAIR_FILES["1.0-xxxl"][0], ("word_a", "word_b"), ("a", "b"), ("c", ""))
    assert ppdb.neighbours() == {"big": ["large", "huge"], "small": ["tiny"]}
    assert ppdb.word_pairs("2.0-xxl") == [("automobile", "car")]
    assert ppdb.word_pairs("1.0-xxxl") == [("a", "b")]


@pytest.mark.parametrize("line", ["alone", "two  spaces", " leading"])
def test_malformed_neighbours(write, line):
    write(ppdb.NEIGHBOURS_FILE, ("big large",), (line,))
    with pytest.raises(CorpusError, match=r"neighbours\.txt\.gz, line 2: expected a word and its paraphrases"):
        ppdb.neighbours()


def test_rated_phrases(write):
    header = ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings")
    write(ppdb.RATING_FILES["wiki"], header, ("2.5", "[NP]", "a case", "an affair", "2.0,3.0"))
    assert ppdb.rated_phrases("wiki") == [Pair("a case", "an affair", 2.5, None, "[NP]")]


def test_malstm_pairs_that_are_sick_pairs_are_dropped(write):
    header = ("score", "sentence_a", "sentence_b", "also_in")
    write(
        malstm.PAIRS_FILE, header, ("4.2", "a", "b", "-"), ("3", "c", "d", "sick-test"), ("2", "e", "f", "sick-train")
    )
    assert malstm.pretraining_pairs() == [Pair("a", "b", 4.2)]
    write(malstm.SYNONYMS_FILE, ("word", "synonyms"), ("fast", "quick speedy"))
    assert malstm.synonyms() == {"fast": ["quick", "speedy"]}
