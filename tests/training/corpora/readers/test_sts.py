import pytest

from training.corpora import transfer
from training.corpora.catalogue import PUBLISHED
from training.corpora.files import CorpusError
from training.corpora.readers import pit2015, sick, sts, stsb
from training.pairs import Pair


def test_a_set_is_read_by_year_and_name(write):
    write("sts/2012-test/MSRvid.tsv", sts.HEADER, ("2.75", "A man runs.", "A man walks."))
    assert sts.read("2012-test", "MSRvid") == [Pair("A man runs.", "A man walks.", 2.75, None, "2012-test/MSRvid")]


def test_a_year_comes_by_set(write):
    for name in sts.SETS["2013-test"]:
        write(f"sts/2013-test/{name}.tsv", sts.HEADER, ("1", f"{name} one", f"{name} two"))
    year = sts.read_year("2013-test")
    assert list(year) == ["headlines", "OnWN", "FNWN"]
    assert year["FNWN"][0].a == "FNWN one"


def test_a_score_above_five_is_refused(write):
    write("sts/2016-test/plagiarism.tsv", sts.HEADER, ("6", "a", "b"))
    with pytest.raises(CorpusError, match=r"sts/2016-test/plagiarism\.tsv, line 2: expected a number from 0 to 5"):
        sts.read("2016-test", "plagiarism")


def test_unknown_years_and_sets_are_named():
    with pytest.raises(ValueError, match=r"year must be one of 2012-train, .*; got '2017-test'"):
        sts.read("2017-test", "images")
    with pytest.raises(ValueError, match=r"set must be one of headlines, OnWN, FNWN; got 'SMT'"):
        sts.read("2013-test", "SMT")


def test_year_totals_are_the_published_ones():
    totals = {year: sum(PUBLISHED[sts.path_of(year, name)].rows for name in names) for year, names in sts.SETS.items()}
    assert totals == {
        "2012-train": 2234,
        "2012-test": 3108,
        "2013-test": 1500,
        "2014-test": 3750,
        "2015-test": 3000,
        "2016-test": 1186,
    }


def test_transfer_names_lead_to_the_right_readers(write):
    write("sts/2015-test/belief.tsv", sts.HEADER, ("4", "a b", "c d"))
    write(sick.FILES["test"], sick.HEADER, ("1", "e", "f", "2.5", "NEUTRAL"))
    header = ("topic_id", "topic", "score_0_5", "label", "sentence_a", "sentence_b")
    write(pit2015.FILES["test"], header, ("1", "t", "3", "debatable", "g", "h"), ("1", "t", "5", "1", "i", "j"))
    assert [p.a for p in transfer.read("2015-test/belief")] == ["a b"]
    assert [p.target for p in transfer.read("sick-test")] == [2.5]
    assert [p.a for p in transfer.read("pit2015-test")] == ["i"]
    with pytest.raises(ValueError, match=r"set must be one of .*; got 'msrp'"):
        transfer.read("msrp")


def test_sts_benchmark_keeps_where_a_pair_came_from(write):
    write(stsb.FILES["dev"], stsb.HEADER, ("5.000", "a", "b", "main-news", "headlines", "2015", "0001"))
    assert stsb.read("dev") == [Pair("a", "b", 5.0, None, "main-news/headlines/2015")]
