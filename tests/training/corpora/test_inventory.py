import typer
from typer.testing import CliRunner

from training.corpora import inventory
from training.corpora.catalogue import CATALOGUE, PUBLISHED, Corpus, Published
from training.corpora.readers import (
    answers,
    captions,
    intents,
    labelled_pairs,
    malstm,
    msrp,
    nli,
    paraphrase,
    pit2015,
    sick,
    sst,
    sts,
    stsb,
    wikipedia,
)

TOY = Corpus("two toys [sic]", "MIT", "https://toys.example", {"toy/a.tsv": Published(2), "toy/b.tsv": Published(1)})


def test_the_list_says_what_there_is(write, data, monkeypatch):
    monkeypatch.setattr(inventory, "CATALOGUE", {"toy": TOY})
    app = typer.Typer()
    app.command()(inventory.list_corpora)
    states = [("not found", "0 of 1"), ("incomplete", "toy: without toy/b.tsv"), ("found", "1 of 1 found")]
    for file, expected in zip((None, *TOY.files), states, strict=True):
        if file is not None:
            write(file, ("score", "sentence"))
        output = CliRunner().invoke(app, []).output
        for text in ("toy", "two toys [sic]", "MIT", "https://toys.example", *expected):
            assert text in output
        assert str(data) in output.replace("\n", "")


def test_every_corpus_is_described_and_every_file_that_is_read_has_its_counts():
    assert all(each.what and each.licence and each.source and each.files for each in CATALOGUE.values())
    assert len(PUBLISHED) == sum(len(each.files) for each in CATALOGUE.values())
    assert all(sum(each.labels.values()) in (0, each.rows) for each in PUBLISHED.values())
    read = [*answers.WIKIQA.values(), *answers.TRECQA.values(), *captions.SOURCES.values(), captions.OVERLAP_FILE]
    read += [*intents.FILES.values(), *(each.file for each in labelled_pairs.FILES.values()), malstm.PAIRS_FILE]
    read += [*msrp.FILES.values(), *nli.SNLI_FILES.values(), nli.MULTINLI_FILE]
    read += [paraphrase.QUORA_FILE, paraphrase.TWITTER_URL_FILE, paraphrase.SIMPLIFICATION_EXTRA_FILE]
    read += [paraphrase.TWITTER_LABELLED_FILE, paraphrase.SIMPLIFICATION_FILE, paraphrase.BIBLE_FILE]
    read += [paraphrase.PHRASES_FILE, *pit2015.FILES.values(), *sick.FILES.values()]
    read += [sst.path_of(task, split) for task in sst.LABELS for split in sst.SPLITS] + [sst.PHRASES_FILE]
    read += [sts.path_of(year, name) for year, names in sts.SETS.items() for name in names]
    assert set(read) | {*stsb.FILES.values(), *wikipedia.PARTS} <= set(PUBLISHED)
