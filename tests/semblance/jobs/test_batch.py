"""`semblance batch`: files of every kind in and out, bad rows, interruptions."""

import json
import os
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semblance import AsyncClient, Client
from semblance.errors import BatchError, TooLarge
from semblance.jobs.batch.journal import Journal
from semblance.tables.formats import open_source
from semblance.tables.output_file import open_alone, replacing
from semblance.tables.rows import CHUNK_BYTES
from tests.harness.commands import Ran, Run
from tests.harness.tables import SUFFIXES, read, rows, sentences, write

ROOT = Path(__file__).parents[3]
Batch = Callable[..., Ran]


def errors_of(output: Path) -> list[dict[str, Any]]:
    return read(output.with_name(f"{output.name}.errors.jsonl").rename(output.with_name("errors.jsonl")))


@pytest.fixture
def batch(url: str, semblance: Run) -> Batch:
    return lambda *arguments: semblance("batch", *arguments, "--url", url)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


# what comes out


# Reading knows nothing of writing: each kind in and out, of its own kind and of another.
@pytest.mark.parametrize(
    ("into", "out"), [*zip(SUFFIXES, SUFFIXES, strict=True), *zip(SUFFIXES, SUFFIXES[2:] + SUFFIXES[:2], strict=True)]
)
def test_every_kind_of_file_in_and_out(batch: Batch, client: Client, tmp_path: Path, into: str, out: str) -> None:
    given = rows(20)
    source, output = write(tmp_path / f"in{into}", given), tmp_path / f"out{out}"
    assert batch(source, output) == Ran(0, f"20 rows: {output}\n", "")
    found = read(output)
    expected = client.similarity([(row["a"], row["b"]) for row in given]).results
    assert [{name: row[name] for name in ("id", "a", "b")} for row in found] == given
    assert list(found[0]) == ["id", "a", "b", "score", "raw_score", "truncated", "unknown"]
    for row, result in zip(found, expected, strict=True):
        assert float(row["score"]) == pytest.approx(result.score, abs=1e-6)
        assert float(row["raw_score"]) == pytest.approx(result.raw_score, abs=1e-6)
        assert row["truncated"] in (False, "false")
        assert float(row["unknown"]) == max(result.unknown)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"in{into}", f"out{out}"]


def test_a_carriage_return_in_a_text_ends_no_row(batch: Batch, tmp_path: Path) -> None:
    given = [{"a": "one\rtwo", "b": "x"}, {"a": "x", "b": "\r=1+1"}]
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / "out.csv"
    assert batch(source, output, "--quote-formulas").code == 0
    assert [(row["a"], row["b"]) for row in read(output)] == [("one\rtwo", "x"), ("x", "'\r=1+1")]
    assert batch(output, tmp_path / "again.jsonl", "--prefix", "x_").code == 0
    assert "a line break, which .tsv cannot hold" in batch(source, tmp_path / "out.tsv").err


def test_labelled_pairs_keep_their_columns(batch: Batch, tmp_path: Path) -> None:
    """A column `score` of the input stays; the new ones have a prefix, which the batch asks for."""
    given = [{"a": row["a"], "b": row["b"], "score": 3.5} for row in rows(5)]
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    refused = batch(source, output)
    said = f"semblance: {source} has a column 'score' already: rename it, or choose another --prefix\n"
    assert refused == (2, "", said)
    assert batch(source, output, "--prefix", "our_").code == 0
    for row, before in zip(read(output), given, strict=True):
        assert {name: row[name] for name in before} == before
        assert list(row) == [*before, *(f"our_{name}" for name in ("score", "raw_score", "truncated", "unknown"))]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rank(batch: Batch, client: Client, tmp_path: Path, suffix: str) -> None:
    candidates = sentences(5)
    cell: Any = json.dumps(candidates) if suffix in (".csv", ".tsv") else candidates
    source = write(tmp_path / f"in{suffix}", [{"query": text, "candidates": cell} for text in sentences(40, 3)])
    output = tmp_path / f"out{suffix}"
    top = None if suffix == ".tsv" else 2
    options = ("--task", "rank", "--top-k", 3, "--rerank-model", "pair-sick", *(("--rerank-top", top) if top else ()))
    assert batch(source, output, *options).code == 0
    for row in read(output):
        expected = client.rank(row["query"], candidates, top_k=3, rerank_model="pair-sick", rerank_top=top).results
        ranking, scores = row["ranking"], row["scores"]
        if isinstance(ranking, str):
            ranking, scores = json.loads(ranking), json.loads(scores)
        assert ranking == [result.index for result in expected]
        assert scores == pytest.approx([result.score for result in expected], abs=1e-6)


def test_parquet_keeps_the_types_of_its_columns(batch: Batch, tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "price": pa.array([1, 2, 3], pa.decimal128(9, 2)),
            "raw": pa.array([b"\x00\xff", b"", None]),
            "a": pa.array(["a man", "", "a dog"], pa.large_string()),
            "b": pa.array(["a man", "a dog", "a cat"]),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    assert batch(tmp_path / "in.parquet", tmp_path / "out.parquet").code == 4
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.select(table.column_names).cast(table.schema).equals(table.take([0, 2]))
    assert found.schema.field("when").type == table.schema.field("when").type
    assert found.schema.field("price").type == table.schema.field("price").type
    assert found.schema.field("score").type == pa.float64()


WITH_VIEWS = {
    "in_list": pa.list_(pa.string_view()),
    "in_large": pa.large_list(pa.string_view()),
    "in_fixed": pa.list_(pa.string_view(), 1),
    "in_map": pa.map_(pa.string(), pa.string_view()),
    "in_struct": pa.struct([("f", pa.string_view())]),
}


def test_views_in_parquet_become_texts_and_bytes(batch: Batch, tmp_path: Path) -> None:
    texts, raw = ["a man", "", "a dog"], [b"\x00\xff", b"", None]
    table = pa.table({"a": pa.array(texts, pa.string_view()), "b": texts, "raw": pa.array(raw, pa.binary_view())})
    plain = {"in_map": [[("k", "x")], [], None], "in_struct": [{"f": "x"}, {"f": None}, None]}
    for name, kind in WITH_VIEWS.items():
        table = table.append_column(name, pa.array(plain.get(name, [["x"], [None], None]), kind))
    pq.write_table(table, tmp_path / "in.parquet")
    assert batch(tmp_path / "in.parquet", tmp_path / "out.parquet").code == 4
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.types[:3] == [pa.string(), pa.string(), pa.binary()]
    assert found.select(["a", "raw"]).to_pydict() == {"a": [texts[0], texts[2]], "raw": [raw[0], raw[2]]}
    assert found.select([*WITH_VIEWS]).to_pydict() == {name: [plain.get(name, [["x"]])[0], None] for name in WITH_VIEWS}


def test_rows_of_json_that_have_different_columns(batch: Batch, tmp_path: Path) -> None:
    given = [
        {"a": "a man", "b": "a dog", "n": 1},
        {"a": "a man", "b": "a cat", "more": {"deep": [1, None]}, "n": 2.5},
        {"b": "a cat", "a": "a dog", "n": None},
    ]
    source = write(tmp_path / "in.jsonl", given)
    for suffix in (".jsonl", ".csv", ".parquet"):
        assert batch(source, tmp_path / f"out{suffix}").code == 0
    as_json, as_csv, as_parquet = (read(tmp_path / f"out{suffix}") for suffix in (".jsonl", ".csv", ".parquet"))
    assert [{name: row[name] for name in before} for row, before in zip(as_json, given, strict=True)] == given
    assert list(as_csv[0]) == ["a", "b", "n", "more", "score", "raw_score", "truncated", "unknown"]
    assert [(row["n"], row["more"]) for row in as_csv] == [("1", ""), ("2.5", '{"deep": [1, null]}'), ("", "")]
    assert [(row["n"], row["more"]) for row in as_parquet] == [(1.0, None), (2.5, {"deep": [1, None]}), (None, None)]


def test_what_json_cannot_write_becomes_null(batch: Batch, tmp_path: Path) -> None:
    table = pa.table({"a": ["a man"], "b": ["a dog"], "x": [float("nan")], "day": pa.array([1], pa.date32())})
    pq.write_table(table, tmp_path / "in.parquet")
    assert batch(tmp_path / "in.parquet", tmp_path / "out.jsonl").code == 0
    (row,) = read(tmp_path / "out.jsonl")
    assert (row["x"], row["day"]) == (None, "1970-01-02")


@pytest.mark.parametrize("given", ["first", "late", "dictionary"])
def test_rows_of_parquet_that_share_a_long_text_are_read_a_few_at_a_time(given: str, tmp_path: Path) -> None:
    long = pa.array([None if given == "late" else "y" * 100_000] * 100 + ["y" * 100_000] * 900)
    long = long.dictionary_encode() if given == "dictionary" else long
    pq.write_table(pa.table({"a": ["x"] * 1000, "long": long}), tmp_path / "in.parquet")
    chunks = list(open_source(tmp_path / "in.parquet").chunks(0, 10_000))
    assert [chunk.before for chunk in chunks] == [
        sum(len(each.rows) for each in chunks[:i]) for i in range(len(chunks))
    ]
    texts = [sum(row["long"] is not None for row in chunk.rows) for chunk in chunks]
    assert sum(texts) == (900 if given == "late" else 1000)
    assert max(texts) * 100_000 <= CHUNK_BYTES + 64 * 100_000


def test_columns_of_parquet_that_a_text_file_cannot_hold(batch: Batch, tmp_path: Path) -> None:
    """Before anything is asked; times in nanoseconds are written, and one beyond the calendar's years is named."""
    source, output = tmp_path / "in.parquet", tmp_path / "out.jsonl"
    table = pa.table({"a": ["a man"], "b": ["a dog"]})
    durations = (pa.array([1], pa.duration(unit)) for unit in ("s", "ns"))
    for odd, kind in ((pa.array([[b"\x00"]]), "bytes"), *((each, "timedelta") for each in durations)):
        pq.write_table(table.append_column("odd", odd), source)
        for suffix in (".csv", ".jsonl"):
            found = batch(source, output.with_suffix(suffix))
        said = f"semblance: column 'odd': there is a value of the type {kind}: write .parquet instead\n"
        assert (found.code, found.err, list(tmp_path.iterdir())) == (2, said, [source])
    pq.write_table(table.append_column("when", pa.array([1], pa.timestamp("ns"))), source)
    assert batch(source, output).code == 0
    assert read(output)[0]["when"] == "1970-01-01T00:00:00.000000001"
    pq.write_table(table.append_column("when", pa.array([2**53], pa.timestamp("ms"))), source)
    found = batch(source, output, "--overwrite")
    assert (found.code, found.err) == (2, f"semblance: {source}: column 'when': date value out of range\n")


def test_two_columns_of_one_name_in_parquet(batch: Batch, tmp_path: Path) -> None:
    cells = [pa.array([text]) for text in ("a man", "a dog", "a cat")]
    pq.write_table(pa.Table.from_arrays(cells, names=["a", "a", "b"]), tmp_path / "in.parquet")
    found = batch(tmp_path / "in.parquet", tmp_path / "out.csv")
    assert (found.code, found.err) == (2, f"semblance: {tmp_path}/in.parquet: more than one column 'a'\n")


@pytest.mark.parametrize("out", SUFFIXES)
def test_an_input_without_rows(batch: Batch, tmp_path: Path, out: str) -> None:
    (tmp_path / "in.csv").write_text("id,a,b\n")
    assert batch(tmp_path / "in.csv", tmp_path / f"out{out}").out == f"0 rows: {tmp_path}/out{out}\n"
    assert read(tmp_path / f"out{out}") == []
    if out == ".parquet":
        columns = ["id", "a", "b", "score", "raw_score", "truncated", "unknown"]
        assert pq.read_schema(tmp_path / "out.parquet").names == columns


def test_an_error_about_a_row_that_was_not_sent_is_one_line(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(*_: Any, **__: Any) -> None:
        raise TooLarge(413, "too_slow", "no", field="pairs.99.a")

    monkeypatch.setattr(AsyncClient, "similarity", wrong)
    ran = batch(write(tmp_path / "in.csv", rows(2)), tmp_path / "out.csv")
    assert ran == Ran(1, "", "semblance: pairs.99.a: no (too_slow)\n")


# bad rows


@pytest.mark.parametrize("first", [b"7", b'["a", "b"]', b"not json"])
def test_the_first_row_may_be_bad(batch: Batch, tmp_path: Path, first: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(first + b'\n{"a": "a man", "b": "a dog"}\n')
    assert batch(tmp_path / "in.jsonl", tmp_path / "out.jsonl").code == 4
    assert [row["a"] for row in read(tmp_path / "out.jsonl")] == ["a man"]
    assert [line["row"] for line in errors_of(tmp_path / "out.jsonl")] == [1]


def test_bad_rows_are_skipped_and_said(batch: Batch, tmp_path: Path) -> None:
    good = json.dumps({"a": "a man", "b": "a dog"}).encode()
    lines = [
        good,
        b'{"a": "a man", "b": "\\u200b"}',  # only the service knows that this is empty
        b"not json",
        b"",
        b'{"a": "a man"}',
        b'{"a": "a man", "b": 7}',
        b'{"a": " ", "b": "x"}',
        b'["a", "b"]',
        b'{"a": "\\ud800", "b": "x"}',
        b'{"a": "x", "b": "x", "n": NaN}',
        b'{"a": "%s", "b": "x"}' % (b"x" * 100_001),
        good,
    ]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    output = tmp_path / "out.jsonl"
    code, out, err = batch(tmp_path / "in.jsonl", output)
    assert (code, err) == (4, "")
    assert out == f"11 rows, 9 skipped: {output}\nskipped rows: {output}.errors.jsonl\n"
    assert [(row["a"], row["b"]) for row in read(output)] == [("a man", "a dog")] * 2
    said = errors_of(output)
    assert [(line["row"], line["code"], line["column"]) for line in said] == [
        (2, "empty_text", "b"),
        (3, "unreadable", None),
        (5, "missing", "b"),
        (6, "not_text", "b"),
        (7, "empty_text", "a"),
        (8, "unreadable", None),
        (9, "unreadable", None),
        (10, "unreadable", None),
        (11, "too_large", "a"),
    ]
    assert said[0]["reason"] == "the text has no visible character"
    assert said[6]["reason"] == "a lone surrogate is not a character"


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_text_with_a_nul_is_a_bad_row_of_every_kind_of_file(batch: Batch, tmp_path: Path, suffix: str) -> None:
    source = write(tmp_path / f"in{suffix}", [{"sentence": "a\0b"}, {"sentence": "a dog"}])
    assert batch(source, tmp_path / "out.jsonl", "--task", "embed").code == 4
    assert [row["sentence"] for row in read(tmp_path / "out.jsonl")] == ["a dog"]
    (line,) = errors_of(tmp_path / "out.jsonl")
    assert (line["row"], line["code"], line["reason"][:15]) == (1, "unreadable", "a NUL character")


def test_a_row_without_an_answer_does_not_keep_others_out_of_parquet(batch: Batch, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"a": "x", "b": "y"}, {"a": ["x"], "b": "y", "n": [1]}])
    assert batch(source, tmp_path / "out.parquet").code == 4
    assert [row["a"] for row in read(tmp_path / "out.parquet")] == ["x"]


def test_bad_records_of_csv(batch: Batch, tmp_path: Path) -> None:
    content = 'a,b\na man,"a\ndog"\none\n\n1,2,3\nx\0y,x\n,x\n%s,x\na cat,a dog\n' % ("x" * 100_001)
    (tmp_path / "in.csv").write_text(content, encoding="utf-8", newline="")
    assert batch(tmp_path / "in.csv", tmp_path / "out.csv").code == 4
    assert [row["a"] for row in read(tmp_path / "out.csv")] == ["a man", "a cat"]
    said = errors_of(tmp_path / "out.csv")
    assert [(line["row"], line["line"], line["reason"]) for line in said[:4]] == [
        (2, 4, "1 field, the header has 2"),
        (3, 6, "3 fields, the header has 2"),
        (4, 7, "a NUL character in column a"),
        (5, 8, "the text has no visible character"),
    ]
    assert [(line["row"], line["line"], line["code"]) for line in said[4:]] == [(6, 9, "too_large")]


@pytest.mark.parametrize(
    ("row", "code", "column"),
    [
        ({"query": "", "candidates": ["x"]}, "empty_text", "query"),
        ({"query": "q", "candidates": []}, "not_a_list", "candidates"),
        ({"query": "q", "candidates": "x, y"}, "not_a_list", "candidates"),
        ({"query": "q", "candidates": "[" * 100_000}, "not_a_list", "candidates"),
        ({"query": "q", "candidates": ["x", 1]}, "not_text", "candidates"),
        ({"query": "q", "candidates": ["x", "\u200b"]}, "empty_text", "candidates"),
        ({"query": "q", "candidates": r'["x", "\ud800"]'}, "unreadable", "candidates"),
    ],
)
def test_bad_rows_of_rank(batch: Batch, tmp_path: Path, row: dict[str, Any], code: str, column: str) -> None:
    source = write(tmp_path / "in.jsonl", [row, {"query": "q", "candidates": ["x", "y"]}])
    assert batch(source, tmp_path / "out.jsonl", "--task", "rank").code == 4
    (line,) = errors_of(tmp_path / "out.jsonl")
    assert (line["row"], line["code"], line["column"]) == (1, code, column)
    assert len(read(tmp_path / "out.jsonl")) == 1


def test_an_output_is_not_replaced_unasked(batch: Batch, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"
    output.write_text("precious")
    assert batch(source, output).err == f"semblance: {output} exists; --overwrite replaces it\n"
    assert output.read_text() == "precious"
    assert batch(source, output, "--overwrite").code == 0
    assert len(read(output)) == 3
    output.unlink()
    errors = output.with_name("out.jsonl.errors.jsonl")
    errors.write_text("of an output that was renamed")
    assert batch(source, output).err == f"semblance: {errors} exists; --overwrite replaces it\n"


def test_a_replaced_output_and_its_progress_are_as_private_as_it_was(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output, modes = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl", []
    output.write_text("precious")
    output.chmod(0o640)
    append = Journal.append

    def looking(self: Journal, outcomes: Any) -> None:
        modes.append(self.path.stat().st_mode & 0o777)
        append(self, outcomes)

    monkeypatch.setattr(Journal, "append", looking)
    assert batch(source, output, "--overwrite").code == 0
    assert (output.stat().st_mode & 0o777, modes) == (0o640, [0o600])


@pytest.mark.parametrize("option", ["--top-k=1", "--rerank-model=avg-sick", "--rerank-top=1"])
def test_an_option_of_a_ranking_is_refused_for_another_task(batch: Batch, tmp_path: Path, option: str) -> None:
    source, name = write(tmp_path / "in.jsonl", rows(3)), option.partition("=")[0]
    expected = Ran(2, "", f"semblance: {name} is for the task rank, not for similarity\n")
    assert batch(source, tmp_path / "out.csv", option) == expected


@pytest.mark.parametrize("name", ["folder.csv", "link.csv", "nowhere.csv"])
def test_an_output_that_is_a_folder_or_a_link_is_refused_before_anything_is_asked(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = write(tmp_path / "in.jsonl", rows(3))
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "real.csv").write_text("precious")
    (tmp_path / "link.csv").symlink_to("real.csv")
    (tmp_path / "nowhere.csv").symlink_to("nothing.csv")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(AsyncClient, "models", None)
    ran = batch(source, tmp_path / name, "--overwrite")
    what = "a folder" if name == "folder.csv" else "a link"
    assert ran == Ran(2, "", f"semblance: {tmp_path / name} is {what}: name another output\n")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "real.csv").read_text() == "precious"


@pytest.mark.parametrize("ending", ["partial", "unfinished", "errors.jsonl"])
@pytest.mark.parametrize("what", ["a link", "a pipe or a device"])
def test_so_is_a_file_beside_it(batch: Batch, tmp_path: Path, what: str, ending: str) -> None:
    source, output = write(tmp_path / "in.jsonl", [*rows(3), {"a": "", "b": "x"}]), tmp_path / "out.csv"
    beside, real = tmp_path / f"out.csv.{ending}", tmp_path / "real.txt"
    real.write_text("precious")
    if what == "a link":
        beside.symlink_to("real.txt")
    else:
        os.mkfifo(beside)
    ran = batch(source, output, "--overwrite")
    assert ran == Ran(2, "", f"semblance: {beside} is {what}: name another output\n")
    assert (real.read_text(), sorted(tmp_path.iterdir())) == ("precious", sorted([source, beside, real]))


def test_two_at_once_do_not_write_one_output(tmp_path: Path) -> None:
    with replacing(tmp_path / "out.csv") as first:
        with pytest.raises(BatchError, match="unfinished: another run is writing it"), replacing(tmp_path / "out.csv"):
            pass
        first.write(b"whole")
    assert (tmp_path / "out.csv").read_bytes() == b"whole"


def test_what_an_output_cannot_hold_leaves_nothing_unfinished(batch: Batch, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"a": "x\ty", "b": "z"}])
    assert "a tab or a line break" in batch(source, tmp_path / "out.tsv").err
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("values", "out", "said"),
    [
        ([{}], "parquet", "Cannot write struct type 'n' with no child field"),
        ([10**30, 2], "parquet", "column 'n' has an integer beyond those of 64 bits with a sign; write .jsonl instead"),
        ([0.5, 10**30], "parquet", "column 'n' has an integer beyond those of 64 bits with a sign; write .jsonl"),
        ([1, "x"], "parquet", "column 'n' has values of several types"),
        ([reduce(lambda inner, _: {"x": inner}, range(400))], "parquet", "within each other too deeply; write .jsonl"),
        ([{"x": reduce(lambda inner, _: [inner], range(60), 1)}], "parquet", "each other too deeply; write .jsonl"),
        ([1.5, True], "parquet", "column 'n' has values of several types (true or false among numbers)"),
        ([{"x": [1.5]}, {"x": [False]}], "parquet", "column 'n' has values of several types"),
        (["x\ty"], "tsv", "a tab or a line break"),
        (["x"], "tsv --prefix \t", "a tab or a line break"),
    ],
)
def test_what_an_output_cannot_hold_is_said_before_anything_is_asked(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[object], out: str, said: str
) -> None:
    async def never(*_: object) -> None:
        raise AssertionError("asked")

    given = [{"a": "a man", "b": "a dog", "n": value} for value in values]
    with monkeypatch.context() as patched:
        patched.setattr("semblance.jobs.batch.job._ask_all", never)
        suffix, *options = out.split(" ")
        code, _, err = batch(write(tmp_path / "in.jsonl", given), tmp_path / f"out.{suffix}", *options)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert batch(tmp_path / "in.jsonl", tmp_path / "out.jsonl").code == 0
    assert [row["n"] for row in read(tmp_path / "out.jsonl")] == values


def test_one_column_with_an_empty_text_is_written_to_tsv(batch: Batch, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('sentence\na dog runs\n""\n')
    assert batch(tmp_path / "in.csv", tmp_path / "out.tsv", "--task", "embed").code == 4
    assert [row["sentence"] for row in read(tmp_path / "out.tsv")] == ["a dog runs"]


def test_lists_within_lists_are_written(batch: Batch, tmp_path: Path) -> None:
    deep = "[" * 800 + "]" * 800
    (tmp_path / "in.jsonl").write_text(f'{{"a": "a man", "b": "a dog", "n": {deep}}}\n')
    assert batch(tmp_path / "in.jsonl", tmp_path / "out.csv").code == 0
    assert read(tmp_path / "out.csv")[0]["n"] == deep


def test_a_row_without_an_answer_does_not_stop_the_others(batch: Batch, tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [{"id": 1}, {"a": "a man", "b": "a dog"}, {"a": 5, "b": "x"}, {"a": {}, "b": "x"}]
    assert batch(write(tmp_path / "in.jsonl", given), tmp_path / "out.parquet").code == 4
    assert len(read(tmp_path / "out.parquet")) == 1


# what cannot be


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.jsonl", "out.jsonl"), "missing.jsonl: No such file or directory"),
        (("in.txt", "out.jsonl"), "in.txt: expected .jsonl, .ndjson, .csv, .tsv or .parquet"),
        (("in.csv", "out.txt"), "out.txt: expected .jsonl"),
        (("in.csv", "nowhere/out.jsonl"), "nowhere/out.jsonl: there is no folder nowhere"),
        (("in.csv", "/proc/out.jsonl"), "/proc/out.jsonl: no file can be made in /proc: "),
        (("empty.csv", "out.csv"), "empty.csv: there is no header"),
        (("twice.csv", "out.csv"), "twice.csv: line 1: more than one column 'a'"),
        (("broken.parquet", "out.csv"), "broken.parquet: "),
        (("in.csv", "out.csv", "--column", "a"), "similarity reads 2 columns (a, b), found 1"),
        (("in.csv", "out.csv", "--column", "a", "--column", "x"), "there is no column 'x', but 'id', 'a', 'b'"),
        (("in.jsonl", "out.csv", "--column", "a", "--column", "x"), "there is no column 'x', but 'id', 'a', 'b'"),
        (("taken.csv", "out.csv"), "taken.csv has a column 'score' already: rename it, or choose another --prefix"),
        (("in.csv", "out.csv", "--model", "nobody"), "model 'nobody' is not served; for this: avg-paraphrase"),
        (("in.csv", "out.csv", "--model", "pair-sick", "--task", "embed", "--column", "a"), "has no embedding"),
        (("rank.jsonl", "out.csv", "--task", "rank", "--rerank-top", "2"), "name one with --rerank-model"),
    ],
)
def test_a_batch_that_cannot_be_says_why_in_a_line(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("in.csv"), rows(2))
    write(Path("in.jsonl"), rows(2))
    write(Path("rank.jsonl"), [{"query": "q", "candidates": ["x"]}])
    write(Path("taken.csv"), [{"a": "x", "b": "y", "score": 1}])
    Path("in.txt").write_text("a b")
    Path("empty.csv").write_text("")
    Path("twice.csv").write_text("a,a,b\n")
    Path("broken.parquet").write_text("PAR1")
    before = sorted(tmp_path.iterdir())
    code, out, err = batch(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("semblance: ")
    assert message in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("out", SUFFIXES)
@pytest.mark.parametrize("full", ["partial", "unfinished"])
def test_a_full_disk_is_told_with_the_file(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, full: str
) -> None:
    source, output = write(tmp_path / "in.csv", rows(20)), tmp_path / f"out{out}"

    def opened(path: Path, *mode: int, **anew: bool) -> int:
        return os.open("/dev/full", os.O_RDWR) if path.suffix == f".{full}" else open_alone(path, *mode, **anew)

    monkeypatch.setattr(
        f"semblance.{'jobs.batch.journal' if full == 'partial' else 'tables.output_file'}.open_alone", opened
    )
    named = f"{output}.partial" if full == "partial" else str(output)
    assert batch(source, output) == Ran(2, "", f"semblance: {named}: No space left on device\n")
    assert not output.exists()
