import pytest

from training.corpora.catalogue.official import from_nli, from_sick, from_stsb
from training.corpora.files import CorpusError
from training.corpora.readers import nli, sick, stsb


def tabs(*cells: str) -> str:
    return "\t".join(cells)


def test_sick_is_already_ours():
    lines = [tabs(*sick.HEADER), tabs("1", "A", "B", "3", "NEUTRAL")]
    assert list(from_sick(lines)) == lines
    with pytest.raises(CorpusError, match="SICK, line 1: expected the header pair_ID"):
        list(from_sick(["pair_ID\tsentence_A"]))


def test_stsb_columns_are_put_in_order_and_licence_notes_dropped():
    lines = [
        tabs("main-news", "MSRpar", "2012test", "0001", "4.200", 'He said "no.', "He refused."),
        tabs("main-forums", "deft-forum", "2014", "0002", "0.0", "a", "b", "http://source", "licence"),
    ]
    assert list(from_stsb(lines)) == [
        tabs(*stsb.HEADER),
        tabs("4.200", 'He said "no.', "He refused.", "main-news", "MSRpar", "2012test", "0001"),
        tabs("0.0", "a", "b", "main-forums", "deft-forum", "2014", "0002"),
    ]
    with pytest.raises(CorpusError, match="STS Benchmark, line 2: expected 7 or more columns, got 3"):
        list(from_stsb([lines[0], tabs("main-news", "x", "y")]))


HEADER = tabs("gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1", "sentence2", "pairID")


def test_nli_columns_are_found_by_name_and_pairs_without_gold_dropped():
    lines = [
        HEADER,
        tabs("neutral", "( A dog )", "( x )", "A dog.", "A big dog.", "1"),
        tabs("-", "( A dog )", "( y )", "A dog.", "A cat?", "2"),
        tabs("gold_label", "sentence2", "sentence1"),  # the next file has its columns in another order
        tabs("entailment", "An animal.", "A dog."),
    ]
    assert list(from_nli(lines)) == [
        tabs(*nli.HEADER),
        tabs("neutral", "A dog.", "A big dog."),
        tabs("entailment", "A dog.", "An animal."),
    ]


@pytest.mark.parametrize("lines", [["neutral\ta\tb"], [HEADER, "neutral\ta"], ["gold_label\tx", "neutral\ta"]])
def test_nli_without_its_columns(lines):
    with pytest.raises(CorpusError, match=r"NLI, line \d: expected the columns gold_label, sentence1 and sentence2"):
        list(from_nli(lines))
