import json

import pytest
import typer
from typer.testing import CliRunner

from training.corpora import counts
from training.corpora.catalogue import catalogue
from training.corpora.catalogue.catalogue import CATALOGUE, Corpus
from training.corpora.catalogue.cli import list_corpora
from training.corpora.catalogue.inventory import State, status
from training.corpora.counts import PUBLISHED, Published

TOY = Corpus("toy", "two toys [sic]", ("toy/a.tsv", "toy/b.tsv"), "MIT", "https://toys.example")
ROWS = (("score", "sentence"), ("1", "a"), ("2", "b"))


@pytest.fixture
def toy(data, monkeypatch):
    """A catalogue of one corpus of two files, 2 and 1 rows."""
    monkeypatch.setattr(counts, "PUBLISHED", {"toy/a.tsv": Published(2), "toy/b.tsv": Published(1)})
    monkeypatch.setattr(catalogue, "CATALOGUE", (TOY,))


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(list_corpora)
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


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
    assert too_many.state is State.INCOMPLETE
    assert too_many.files[1].problem == "2 rows, 1 published"


@pytest.mark.usefixtures("toy")
def test_the_list_says_what_there_is_and_exits_with_zero(write, data):
    write("toy/a.tsv", *ROWS)
    code, output = run()
    assert code == 0
    for expected in ("toy", "two toys [sic]", "incomplete", "MIT", "https://toys.example", "toy: toy/b.tsv: absent"):
        assert expected in output
    assert "0 of 1 found in " in output
    assert str(data) in output.replace("\n", "")


@pytest.mark.usefixtures("toy")
def test_the_list_as_json(write):
    write("toy/a.tsv", *ROWS)
    code, output = run("--json")
    (toy,) = json.loads(output)
    assert code == 0
    assert toy == {
        "id": "toy",
        "what": "two toys [sic]",
        "status": "incomplete",
        "rows": 2,
        "published": 3,
        "files": [
            {"file": "toy/a.tsv", "rows": 2, "published": 2, "problem": None},
            {"file": "toy/b.tsv", "rows": None, "published": 1, "problem": "absent"},
        ],
        "licence": "MIT",
        "source": "https://toys.example",
    }


@pytest.mark.usefixtures("toy")
def test_an_unreadable_file_is_a_problem_not_a_crash(data):
    (data / "toy").mkdir(parents=True)
    (data / "toy/a.tsv").write_bytes(b"\x1f\x8bnot gzip")
    (data / "toy/b.tsv").write_bytes(b"score\n\xff\n")
    first, second = status(TOY).files
    assert first.problem is not None
    assert first.problem.startswith("toy/a.tsv, after line 0: damaged gzip data")
    assert second.problem == "toy/b.tsv, line 2: expected UTF-8 text, got bytes b'\\xff'"
    assert run()[0] == 0


def test_the_whole_catalogue_lists_on_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    code, output = run("--json")
    listed = json.loads(output)
    assert code == 0
    assert len(listed) == len(CATALOGUE)
    assert {entry["status"] for entry in listed} == {"not found"}
    assert all(entry["licence"] and entry["source"] and entry["published"] for entry in listed)


def test_every_published_file_is_in_the_catalogue_once():
    files = [file for corpus in CATALOGUE for file in corpus.files]
    assert sorted(files) == sorted(PUBLISHED)
    assert len({corpus.id for corpus in CATALOGUE}) == len(CATALOGUE)
