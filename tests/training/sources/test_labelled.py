"""Sentences of SST, with and without the phrases that they are made of."""

import pytest

from training.corpora import catalogue
from training.corpora.readers import sst
from training.sources.labelled import SSTSentences

PARTS = {
    "binary.train": [("1", "a dull man finds a joyous dog .")],
    "binary.dev": [("0", "so dull ,")],
    "fine.train": [("1", "a dull man finds a joyous dog ."), ("2", "a man finds a dog .")],
    "fine.dev": [("1", "so dull ,"), ("2", "well , fine")],
    "fine.test": [("4", "joyous !")],
}
PHRASES = [
    ("1", "a dull man"),
    ("3", "joyous dog"),
    ("2", "a man"),
    ("1", "So Dull"),
    ("4", "joyous"),
    ("3", "well fine"),
]


@pytest.fixture(autouse=True)
def sentiment(tmp_path, monkeypatch):
    """A data folder with the four parts and the phrases."""
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    monkeypatch.setattr(catalogue, "PUBLISHED", {})
    files = {f"sst/sst-{part}.tsv": [("label", "sentence"), *rows] for part, rows in PARTS.items()}
    header = ("label", "sentence", "count", "phrase")
    files[sst.PHRASES_FILE] = [header, *((label, "0", "1", phrase) for label, phrase in PHRASES)]
    for name, rows in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows))


def test_phrases_join_the_sentences_but_for_those_that_are_sentences_of_other_parts():
    sentences = [("a dull man finds a joyous dog .", 1)]
    assert SSTSentences().train() == sentences
    assert SSTSentences(phrases=True).train() == [*sentences, ("a dull man", 0), ("joyous dog", 1)]
    assert SSTSentences(phrases=True).dev() == SSTSentences().dev() == [("so dull ,", 0)]


def test_with_three_labels_what_is_neutral_is_learnt_too():
    found = SSTSentences(labels="ternary", phrases=True)
    sentences = [("a dull man finds a joyous dog .", 0), ("a man finds a dog .", 1)]
    assert found.train() == [*sentences, ("a dull man", 0), ("joyous dog", 2), ("a man", 1)]
    assert found.dev() == [("so dull ,", 0), ("well , fine", 1)]
    assert [(each.name, each.rows) for each in found.sources()] == [("sst", 2), ("sst-phrases", 3)]


def test_a_card_counts_what_was_learnt():
    assert [(each.name, each.rows) for each in SSTSentences().sources()] == [("sst", 1)]
    assert [(each.name, each.rows) for each in SSTSentences(phrases=True).sources()] == [("sst", 1), ("sst-phrases", 2)]
