"""`faq.json`: written whole or not at all, and read only where it is an FAQ."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from semblance import FAQ, Client
from semblance.cli.app import app
from semblance.client.faq import FAQEntry
from semblance.errors import BatchError, InvalidArgument
from semblance.tables import output_file
from tests.harness import fakes
from tests.harness.tables import write

ENTRIES: list[dict[str, Any]] = [
    {"id": "guitar", "question": "a man plays the guitar", "answer": "the man is playing"},
    {"id": "cat", "question": "a cat sleeps on the sofa", "answer": "the cat is not in the park"},
]
QUESTIONS: list[dict[str, Any]] = [
    {"question": f"{text} {more}", "id": entry}
    for text, entry in (("the man plays a guitar", "guitar"), ("is the cat on the sofa", "cat"), ("a dog runs", ""))
    for more in ("in the park", "not", "a woman", "playing")
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    fakes.cosine_model(folder / "avg-paraphrase")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "entries.csv", ENTRIES), write(tmp_path / "questions.csv", QUESTIONS)


@pytest.mark.parametrize(("file", "named"), [(0, "the entry 'guitar': "), (1, "the question 'word word")])
def test_a_text_that_the_service_refuses_is_named(
    models: Path, files: tuple[Path, Path], tmp_path: Path, file: int, named: str
) -> None:
    rows = [ENTRIES, QUESTIONS][file]
    write(files[file], [{**rows[0], "question": "word " * 30_000}, *rows[1:]])
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models)]
    ran = CliRunner().invoke(app, [*asked, "--output", str(tmp_path / "faq.json")])
    assert str(ran.exception).startswith(named)


def test_a_file_that_an_editor_wrote_with_its_mark_is_read(tmp_path: Path) -> None:
    faq = FAQ((FAQEntry(**ENTRIES[0]),))
    faq.save(tmp_path / "faq.json")
    (tmp_path / "faq.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "faq.json").read_bytes())
    assert FAQ.load(tmp_path / "faq.json") == faq


@pytest.mark.parametrize("as_json", [False, True])
def test_a_full_disk_leaves_the_earlier_file_and_what_was_found_is_printed(
    models: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    output = tmp_path / "faq.json"
    earlier = FAQ((FAQEntry("a", "b", "c"), FAQEntry(**ENTRIES[0])), {"model": "avg-paraphrase"})
    earlier.save(output)
    monkeypatch.setattr(output_file, "open_alone", lambda *_: os.open("/dev/full", os.O_WRONLY))
    monkeypatch.setattr(output_file.os, "fsync", lambda _: None)
    monkeypatch.setattr(output_file.Path, "chmod", lambda *_: None)
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models), "--output", str(output)]
    ran = CliRunner().invoke(app, [*asked, "--resamples", "50", *(["--json"] if as_json else [])])
    assert isinstance(ran.exception, OSError)
    assert (ran.exception.errno, ran.exception.filename) == (errno.ENOSPC, str(output))
    assert FAQ.load(output) == earlier
    assert "written: " not in ran.output
    if as_json:
        said = json.loads(ran.output)
        assert (said["output"], len([each for each in said["configurations"] if each["recommended"]])) == (None, 1)
    else:
        assert "recommended: " in ran.output


def test_another_faq_is_not_replaced(models: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "faq.json"
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models), "--output", str(output)]
    other = FAQ((FAQEntry("cat", "when are you open?", "on Mondays"),))
    other.save(output)
    assert "faq.json holds another FAQ: give another --output" in str(CliRunner().invoke(app, asked).exception)
    assert FAQ.load(output) == other
    FAQ((*other.entries, FAQEntry(**ENTRIES[0]))).save(output)
    ran = CliRunner().invoke(app, [*asked, "--resamples", "50"])
    assert ran.exit_code == 0, ran.output
    assert [each.id for each in FAQ.load(output).entries] == ["guitar", "cat"]


def test_an_faq_is_written_to_no_link(models: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    link = tmp_path / "faq.json"
    link.symlink_to(tmp_path / "other.json")
    with pytest.raises(BatchError, match="is a link"):
        FAQ((FAQEntry("a", "b", "c"),)).save(link)
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models), "--output", str(link)]
    assert "is a link: name another output" in str(CliRunner().invoke(app, asked).exception)
    assert [path.name for path in tmp_path.iterdir() if "faq.json" in path.name] == ["faq.json"]
    assert link.is_symlink()


def test_entries_of_anything_but_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "faq.json"
    path.write_text(json.dumps({"entries": [{"id": [1], "question": "q", "answer": "a"}]}))
    with pytest.raises(InvalidArgument, match=r"faq\.json: is no file that"):
        FAQ.load(path)


def test_a_file_with_a_question_is_refused(models: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    """docs/faq.md makes bodies with a `query` of such files: an FAQ of one would answer that question alone."""
    path = tmp_path / "faq.json"
    path.write_text(json.dumps({"entries": ENTRIES, "model": "avg-paraphrase", "query": "When do you open?"}))
    with pytest.raises(InvalidArgument, match=r"faq\.json: is no file that"):
        FAQ.load(path)
    before = path.read_text()
    asked = ["choose", "--faq", str(files[0]), str(files[1]), "--models-dir", str(models), "--output", str(path)]
    assert isinstance(CliRunner().invoke(app, asked).exception, BatchError)
    assert path.read_text() == before
    path.write_text(json.dumps({"entries": ENTRIES, "model": "avg-paraphrase", "top_k": 1, "min_score": 0.0}))
    with Client.local(models) as client:
        reply = client.answer("a cat sleeps on the sofa", FAQ.load(path))
    assert reply.entry is not None
    assert (reply.entry.id, len(reply.ranking.results)) == ("cat", 1)
