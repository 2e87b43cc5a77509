"""Files of a corpus: what is said of a broken one, and the list of all."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from training.data import catalogue, inventory
from training.data.catalogue import CATALOGUE, PUBLISHED, Corpus, Published
from training.data.files import CorpusError, CorpusMissing, data_dir, read_lines, read_rows
from training.data.readers import captions, intents, labelled_pairs, sst, sts, wikipedia

HEADER = ("score", "sentence")


def test_the_data_folder_is_read_from_the_environment_at_each_call(monkeypatch):
    for value, folder in (("/somewhere/else", "/somewhere/else"), ("", "data")):
        monkeypatch.setenv("SEMBLANCE_DATA", value)
        assert data_dir() == Path(folder)
    monkeypatch.delenv("SEMBLANCE_DATA")
    assert data_dir() == Path("data")


def test_a_missing_file_names_corpus_path_and_command(data):
    said = "toy/t.tsv not found; `python -m training data` says where each corpus comes from"
    with pytest.raises(CorpusMissing, match=rf"^Toy corpus: {data}/{re.escape(said)}$"):
        read_rows("Toy corpus", "toy/t.tsv", HEADER)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.tsv, line 1: expected the header score | sentence, got an empty file"),
        (b"sentence\tscore\n", "t.tsv, line 1: expected the header score | sentence, got 'sentence\\tscore'"),
        (b"score\tsentence\r\n", "t.tsv, line 1: expected the header score | sentence, got 'score\\tsentence\\r'"),
        (b"score\tsentence\n1\ta\n2\n", "t.tsv, line 3: expected 2 tab-separated columns, got 1: '2'"),
        (b"score\tsentence\n1\ta\tb\n", "t.tsv, line 2: expected 2 tab-separated columns, got 3: '1\\ta\\tb'"),
        (b"score\tsentence\n1\tcaf\xe9!\n", "t.tsv, line 2: expected UTF-8 text, got bytes b'\\xe9'"),
    ],
)
def test_malformed_files_give_one_line_with_file_and_line(data, content, message):
    data.mkdir()
    (data / "t.tsv").write_bytes(content)
    with pytest.raises(CorpusError, match=f"^{re.escape(message)}$"):
        read_rows("toy", "t.tsv", HEADER)


def test_damaged_gzip_is_a_corpus_error(data, write):
    path = write("t.tsv.gz", HEADER, *((str(i), f"sentence number {i}") for i in range(1000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorpusError, match=r"t\.tsv\.gz, after line \d+: damaged gzip data"):
        read_rows("toy", "t.tsv.gz", HEADER)
    path.write_bytes(b"\x1f\x8b" + b"\x07" * 40)
    with pytest.raises(CorpusError, match=r"t\.tsv\.gz, after line 0: damaged gzip data"):
        read_rows("toy", "t.tsv.gz", HEADER)


@pytest.mark.parametrize("cell", ["5.5", "-1", "nan", "inf", "", "high"])
def test_numbers_out_of_range_are_refused(write, cell):
    write("t.tsv", HEADER, (cell, "a"))
    (row,) = read_rows("toy", "t.tsv", HEADER)
    told = f"t.tsv, line 2: expected a number from 0 to 5 in column score, got {cell!r}"
    with pytest.raises(CorpusError, match=f"^{re.escape(told)}$"):
        row.number("score", 0, 5)


def test_range_ends_blank_text_choices_quotes_and_unicode_line_separators(write):
    write("t.tsv", HEADER, ("1", 'he said "no'), ("2", "one\u2028two\x0bthree\x85four"))
    rows = read_rows("toy", "t.tsv", HEADER)
    assert [row.text("sentence") for row in rows] == ['he said "no', "one\u2028two\x0bthree\x85four"]
    assert [row.line for row in rows] == [2, 3]
    write("t.tsv", HEADER, ("0", " a "), ("5", "  "))
    low, high = read_rows("toy", "t.tsv", HEADER)
    assert (low.number("score", 0, 5), high.number("score", 0, 5)) == (0.0, 5.0)
    assert low.text("sentence") == "a"
    with pytest.raises(CorpusError, match=r"t\.tsv, line 3: expected text in column sentence, got '  '"):
        high.text("sentence")
    with pytest.raises(CorpusError, match=r"line 2: expected one of 1, 2 in column score, got '0'"):
        low.choice("score", ("2", "1"))


def test_the_published_number_of_rows_is_checked(write, monkeypatch):
    monkeypatch.setattr(catalogue, "PUBLISHED", {"t.tsv": Published(2), "u.txt": Published(3)})
    write("t.tsv", HEADER, ("1", "a"))
    with pytest.raises(CorpusError, match=r"^t\.tsv: expected the published 2 rows, got 1$"):
        read_rows("toy", "t.tsv", HEADER)
    write("t.tsv", HEADER, ("1", "a"), ("2", "b"))
    assert len(read_rows("toy", "t.tsv", HEADER)) == 2
    write("u.txt", ("one",), ("two",))
    with pytest.raises(CorpusError, match=r"u\.txt: expected the published 3 rows, got 2"):
        read_lines("toy", "u.txt")


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
    read = [each.file for each in labelled_pairs.FILES.values()] + [sst.PHRASES_FILE, captions.OVERLAP_FILE]
    read += [*captions.SOURCES.values(), *intents.FILES.values(), *wikipedia.PARTS]
    read += [sst.path_of(task, split) for task in sst.LABELS for split in sst.SPLITS]
    read += [sts.path_of(year, name) for year, names in sts.SETS.items() for name in names]
    assert set(read) <= set(PUBLISHED)
