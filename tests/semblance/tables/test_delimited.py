"""Text files as people have them: read right, or refused with the line and what to do."""

from pathlib import Path

import pytest

from semblance.errors import BatchError
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import open_source
from semblance.tables.labelled_pairs import read_own
from semblance.tables.rows import Row, Unreadable
from tests.harness.commands import Run
from tests.harness.tables import read, write

AS_FOUND = FileFormat()
OPEN = 'a,b\nWhere is my card?,"I lost it\nHow do I pay?,By invoice\nCan I cancel?,Yes\n'
CAFE = "a,b\nWhere is the café?,Über there\n"


def rows(path: Path, content: str | bytes, read_as: FileFormat = AS_FOUND) -> list[Row | Unreadable | None]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = open_source(path, lines="text", read_as=read_as)
    found = [row for chunk in source.chunks(0, 3) for row in chunk.rows]
    for start in range(len(found) + 1):  # a batch that is resumed goes on at any row
        rest = [row for chunk in source.chunks(start, 2) for row in chunk.rows]
        assert rest == found[start:]
    return found


def notes(path: Path, content: str) -> list[str]:
    path.write_text(content, encoding="utf-8", newline="")
    return [note.removeprefix(f"{path}: ") for note in open_source(path).notes]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", OPEN, "line 2: a quote is not closed"),
        ("x.csv", OPEN.replace("\n", "\r\n"), "line 2: a quote is not closed"),
        ("x.csv", OPEN.replace(",", ";"), "line 2: a quote is not closed"),
        (
            "x.csv",
            OPEN.replace("By invoice", '"By invoice"'),
            "line 2: a quote is not closed, or has text behind it",
        ),
        ("x.csv", 'a,b\n"x\ny",1\n\n"two\nlines","open\n', "line 5: a quote is not closed"),
        ("x.csv", 'a,b\n1,"He said "hi" to me"\n', "line 2: a quote is not closed, or has text behind it"),
        ("x.csv", '"a,b\n1,2\n', "line 1: a quote is not closed"),
        ("x.csv", "", "there is no header"),
        ("x.csv", "\n\n", "there is no header"),
        ("x.csv", "a,b;c\n1,2;3\n", "line 1: the header has as many commas and semicolons: give --delimiter"),
        ("x.csv", "a,b\n1,2\n3,half\rof it\n", "line 3: ends with CR, the header with LF: a field with a line break"),
        ("x.csv", "a\nfirst\nhalf\r\rof it\r\n", "line 3: ends with CR, the header with LF"),
        ("x.tsv", "a\tb\rc\n1\t2\t3\n", "line 2: ends with LF, the header with CR"),
        ("x.csv", "a\0,b\n1,2\n", "line 1: a NUL character in the header"),
        ("x.csv", CAFE.encode("cp1252"), r"line 2: byte E9 is not UTF-8; in cp1252 .*café.*--encoding cp1252"),
        ("x.tsv", CAFE.encode("cp1252"), "line 2: byte E9 is not UTF-8"),
        ("x.txt", CAFE.encode("cp1252"), "line 2: byte E9 is not UTF-8"),
        ("x.jsonl", b'{"a": "ok"}\n{"a": "caf\xe9"}\n', "line 2: byte E9 is not UTF-8"),
        ("x.csv", b"a,b\n" * 400_000 + b"caf\xe9,x\n", "line 400001: byte E9"),  # beyond the first block
        ("x.csv", b"a,b\nx,caf\xc3", "line 2: byte C3 is not UTF-8"),
        ("x.csv", CAFE.encode("utf-16"), "line 1: the file begins with the mark of UTF-16: give --encoding utf-16"),
        ("x.csv", CAFE.encode("utf-32"), "line 1: the file begins with the mark of UTF-32"),
        ("x.csv", CAFE.encode("utf-16-le"), "line 1: the file begins as UTF-16-LE without its mark"),
        ("x.jsonl", '{"a": "x"}\n'.encode("utf-16-be"), "begins as UTF-16-BE"),
        ("x.csv", f"\u201c{CAFE}".encode("utf-16-le"), "begins as UTF-16-LE"),
        ("x.csv", b"PK\x03\x04rest", "a workbook or another zip file: save it as CSV in UTF-8"),
        ("x.csv", b"\x1f\x8brest", "packed by gzip: unpack it first"),
        ("x.tsv", b"PAR1rest", r"a Parquet file: its name should end with \.parquet"),
    ],
)
def test_a_file_that_would_be_read_wrong_is_refused_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(BatchError, match=message):
        rows(tmp_path / name, content)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.csv", 'a,b\n"two\r\nlines","a ""quote"""\n', [{"a": "two\r\nlines", "b": 'a "quote"'}]),
        ("x.csv", 'a,b\n5" pipe,inch "mark"\n', [{"a": '5" pipe', "b": 'inch "mark"'}]),  # not at a field's start
        ("x.csv", "a,b\r1,2\r3,4\r", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),  # CR alone
        ("x.csv", "a,b\r1,2\r3,4", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        ("x.csv", "a,b\r\r\n1,2\r\r\n", [{"a": "1", "b": "2"}]),  # line ends that were converted twice
        ("x.csv", 'a,b\n1,"x\ry\r"\r\n3,4\n', [{"a": "1", "b": "x\ry\r"}, {"a": "3", "b": "4"}]),
        ("x.csv", "\ufeffa,b\r\n1,2\r\n", [{"a": "1", "b": "2"}]),  # as Excel saves it
        ("x.csv", "\ufeffsep=;\r\na;b\r\n1;2,5\r\n", [{"a": "1", "b": "2,5"}]),
        ("x.csv", "sep=|\na|b\n1|2\n", [{"a": "1", "b": "2"}]),
        ("x.tsv", "sep=\t\na\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        ("x.csv", "sep=\r\n1\r\n", [{"sep=": "1"}]),
        ("x.csv", "\r\n\na;b\n1;2,5\n", [{"a": "1", "b": "2,5"}]),
        ("x.csv", '"a\n, or b";c\n1;2\n', [{"a\n, or b": "1", "c": "2"}]),
        ("x.csv", 'a 5" pipe,b\n1,2\n', [{'a 5" pipe': "1", "b": "2"}]),
        ("x.csv", "a;b\n1, or 2;3\n", [{"a": "1, or 2", "b": "3"}]),
        ("x.csv", "a\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        ("x.csv", '"a;x",b\n1,2\n', [{"a;x": "1", "b": "2"}]),  # a separator in quotes is none
        ("x.csv", "text\nWell; that is it\n", [{"text": "Well; that is it"}]),
        ("x.csv", "a,b\n\u2028x,\x0by\n", [{"a": "\u2028x", "b": "\x0by"}]),  # no line ends of a file
        ("x.tsv", '5" pipe\ttube\n"a"\tb"\n', [{'5" pipe': '"a"', "tube": 'b"'}]),
        ("x.tsv", "a\tb\n1,5\t2;3\n", [{"a": "1,5", "b": "2;3"}]),
        ("x.txt", 'one\r\n\r\n"two\n', [{"text": "one"}, None, {"text": '"two'}]),
        ("x.txt", "one\rtwo", [{"text": "one"}, {"text": "two"}]),
        ("x.jsonl", '\ufeff{"a": "\u2028"}\n\n{"a": "x"}', [{"a": "\u2028"}, None, {"a": "x"}]),
    ],
)
def test_a_file_is_read_as_it_was_meant(tmp_path: Path, name: str, content: str, expected: list[Row | None]) -> None:
    assert rows(tmp_path / name, content) == expected


def test_an_object_with_a_key_twice_is_no_row(tmp_path: Path) -> None:
    (found,) = rows(tmp_path / "x.jsonl", '{"a": "x", "b": "y", "a": "z"}\n')
    assert isinstance(found, Unreadable)
    assert found.reason == "not JSON: the key 'a' stands twice in an object"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.jsonl"])
def test_another_encoding_is_read_when_it_is_named(tmp_path: Path, encoding: str, name: str) -> None:
    content = {"x.csv": CAFE, "x.txt": "Where is the café?\n", "x.jsonl": '{"text": "café"}\n'}[name]
    (row,) = rows(tmp_path / name, content.encode(encoding), FileFormat(encoding))
    assert isinstance(row, dict)
    assert "café" in next(iter(row.values()))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_a_mark_is_no_text_where_the_encoding_is_named(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffa,b\r\n1,2\r\n".encode(encoding)
    assert rows(tmp_path / "x.csv", content, FileFormat(encoding)) == [{"a": "1", "b": "2"}]


def test_half_of_a_character_is_none(tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="surrogates not allowed: name another --encoding"):
        rows(tmp_path / "x.csv", "a,b\n1,+2AA-\n", FileFormat("utf-7"))


@pytest.mark.parametrize(
    ("read_as", "message"),
    [
        (FileFormat("utf-7x"), "--encoding utf-7x: no encoding is called so"),
        (FileFormat("base64"), "--encoding base64: no encoding is called so"),
        (FileFormat("utf-16"), "UTF-16 stream does not start with BOM: name another --encoding"),
        (FileFormat("ascii"), "line 2: byte C3 is not ascii: name another --encoding"),
        (FileFormat(delimiter=";;"), "--delimiter ';;': expected one character, or tab"),
    ],
)
def test_options_that_do_not_fit_are_named(tmp_path: Path, read_as: FileFormat, message: str) -> None:
    with pytest.raises(BatchError, match=message):
        rows(tmp_path / "x.csv", CAFE, read_as)
    if read_as.delimiter is not None:
        with pytest.raises(BatchError, match=r"--delimiter is for \.csv and \.tsv"):
            rows(tmp_path / "x.txt", "x\n", read_as)


def test_the_delimiter_overrides_what_the_header_has(tmp_path: Path) -> None:
    assert rows(tmp_path / "x.csv", "a,b;c\n1,2;3\n", FileFormat(delimiter=";")) == [{"a,b": "1,2", "c": "3"}]
    assert rows(tmp_path / "x.csv", "a\tb,c\n1\t2\n", FileFormat(delimiter="tab")) == [{"a": "1", "b,c": "2"}]
    assert rows(tmp_path / "x.csv", "sep=;\na;b\n1;2\n", FileFormat(delimiter=";")) == [{"a": "1", "b": "2"}]


def test_what_was_found_out_is_said(tmp_path: Path) -> None:
    assert notes(tmp_path / "x.csv", "a,b\n1,2\n") == []
    assert notes(tmp_path / "x.csv", "a;b\n1;2\n") == ["columns are separated by semicolons"]
    held = "line 4: a field in quotes holds line breaks and what looks like rows of the file"
    assert notes(tmp_path / "x.csv", 'a,b\n1,"two\nlines"\n2,"x\n3,y"\n') == [held]


def test_scores_with_a_decimal_comma_are_numbers_where_commas_do_not_separate(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a;b;score\nx;y;0,5\nx;y;-,25\nx;y;1.000,5\n", encoding="utf-8")
    read = read_own(tmp_path / "x.csv")
    assert [pair.target for pair in read.pairs] == [0.5, -0.25]
    assert [fault.reason for fault in read.faults] == ["score: '1.000,5' is no number"]
    (tmp_path / "y.csv").write_text('a,b,score\nx,y,1\nx,y,2\nx,y,"3,5"\n', encoding="utf-8")
    assert [fault.reason for fault in read_own(tmp_path / "y.csv").faults] == ["score: '3,5' is no number"]


def test_a_row_without_an_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semblance.tables.delimited.LONGEST_RECORD", 1000)
    with pytest.raises(BatchError, match="line 2: a row has more than 1,000 characters"):
        rows(tmp_path / "x.csv", 'a,b\n1,"open\n' + "2,x\n" * 1000)
    with pytest.raises(BatchError, match="line 2: a row has more than 1,000 characters"):
        rows(tmp_path / "x.csv", "a,b\n1," + "x" * 2000)


@pytest.mark.parametrize(
    "command",
    [
        ("batch", "in.csv", "out.csv"),
        ("dedupe", "in.csv", "out.csv", "--column", "a"),
        ("choose", "in.csv"),
    ],
    ids=lambda command: str(command[0]),
)
def test_every_command_refuses_an_open_quote_and_writes_nothing(
    semblance: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(OPEN.replace("a,b", "a,b,label", 1), encoding="utf-8")
    code, out, err = semblance(*command, "--models-dir", models)
    assert (code, out) == (2, "")
    assert "in.csv: line 2: a quote is not closed" in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_file_of_excel_and_one_in_cp1252_give_the_same_answers(
    semblance: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = "a,b\na man,a dog\ncafé,a man\n"
    excel = "\ufeffsep=;\n" + plain.replace(",", ";")
    Path("plain.csv").write_text(plain, encoding="utf-8")
    Path("excel.csv").write_text(excel.replace("\n", "\r\n"), encoding="utf-8", newline="")
    Path("old.csv").write_text(plain, encoding="cp1252")
    here = ("--models-dir", models)
    assert semblance("batch", "plain.csv", "plain.jsonl", *here).code == 0
    said = semblance("batch", "excel.csv", "excel.jsonl", *here)
    assert (said.code, said.err) == (0, "semblance: excel.csv: columns are separated by semicolons\n")
    refused = semblance("batch", "old.csv", "old.jsonl", *here)
    assert refused.code == 2
    assert "old.csv: line 3: byte E9 is not UTF-8" in refused.err
    assert semblance("batch", "old.csv", "old.jsonl", "--encoding", "cp1252", *here).code == 0
    assert Path("plain.jsonl").read_bytes() == Path("excel.jsonl").read_bytes() == Path("old.jsonl").read_bytes()


def test_a_text_that_tsv_cannot_hold_is_not_written_otherwise(
    semblance: Run, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("in.jsonl"), [{"a": "a man\twaits", "b": 'a "dog"'}])
    code, _, err = semblance("batch", "in.jsonl", "out.tsv", "--models-dir", models)
    assert code == 2
    assert "a text has a tab or a line break, which .tsv cannot hold: write .csv or .jsonl" in err
    assert not Path("out.tsv").exists()
    assert semblance("batch", "in.jsonl", "out.csv", "--models-dir", models).code == 0
    assert read(Path("out.csv"))[0]["a"] == "a man\twaits"


def test_columns_at_the_end_without_name_and_content_are_left_out(tmp_path: Path) -> None:
    """As Excel writes them, where a sheet once had more columns."""
    assert rows(tmp_path / "x.csv", "a,b,,\n1,2,,\n3,,,\n4,5\n") == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": ""},
        {"a": "4", "b": "5"},
    ]
    assert rows(tmp_path / "x.csv", "a,\n1,2\n") == [{"a": "1", "": "2"}]
    with pytest.raises(BatchError, match="line 1: more than one column ''"):
        rows(tmp_path / "x.csv", "a,,\n1,,2\n")
