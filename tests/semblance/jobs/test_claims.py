"""The command `semblance claims`: documents of every kind against claims of every kind, and its page followed."""

import asyncio
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from semblance import AsyncClient
from semblance.errors import BatchError, RequestFailed
from semblance.jobs.claims import check
from semblance.tables.formats import AS_FOUND
from semblance.types import Claims
from tests.harness.commands import Ran, Run
from tests.harness.printed import shortened
from tests.harness.replaced import Replaced
from tests.harness.tables import read, write

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
DOCUMENT = "# The man\n\n- a man plays the guitar\n- a dog runs in the park 3 times\n\nThe cat sleeps."
LABELS = {"entailed", "contradicted", "not_stated"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("man.md").write_text(DOCUMENT)
    Path("other.txt").write_text("a woman reads")
    Path("claims.txt").write_text("a dog runs in the park 4 times\n\nthe cat sleeps\n")
    return tmp_path


@pytest.mark.parametrize("option", ["--prefix=x_", "--quote-formulas", "--overwrite"])
def test_an_option_of_the_output_needs_one(semblance: Run, url: str, option: str) -> None:
    ran = semblance("claims", "man.md", "claims.txt", option, "--url", url)
    name = option.partition("=")[0]
    assert ran == Ran(2, "", f"semblance: {name} is for a file that is written: give --output too\n")


def test_an_encoding_of_single_bytes_is_that_of_files_that_are_no_utf_8(semblance: Run, url: str) -> None:
    Path("old.md").write_bytes("The café costs 10 € a day.\n".encode("cp1252"))
    Path("claims.csv").write_text("claim\nThe café costs 10 €.\n", encoding="utf-8-sig")
    ran = semblance("claims", "old.md", "claims.csv", "-o", "out.jsonl", "--encoding", "cp1252", "--url", url)
    assert (ran.code, ran.err) == (0, "semblance: claims.csv: is UTF-8, and read as that, not as cp1252\n")
    (row,) = read(Path("out.jsonl"))
    assert row["claim"] == "The café costs 10 €."
    assert "The café costs 10 € a day." in (row["evidence"] or row["against"])


def test_each_claim_gets_a_row_with_its_evidence_and_where_it_stands(semblance: Run, url: str) -> None:
    done = semblance("claims", "man.md", "claims.txt", "--output", "out.csv", "--url", url)
    assert done.code == 0, done.err
    found = read(Path("out.csv"))
    assert list(found[0]) == [
        *("claim", "document", "label", "confidence", "evidence"),
        *("heading", "start", "end", "differences", "against"),
    ]
    assert [row["claim"] for row in found] == ["a dog runs in the park 4 times", "the cat sleeps"]
    for row in found:
        assert row["label"] in LABELS
        assert 1 / 3 <= float(row["confidence"]) <= 1
        assert bool(row["evidence"]) == bool(row["document"]) == (row["label"] != "not_stated")
        assert row["against"]
        if row["evidence"]:
            part = DOCUMENT[int(row["start"]) : int(row["end"])]
            assert " ".join(part.replace("- ", "").split()) == row["evidence"]
            assert (row["document"], row["heading"]) == ("man.md", "The man")
    counted = {label: sum(row["label"] == label for row in found) for label in LABELS}
    assert f"claims: 2, entailed: {counted['entailed']}, contradicted: {counted['contradicted']}" in done.out


def test_claims_of_lines_are_written_to_parquet(semblance: Run, url: str) -> None:
    assert semblance("claims", "man.md", "claims.txt", "-o", "out.csv", "--url", url).code == 0
    done = semblance("claims", "man.md", "claims.txt", "-o", "out.parquet", "--url", url)
    assert done.code == 0, done.err
    assert [row["claim"] for row in read(Path("out.parquet"))] == [row["claim"] for row in read(Path("out.csv"))]


def test_how_much_is_checked_is_told(url: str) -> None:
    """Claims that name other documents are asked apart from each other."""
    lines = [{"claim": f"a woman reads {n}", "document": name} for n in range(3) for name in ("man.md", "other.txt")]
    write(Path("claims.jsonl"), lines)
    told: list[tuple[str, float]] = []

    async def checked() -> None:
        async with AsyncClient(url) as client:
            await check(
                client, [Path("man.md"), Path("other.txt")], Path("claims.jsonl"), None, "claim", AS_FOUND,
                step=lambda what, share: told.append((what, share)),
            )  # fmt: skip

    asyncio.run(checked())
    assert told == [("checking", 0.0), ("checking", 0.5)]


def test_answers_of_a_model_and_its_successor_are_not_mixed(url: str) -> None:
    async def checked() -> None:
        async with Replaced(url) as client:
            await check(client, [Path("man.md")], Path("claims.txt"), Path("out.csv"), "claim", AS_FOUND)

    with pytest.raises(BatchError, match="a model changed while claims were asked"):
        asyncio.run(checked())
    assert not Path("out.csv").exists()


def test_claims_asked_apart_are_read_by_one_model(url: str) -> None:
    """Whatever the defaults are by then."""
    lines = [{"claim": "a woman reads", "document": name} for name in ("man.md", "other.txt")]
    write(Path("claims.jsonl"), lines)
    asked: list[tuple[str | None, str | None]] = []

    class Noted(AsyncClient):
        async def claims(self, *args: Any, **options: Any) -> Claims:
            asked.append((options["model"], options["encoder"]))
            return await super().claims(*args, **options)

    async def checked() -> None:
        async with Noted(url) as client:
            await check(client, [Path("man.md"), Path("other.txt")], Path("claims.jsonl"), None, "claim", AS_FOUND)

    asyncio.run(checked())
    first, second = asked
    assert first == (None, None)
    assert None not in second


def test_where_evidence_stands_is_not_lost_in_a_column_that_is_empty(semblance: Run, url: str) -> None:
    Path("claims.csv").write_text("claim,document\na woman reads,man.md\nthe cat sleeps,\n")
    command = ("claims", "man.md", "other.txt", "claims.csv", "-o", "out.csv", "--url", url)
    done = semblance(*command)
    assert (done.code, "the claim 'the cat sleeps' names no document" in done.err) == (2, True), done.err
    assert semblance(*command, "--prefix", "x_").code == 0
    assert [bool(row["x_document"]) for row in read(Path("out.csv"))] == [
        bool(row["x_evidence"]) for row in read(Path("out.csv"))
    ]


def test_a_column_says_which_document_and_bad_rows_are_told(semblance: Run, url: str) -> None:
    lines = [
        {"claim": "a woman reads", "document": "other.txt"},
        {"claim": "a woman reads", "document": "man.md"},
        {"claim": "the cat sleeps"},
        {"claim": "the cat sleeps", "document": "absent.md"},
        {"claim": 3},
    ]
    write(Path("claims.jsonl"), lines)
    done = semblance("claims", "man.md", "other.txt", "claims.jsonl", "-o", "out.jsonl", "--prefix", "x_", "--url", url)
    assert done.code == 4, done.err
    found = read(Path("out.jsonl"))
    assert [row["claim"] for row in found] == ["a woman reads", "a woman reads", "the cat sleeps"]
    assert found[0]["x_document"] in ("other.txt", None)
    assert found[1]["x_document"] in ("man.md", None)
    errors = read(Path("out.jsonl.errors.jsonl"))
    assert [(each["row"], each["code"]) for each in errors] == [(4, "no_document"), (5, "not_text")]


def test_without_an_output_the_answers_are_shown(semblance: Run, url: str) -> None:
    shown = semblance("claims", "man.md", "claims.txt", "--url", url)
    assert shown.code == 0
    assert "the cat sleeps" in shown.out
    # Of several documents the one that has the evidence is named, before its headings.
    both = semblance("claims", "other.txt", "man.md", "claims.txt", "--url", url)
    assert ("man.md > The man: " in both.out, "man.md" in shown.out, "The man: " in shown.out) == (True, False, True)
    told = semblance("claims", "man.md", "claims.txt", "--url", url, "--json")
    answer = json.loads(told.out)
    assert "errors" not in answer
    assert answer["claims"] == 2
    assert {result["label"] for result in answer["results"]} <= LABELS
    assert [result["claim"] for result in answer["results"]] == ["a dog runs in the park 4 times", "the cat sleeps"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.md", "claims.txt"], "absent.md: No such file"),
        (["man.md", "absent.txt"], "absent.txt: No such file"),
        (["man.docx", "claims.txt"], "a document is .txt, .md, .html or .pdf"),
        (["man.md", "claims.txt", "-o", "claims.txt"], "claims.txt: expected .jsonl"),
        (["man.md", "claims.csv", "-o", "claims.csv"], "claims.csv is the input too"),
        (["man.md", "claims.csv", "-o", "o.csv"], "claims.csv has a column 'label' already"),
        (["man.md", "../" + "x" * 5 + "/man.md", "claims.txt"], "two documents are called man.md"),
        (["empty.txt", "claims.txt"], "empty.txt: there is no text"),
    ],
)
def test_what_cannot_be_done_is_one_line(semblance: Run, url: str, arguments: list[str], said: str) -> None:
    Path("claims.csv").write_text("claim,label\na man,entailed\n")
    Path("empty.txt").write_text(" \n")
    Path("man.docx").write_text("a man")
    done = semblance("claims", *arguments, "--url", url)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_claim_that_the_service_refuses_is_a_bad_row(semblance: Run, url: str) -> None:
    claims = ["the cat sleeps", "word " * 30_000, "\u200b", "a dog runs"]
    write(Path("claims.csv"), [{"claim": claim} for claim in claims])
    done = semblance("claims", "man.md", "claims.csv", "-o", "out.csv", "--url", url)
    assert done.code == 4, done.err
    assert [row["claim"] for row in read(Path("out.csv"))] == [claims[0], claims[3]]
    errors = read(Path("out.csv.errors.jsonl"))
    assert [(each["line"], each["column"], each["code"]) for each in errors] == [
        (3, "claim", "too_large"),
        (4, "claim", "empty_text"),
    ]
    shown = semblance("claims", "man.md", "claims.csv", "--json", "--url", url)
    assert (shown.code, json.loads(shown.out)["skipped"]) == (4, 2)
    assert "semblance: claims.csv, line 3: a text of 149999 characters, the limit is" in shown.err


def test_claims_that_take_too_long_together_are_asked_in_parts(
    semblance: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("claims.txt").write_text("".join(f"a dog runs {i} times\n" for i in range(7)))
    claims = AsyncClient.claims

    async def slow(client: AsyncClient, documents: Any, asked: list[str], **more: Any) -> Claims:
        if len(asked) > 2:
            raise RequestFailed(503, "timeout", "no answer in time")
        return await claims(client, documents, asked, **more)

    monkeypatch.setattr(AsyncClient, "claims", slow)
    done = semblance("claims", "man.md", "claims.txt", "-o", "out.jsonl", "--url", url)
    assert done.code == 0, done.err
    assert [row["claim"] for row in read(Path("out.jsonl"))] == Path("claims.txt").read_text().splitlines()


def test_what_steers_a_terminal_is_not_shown(semblance: Run, url: str) -> None:
    Path("evil.md").write_text("The cat sleeps \033]0;title\007\033[2J\u009b2J.\n")
    for command in (("claims", "evil.md", "claims.txt"), ("rank", "the cat", "--file", "evil.md")):
        shown = semblance(*command, "--url", url)
        assert "The cat sleeps ]0;title[2J2J." in " ".join(shown.out.split())
        assert shown.out.replace("\n", "").isprintable()


def test_a_list_among_claims_is_one_bad_row(semblance: Run, url: str) -> None:
    Path("c.jsonl").write_text('{"claim": "the cat sleeps"}\n{"claim": ["x"]}\n{"claim": "x", "document": ["y"]}\n')
    ran = semblance("claims", "man.md", "c.jsonl", "-o", "out.parquet", "--url", url)
    assert ran.code == 4, ran.err
    assert [row["claim"] for row in read(Path("out.parquet"))] == ["the cat sleeps"]
    reasons = [row["reason"] for row in read(Path("out.parquet.errors.jsonl"))]
    assert reasons == ["expected text, found list", "no document \"['y']\" was given, but man.md"]


def test_a_row_without_an_answer_is_told_with_its_reason(semblance: Run, url: str) -> None:
    Path("c.csv").write_text("claim,document\nthe cat sleeps,other.md\n")
    ran = semblance("claims", "man.md", "c.csv", "--url", url)
    assert (ran.code, "c.csv, line 2: no document 'other.md' was given, but man.md" in ran.err) == (2, True)
    Path("c.csv").write_text("claim,document\nthe cat sleeps,man.md\n,man.md\n")
    ran = semblance("claims", "man.md", "c.csv", "--url", url)
    assert (ran.code, "c.csv, line 3: the text has no visible character" in ran.err) == (4, True)


def test_a_document_that_the_service_refuses_is_called_by_its_file(semblance: Run, url: str) -> None:
    Path("heads.md").write_text("# Only a heading\n")
    ran = semblance("claims", "heads.md", "claims.txt", "--url", url)
    assert ran.code == 1
    assert "the document heads.md: there is no sentence" in ran.err


@pytest.mark.artifacts
def test_the_page_prints_what_it_says(published: str, semblance: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last digit of a confidence may differ."""
    monkeypatch.setenv("COLUMNS", "110")
    (Path.cwd() / "docs").symlink_to(ROOT / "docs")
    ((command, printed),) = re.findall(r"^\$ (semblance claims .*?)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    _, *arguments = shlex.split(command)
    done = semblance(*arguments, "--url", published)
    assert done.code == 0, done.err
    number = re.compile(r"[01]\.\d\d")
    said = shortened(done.out, printed)
    shown, wanted = said.splitlines(), printed.splitlines()
    assert [number.sub("#", line.rstrip()) for line in shown] == [number.sub("#", line) for line in wanted]
    assert [float(x) for x in number.findall(said)] == pytest.approx(
        [float(x) for x in number.findall(printed)], abs=0.011
    )


def test_a_document_that_never_ends_or_is_too_deep_is_refused_by_name(semblance: Run) -> None:
    os.mkfifo("pipe.html")
    Path("endless.txt").symlink_to("/dev/zero")
    Path("deep.html").write_text("<div>" * 5000 + "Dogs bark." + "</div>" * 5000)
    for name in ("pipe.html", "endless.txt", "deep.html"):
        ran = semblance("claims", name, "claims.txt", "--url", "http://127.0.0.1:1")
        assert (ran.code, name in ran.err) == (2, True), ran
