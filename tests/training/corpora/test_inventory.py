import pytest
import typer
from typer.testing import CliRunner

from training.corpora import catalogue
from training.corpora.catalogue import CATALOGUE, PUBLISHED, Corpus, Published
from training.corpora.inventory import State, list_corpora, status
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
ROWS = (("score", "sentence"), ("1", "a"), ("2", "b"))


@pytest.fixture
def toy(data, monkeypatch):
    """A catalogue of one corpus of two files, 2 and 1 rows."""
    monkeypatch.setattr(catalogue, "CATALOGUE", {"toy": TOY})


def run() -> str:
    app = typer.Typer()
    app.command()(list_corpora)
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    return result.output


@pytest.mark.usefixtures("toy")
def test_states_by_what_is_on_disk(write):
    assert status(TOY).state is State.MISSING
    write("toy/a.tsv", *ROWS)
    assert status(TOY).state is State.INCOMPLETE
    write("toy/b.tsv", *ROWS[:2])
    complete = status(TOY)
    assert (complete.state, complete.rows, complete.published) == (State.FOUND, 3, 3)
    write("toy/b.tsv", *ROWS)
    too_many = status(TOY)
    assert (too_many.state, too_many.problems) == (State.INCOMPLETE, {"toy/b.tsv": "2 rows, 1 published"})


@pytest.mark.usefixtures("toy")
def test_the_list_says_what_there_is(write, data):
    write("toy/a.tsv", *ROWS)
    output = run()
    for expected in ("toy", "two toys [sic]", "incomplete", "MIT", "https://toys.example", "toy: toy/b.tsv: absent"):
        assert expected in output
    assert "0 of 1 found in " in output
    assert str(data) in output.replace("\n", "")


@pytest.mark.usefixtures("toy")
def test_an_unreadable_file_is_a_problem_not_a_crash(data):
    (data / "toy").mkdir(parents=True)
    (data / "toy/a.tsv").write_bytes(b"\x1f\x8bnot gzip")
    (data / "toy/b.tsv").write_bytes(b"score\n\xff\n")
    problems = status(TOY).problems
    assert problems["toy/a.tsv"].startswith("toy/a.tsv, after line 0: damaged gzip data")
    assert problems["toy/b.tsv"] == "toy/b.tsv, line 2: expected UTF-8 text, got bytes b'\\xff'"
    assert status(TOY).state is State.INCOMPLETE
    run()


def test_every_corpus_is_described_and_every_file_that_is_read_has_its_counts():
    assert all(each.what and each.licence and each.source and each.files for each in CATALOGUE.values())
    assert len(PUBLISHED) == sum(len(each.files) for each in CATALOGUE.values())
    assert all(sum(each.labels.values()) in (0, each.rows) for each in PUBLISHED.values())
    read = [*answers.WIKIQA.values(), *answers.TRECQA.values(), *captions.SOURCES.values(), captions.OVERLAP_FILE]
    read += [*intents.FILES.values(), *(each.file for each in labelled_pairs.FILES.values()), malstm.PAIRS_FILE]
    read += [*msrp.FILES.values(), *(file for form in nli.SNLI_FILES.values() for file in form.values())]
    read += [nli.MULTINLI_FILE, *paraphrase.QUORA_FILES.values(), *paraphrase.TWITTER_URL_FILES.values()]
    read += [paraphrase.TWITTER_LABELLED_FILE, paraphrase.SIMPLIFICATION_FILE, paraphrase.BIBLE_FILE]
    read += [paraphrase.PHRASES_FILE, *pit2015.FILES.values(), *sick.FILES.values()]
    read += [sst.path_of(task, split) for task in sst.LABELS for split in sst.SPLITS]
    read += [sts.path_of(year, name) for year, names in sts.SETS.items() for name in names]
    assert set(read) | {*stsb.FILES.values(), *wikipedia.PARTS} <= set(PUBLISHED)
