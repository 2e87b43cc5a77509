"""The command `semblance claims`: documents of every kind against claims of every kind, and its page followed."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from semblance import AsyncClient
from semblance.errors import BatchError, MissingExtra, RequestFailed
from semblance.jobs.claims import check
from semblance.tables.documents import text_of_file
from semblance.tables.formats import AS_FOUND
from semblance.types import Claims
from tests.harness.commands import Ran, Run
from tests.harness.printed import shortened
from tests.harness.replaced import Replaced
from tests.harness.tables import read, write

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
DOCUMENT = "# The man\n\n- a man plays the guitar\n- a dog runs in the park 3 times\n\nThe cat sleeps."
FONT = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica"}
BLOCKS = ("main", "aside", "footer", "address", "figure", "fieldset", "legend", "label", "option", "center", "x-own")
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


def test_a_page_is_read_as_its_headings_items_and_rows() -> None:
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")
    page = (
        "<html><head><title>x</title><style>p {}</style></head><body><nav>Home</nav><h1>Rules</h1>"
        "<p hidden>Dogs may enter.</p><p style='color:red; Display:none'><i>Cats</i> too.</p><del>Or not.</del>"
        "<p>Be <b>nice</b> "
        "&amp; kind.</p><ul><li>Children</li><li>Dogs</li></ul><table><tr><th>Day</th><th>Fee</th></tr>"
        "<tr><td>Monday</td><td>2 \u20ac</td></tr></table><script>no()</script></body></html>"
    )
    Path("page.html").write_text(page, encoding="utf-8")
    text = text_of_file(Path("page.html"))
    for part in ("# Rules", "Be nice & kind.", "- Children", "| Monday | 2 \u20ac |"):
        assert part in text
    assert not re.search(r"Home|no\(\)|p \{|x\n|may enter|Cats|Or not", text)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>It is 20<sup>1</sup> euros.</p>", "It is 20 euros."),
        (
            "<p>It is 20<sup><a href='#1'>a</a></sup> euros, 5<a href='#b'><sup>b</sup></a> at once.</p>",
            "It is 20 euros, 5",
        ),
        ("<p>It holds 10<sup>6</sup> litres on 20 m<sup>2</sup>.</p>", "It holds 10\u2076 litres on 20 m\u00b2."),
        (
            "<p>It is $19<sup>99</sup>, 5 mi<sup>2</sup> large, 10<sup>100</sup>.",
            "It is $19.99, 5 mi\u00b2 large, 10\u00b9\u2070\u2070.",
        ),
        (
            "<p><math><msup><mn>10</mn><mn>6</mn></msup></math>, 2<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>.",
            "10\u2076, 2 1/2.",
        ),
        (
            "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td>2<td>3<tr><td><p>4</p><td>5"
            "<tr><td>6<td colspan=2 rowspan=9>7<tr><td>8</table>",
            "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n| 1 | 4 | 5 |\n| 6 | 7 |  |\n| 8 | 7 |  |",
        ),
        (
            "<table><tr><td><table><tr><th>a<th>b<tr><td>1<td>2</table><p>3.</p></table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n3.",
        ),
        ("<p>It is <b>20</b><i>0</i> <code>euros</code>.", "It is 200 euros."),
        (
            "<table><caption>All</caption><colgroup><col></colgroup><tr><th>a<th>b<tr><td>x<td>y</table>",
            "All\n\n| a | b |\n| --- | --- |\n| x | y |",
        ),
        (  # data, although a cell has paragraphs
            "<table><tr><th>a<th>b<tr><td>1<td><p>2</p><p>3</p><p>4</p></table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 3 4 |",
        ),
        ("<table><tr><td>One.<br><br>Two.</table>", "One.  \n  \nTwo."),
        (  # a head of two rows
            "<table><thead><tr><th rowspan=2>a<th colspan=2>b<tr><th>c<th>d<tbody><tr><td>1<td>2<td>3</table>",
            "| a | b c | b d |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
        ),
        (
            "<table><tr><th>a<th>b<tr><td rowspan=2>20<sup>1</sup> 1<i>0</i><td>1<tr><td>2</table>",
            "| a | b |\n| --- | --- |\n| 20 10 | 1 |\n| 20 10 | 2 |",
        ),
        ("<table>0<tr>1<td>2<form><td>3</form></table>", "0 1\n\n|  |  |\n| --- | --- |\n| 2 | 3 |"),
        ("<p>It is $1,299<sup>99</sup> or 19<sup>99</sup> \u20ac.", "It is $1,299.99 or 19.99 \u20ac."),
        ("<p>1<sup>1/2</sup> cups of 10<sup>6-7</sup>", "1 1/2 cups of 10 6-7"),
        (
            "<p><math><mfrac><mrow><mn>1</mn><mo>+</mo><mn>5</mn></mrow><msqrt><mn>4</mn></msqrt></mfrac></math>",
            "(1+5)/(\u221a4)",
        ),
        ("<table><tr><td>A<td><p>One.<p>Two.<p>Three.</table>", "A\n\nOne.\n\nTwo.\n\nThree."),
        ("<table><tr><th>a<th>b<tr><td>1|3<td>2</table>", "| a | b |\n| --- | --- |\n| 1\u00a63 | 2 |"),
        ("<p style='backface-visibility: hidden; --x-display: none'>It is 20 euros.", "It is 20 euros."),
        ("<p>The 2<sup>nd</sup> takes 1<sup>1</sup>/<sub>2</sub> hours.</p>", "The 2nd takes 1 1/2 hours."),
        ("<blockquote><p>Dogs bark.</p><p>5 cats.</p></blockquote>", "Dogs bark.\n\n5 cats."),
        ("<html><head><meta charset=utf-8><body><ol><li>One<li>Two</ol><p>A.<p>B.", "- One\n- Two\n\nA.\n\nB."),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (
            "<p>It is <a href='/x y' title='was 30 euros'>20 euros</a><img alt=30 title=30 src='data:,30'>.",
            "It is 20 euros.",
        ),
        (
            "<p>It is <math><mn>20</mn><annotation>30</annotation></math><i aria-hidden=true>30</i> euros.",
            "It is 20 euros.",
        ),
        ("<p>It is 2<script>3</script>0<sup><sup>1</sup></sup> euros.", "It is 20 euros."),
        (f"<!--{' ' * 300}No.--><p>It is{' ' * 300}20 euros.</p>", "It is\n20 euros."),
        (
            "<table><thead><tr><th>a<th>b<tbody><tr><td>1<td>2<tbody><tr><td>3<td>4</table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |",
        ),
        ("<div aria-hidden=true><p>It is 20 euros.</p></div>", "It is 20 euros."),
        ("<dialog>Dogs pay.</dialog><video>Cats pay.</video><p>Yes.</p>", "Yes."),
        ("<title>Home</title><p style='color: red; display : none'>No.</p><p>Yes.</p>", "Yes."),
    ],
)
def test_raised_and_quoted_text_of_a_page_changes_no_amount(page: str, text: str) -> None:
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")
    Path("page.html").write_text(page, encoding="utf-8")
    assert text_of_file(Path("page.html")).strip().startswith(text)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        *((f"<{name}>Yes.</{name}><{name}>No.</{name}>", "Yes.\n\nNo.") for name in BLOCKS),
        ("<details><summary>A dog?</summary>No.</details><details>Yes.", "A dog?\n\nNo.\n\nYes."),
        ("<a href=x><div>Dogs enter free.</div></a><b><p>Cats pay.</p></b>", "Dogs enter free.\n\nCats pay."),
        (
            "<p>Now <svg><g></g></svg><o:p></o:p>x<math><mi>2</mi><mo>=</mo></math> <tt>is</tt> it.</p>",
            "Now x2= is it.",
        ),
        ("<table><tr><form><td>1<td>2</form></tr></table>", "|  |  |\n| --- | --- |\n| 1 | 2 |"),
    ],
)
def test_every_part_of_a_page_that_is_not_within_a_line_is_a_block(page: str, text: str) -> None:
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")
    Path("page.html").write_text(f"<body>{page}", encoding="utf-8")
    assert text_of_file(Path("page.html")).strip() == text


def test_pages_of_pdf_are_text_and_what_is_no_pdf_is_refused() -> None:
    pypdf = pytest.importorskip("pypdf", reason="no pypdf: pip install '.[documents]'")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write("blank.pdf")
    with pytest.raises(BatchError, match="its pages have no text"):
        text_of_file(Path("blank.pdf"))
    words = writer.add_blank_page(200, 200)
    font = pypdf.generic.DictionaryObject(
        {pypdf.generic.NameObject(f"/{key}"): pypdf.generic.NameObject(f"/{value}") for key, value in FONT.items()}
    )
    fonts = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/F1"): font})
    words[pypdf.generic.NameObject("/Resources")] = pypdf.generic.DictionaryObject(
        {pypdf.generic.NameObject("/Font"): fonts}
    )
    stream = pypdf.generic.StreamObject()
    stream.set_data(b"BT /F1 12 Tf 10 100 Td (The cat sleeps.) Tj ET")
    words[pypdf.generic.NameObject("/Contents")] = writer._add_object(stream)
    writer.write("cat.pdf")
    said: list[str] = []
    assert text_of_file(Path("cat.pdf"), say=said.append).strip() == "The cat sleeps."
    assert said == ["cat.pdf: nothing was read from 1 of 2 pages, as of a scanner's: 1"]
    stream[pypdf.generic.NameObject("/Filter")] = pypdf.generic.NameObject("/Unheard")
    writer.write("filter.pdf")
    Path("bad.pdf").write_bytes(b"%PDF-1.4 not really")
    for name in ("bad.pdf", "filter.pdf"):
        with pytest.raises(BatchError, match=rf"{name}: no PDF that can be read"):
            text_of_file(Path(name))
    pytest.importorskip("cryptography", reason="no cryptography: pip install '.[documents]'")
    for password in ("", "secret"):
        protected = pypdf.PdfWriter(clone_from="cat.pdf")
        protected.encrypt(password, "owner", algorithm="AES-256")
        protected.write(f"as{password}.pdf")
    assert text_of_file(Path("as.pdf")).strip() == "The cat sleeps."
    with pytest.raises(BatchError, match=r"assecret\.pdf: is protected"):
        text_of_file(Path("assecret.pdf"))


def test_the_reader_of_pdf_prints_nothing_of_its_own() -> None:
    pytest.importorskip("pypdf", reason="no pypdf: pip install '.[documents]'")
    Path("bad.pdf").write_bytes(b"%PDF-1.4 not really")
    code = (
        "from pathlib import Path; from semblance.tables.documents import text_of_file; text_of_file(Path('bad.pdf'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "no PDF that can be read" in ran.stderr
    assert "EOF marker" not in ran.stderr.partition("Traceback")[0]


@pytest.mark.parametrize("name", ["a.html", "a.htm", "a.pdf"])
def test_a_reader_that_is_not_installed_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(name).write_text("<p>a</p>")
    monkeypatch.delitem(sys.modules, "semblance.tables.pages", raising=False)
    for each in ("bs4", "markdownify", "pypdf"):
        monkeypatch.setitem(sys.modules, each, None)
    with pytest.raises(MissingExtra, match=r"documents\]") as error:
        text_of_file(Path(name))
    assert error.value.extra == "documents"


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
