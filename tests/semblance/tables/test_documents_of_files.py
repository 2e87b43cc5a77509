"""Documents in files as text: pages of HTML beside what a browser shows, PDF."""

import html
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from semblance.errors import BatchError, MissingExtra
from semblance.tables.documents import text_of_file

FONT = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica", "Encoding": "WinAnsiEncoding"}
BLOCKS = ("main", "aside", "footer", "address", "figure", "fieldset", "legend", "label", "option", "center", "x-own")
INLINE = ("a", "b", "bdi", "cite", "code", "em", "font", "label", "mark", "q", "small", "span", "u", "x-own")
AROUND = ("article", "blockquote", "center", "div", "fieldset", "footer", "li", "section", "table", "table", "table")
STYLES = ("", "", " hidden", " style='display:none'", " style='visibility:hidden'", " class=x", " style='color:red'")
# Of PDF: what is set smaller, higher or lower.
OF_PDF = (
    ("(It is 20) Tj /F1 7 Tf 5 Ts (3) Tj 0 Ts /F1 12 Tf ( euros.)", "It is 20 euros."),
    ("(It is 20) Tj /F1 7 Tf 5 Ts (1) Tj (2) Tj 0 Ts /F1 12 Tf ( euros.)", "It is 20 euros."),
    ("(It is 10) Tj /F1 7 Tf 5 Ts (6) Tj 0 Ts /F1 12 Tf ( litres.)", "It is 10\u2076 litres."),
    ("(It is 1) Tj (0) Tj /F1 7 Tf 5 Ts (6) Tj 0 Ts /F1 12 Tf ( litres.)", "It is 10\u2076 litres."),
    ("(It is $19) Tj /F1 7 Tf 5 Ts (99) Tj 0 Ts /F1 12 Tf (.)", "It is $19.99."),
    ("(Drink H) Tj /F1 7 Tf 1 0 0 1 50 97 Tm (2) Tj /F1 12 Tf 1 0 0 1 54 100 Tm (O.)", "Drink H2O."),
    ("(It is 20) Tj /F1 7 Tf ( 3 euros.)", "It is 20 3 euros."),
    (
        "(Pay fif-) Tj 0 -14 Td (teen of state-) Tj 0 -14 Td (of-the-) Tj 0 -14 Td (art 20-) Tj 0 -14 Td (day pa-) Tj "
        "0 -14 Td (X non-refund\xad) Tj 0 -14 Td (able.)",
        "Pay fifteen of state-\nof-the-\nart 20-\nday pa-\nX non-refundable.",
    ),
    ("(Twenty-) Tj 0 -14 Td (five for a three-) Tj 0 -14 Td (day pass.) Tj", "Twenty-five for a three-day pass."),
    ("(Total:) Tj /F1 8 Tf (50) Tj /F1 12 Tf ( euros.)", "Total:50 euros."),  # small, in the line
    ("(Drink H) Tj /F1 7 Tf -3 Ts (2) Tj 0 Ts /F1 12 Tf (O.)", "Drink H2O."),
    ("5 Ts q 0 Ts (It is 20) Tj Q /F1 7 Tf (3) Tj 0 Ts /F1 12 Tf ( euros.)", "It is 20 euros."),
)
WORD = re.compile(r"w\d+z")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Maker:
    """Random parts of well-formed pages, whose words are told apart."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._words = 0

    def word(self) -> str:
        self._words += 1
        return f"w{self._words}z"

    def some(self, make: Callable[[], str], most: int) -> str:
        return "".join(make() for _ in range(self.random.randint(1, most)))

    def line(self, depth: int) -> str:
        if depth and self.random.random() < 0.4:
            name = self.random.choice(INLINE)
            return f"<{name}{self.random.choice(STYLES)}>{self.some(lambda: self.line(depth - 1), 3)}</{name}>"
        return self.random.choice((" ", "")) + self.word() + self.random.choice(("", " ", "<br>"))

    def flow(self, depth: int) -> str:
        if not depth or self.random.random() < 0.3:
            return self.some(lambda: self.line(2), 2)
        name = self.random.choice(AROUND)
        if name == "table":
            return self.table(lambda: self.flow(depth - 1) if self.random.random() < 0.3 else self.line(1))
        if name == "li":
            return f"<ul>{self.some(lambda: f'<li>{self.some(lambda: self.flow(depth - 1), 2)}</li>', 3)}</ul>"
        inner = f"<h2>{self.line(1)}</h2>" + self.some(lambda: self.flow(depth - 1), 3)
        return f"<{name}{self.random.choice(STYLES)}>{inner}</{name}>"

    def table(self, cell: Callable[[], str], columns: int = 3, spans: str = "") -> str:
        def row(name: str) -> str:
            left, made = columns, []
            while left > 0:
                span = self.random.choice((1, 1, 1, 2, 3)) if spans and name == "td" else 1
                left -= span if spans == "colspan" else 1
                made.append(f"<{name} {spans or 'class'}={span}>{cell()}</{name}>")
            return f"<tr>{''.join(made)}</tr>"

        head = f"<thead>{self.some(lambda: row('th'), 2)}</thead>" if spans or self.random.random() < 0.5 else ""
        bodies = self.some(lambda: f"<tbody>{self.some(lambda: row('td'), 4)}</tbody>", 2)
        before = self.random.choice(("", "<colgroup><col></colgroup>"))
        return f"<table>{before}{head}{bodies}</table>"


def in_browser(pages: list[str], look: str) -> list[Any]:
    """What JavaScript finds in each page, whose document is `d`."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on the PATH: apt-get install chromium")
    listed = json.dumps([f"<!doctype html><body>{page}" for page in pages]).replace("</", "<\\/")
    Path("all.html").write_text(
        f"""<!doctype html><body><script>
        const found = {listed}.map(page => {{
            const frame = document.body.appendChild(document.createElement("iframe"));
            const d = frame.contentDocument;
            d.open(); d.write(page); d.close();
            const seen = {look};
            frame.remove();
            return seen;
        }});
        document.body.innerHTML = "<pre></pre>";
        document.querySelector("pre").textContent = JSON.stringify(found);
        </script>"""
    )
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        f"--user-data-dir={Path('profile').resolve()}",
    ]
    command = [program, *options, Path("all.html").resolve().as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    made: list[Any] = json.loads(html.unescape(dumped.partition("<pre>")[2].partition("</pre>")[0]))
    return made


def markdown_of(page: str) -> str:
    """A page as it is read."""
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")
    from semblance.tables import pages

    return pages.markdown_of(page)


def test_a_page_has_the_words_that_a_browser_shows_apart_where_it_shows_them_apart() -> None:
    pages = [Maker(seed).flow(4) for seed in range(200)]
    for page, shown in zip(pages, in_browser(pages, "d.body.innerText"), strict=True):
        text = markdown_of(page)
        assert {*WORD.findall(text)} == {*WORD.findall(shown)}, page
        assert {*re.findall(r"w\d+z(?=w)", text)} <= {*re.findall(r"w\d+z(?=w)", shown)}, page


@pytest.mark.parametrize("spans", ["colspan", "rowspan"])
def test_cells_stand_in_the_rows_and_columns_where_a_browser_shows_them(spans: str) -> None:
    pages = [made.table(made.word, spans=spans) for made in map(Maker, range(200))]
    places = "[...d.querySelectorAll('td,th')].map(c => [c.textContent, c.getBoundingClientRect().toJSON()])"
    for page, shown in zip(pages, in_browser(pages, places), strict=True):
        at = {word: (box["left"], box["right"]) for word, box in shown}
        rows = [[WORD.findall(cell) for cell in line.split("|")[1:-1]] for line in markdown_of(page).split("\n")]
        assert {word for row in rows for cell in row for word in cell} == {*at}, page
        for row in rows:
            for column, words in enumerate(row):
                for word in words:
                    for other in (each for below in rows if column < len(below) for each in below[column]):
                        assert max(at[word][0], at[other][0]) < min(at[word][1], at[other][1]), (page, word, other)


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
        ("<p>2<sup>32</sup> and 2<sup>3</sup>", "2\u00b3\u00b2 and 2"),
        ("<p>1<sup>1/2</sup> cups of 10<sup>6-7</sup>", "1 1/2 cups of 10 6-7"),
        (
            "<p><math><mfrac><mrow><mn>1</mn><mo>+</mo><mn>5</mn></mrow><msqrt><mn>4</mn></msqrt></mfrac></math>",
            "(1+5)/(\u221a4)",
        ),
        ("<p><math><mroot><mn>27</mn><mn>3</mn></mroot></math>", "\u00b3\u221a27"),
        (
            "<p><math><msup><mfrac><mn>1</mn><mn>2</mn></mfrac><msup><mn>3</mn><mn>2</mn></msup></msup></math>",
            "(1/2)^(3\u00b2)",
        ),
        ("<p>Sales<svg><text>2019</text><text>500</text></svg>in all", "Sales 2019 500 in all"),
        (
            "<table><tr><th>a<th>b<th>c<tr><td>1<td style='visibility:hidden'>2<td>3</table>",
            "| a | b | c |\n| --- | --- | --- |\n| 1 |  | 3 |",
        ),
        (
            "<table><tr><td colspan=2>All<tr><th rowspan=2>a<th>b<tr><th>c<tr><td rowspan=0>1<td>2<tr><td>3</table>",
            "All\n\n| a | b c |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |",
        ),
        (
            "<table><tr><th colspan='02'>a<th>b<tr><td>1<td>2<td>3</table>",
            "| a | a | b |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
        ),
        ("<p><span style='display:block'>5</span><span style='display: flex'>20</span>", "5\n\n20"),
        ("<p>10<!-- n --><sup>6</sup>", "10\u2076"),
        (
            "<style>.c1{color:red}.c2 {font-size:6pt; vertical-align:super}</style><p class=c2>It is 20"
            "<span class='a c2'>3</span> <b class=c1>&euro;</b> for 10<span style='Vertical-align:super'>6</span>.",
            "It is 20 \u20ac for 10\u2076.",
        ),
        (
            "<p>It is 19<sup>99</sup><!-- n --> \u20ac for 1<sup>1</sup><!-- n -->/<sub>2</sub> hours",
            "It is 19.99 \u20ac for 1 1/2 hours",
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
        (
            "<p>A [5](6) ~~7~~ &lt;!-- 8 --> \\-9 &lt;b> &amp;lt;",
            "A [5\\](6) \\~~7\\~~ <\\!-- 8 --> \\\\-9 \\<b> \\&lt;",
        ),  # which are read as they stand
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


def pdf(name: str, *pages: str, **stream: str) -> Any:
    """A file of pages with these operators of text, or nothing; `stream`: what else their streams say of themselves."""
    pypdf = pytest.importorskip("pypdf", reason="no pypdf: pip install '.[documents]'")
    named, a_dict = pypdf.generic.NameObject, pypdf.generic.DictionaryObject

    def names(found: Mapping[str, object]) -> Any:
        return a_dict(
            {named(f"/{key}"): named(f"/{value}") if isinstance(value, str) else value for key, value in found.items()}
        )

    writer = pypdf.PdfWriter()
    for content in pages:
        page = writer.add_blank_page(200, 200)
        if content:
            page[named("/Resources")] = names({"Font": names({"F1": names(FONT)})})
            made = pypdf.generic.StreamObject()
            made.set_data(f"BT /F1 12 Tf 10 100 Td {content} ET".encode("latin-1"))
            made.update(names(stream))
            page[named("/Contents")] = writer._add_object(made)
    writer.write(name)
    return writer


@pytest.mark.parametrize(("content", "read"), OF_PDF)
def test_a_page_of_pdf_is_its_text(content: str, read: str) -> None:
    pdf("page.pdf", f"{content} Tj")
    assert text_of_file(Path("page.pdf")) == read


def test_pages_of_pdf_follow_each_other() -> None:
    said: list[str] = []
    pdf("pages.pdf", "(Guests pay fif-) Tj", "(teen euros,) Tj", "(and) Tj", "", "(Dogs) Tj", "(pay 5.) Tj", "(b) Tj")
    assert text_of_file(Path("pages.pdf"), say=said.append) == "Guests pay fifteen euros,\nand\n\n\n\nDogs\npay 5.\n\nb"
    assert said == ["pages.pdf: nothing was read from 1 of 7 pages, as of a scanner's: 4"]


def test_what_is_no_pdf_that_can_be_read_is_refused() -> None:
    pdf("blank.pdf", "")
    with pytest.raises(BatchError, match="its pages have no text"):
        text_of_file(Path("blank.pdf"))
    pdf("filter.pdf", "(The cat sleeps.) Tj", Filter="Unheard")
    Path("bad.pdf").write_bytes(b"%PDF-1.4 not really")
    for name in ("bad.pdf", "filter.pdf"):
        with pytest.raises(BatchError, match=rf"{name}: no PDF that can be read"):
            text_of_file(Path(name))
    pytest.importorskip("cryptography", reason="no cryptography: pip install '.[documents]'")
    for password in ("", "secret"):
        protected = pdf("cat.pdf", "(The cat sleeps.) Tj")
        protected.encrypt(password, "owner", algorithm="AES-256")
        protected.write(f"as{password}.pdf")
    assert text_of_file(Path("as.pdf")) == "The cat sleeps."
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
