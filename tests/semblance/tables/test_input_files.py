"""Input files: those that change under way, that cannot be read twice, or that are the output too."""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semblance import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.batch import job
from semblance.jobs.batch.job import run_batch
from semblance.jobs.batch.tasks import BatchOptions
from semblance.tables import decoding
from semblance.tables.formats import open_source
from semblance.tables.outputs import no_formula
from semblance.tables.rows import Unreadable
from semblance.types import Similarities
from tests.harness.commands import Run
from tests.harness.tables import SUFFIXES, read, rows, write

OPTIONS = BatchOptions("similarity", ("a", "b"))
CHANGED = "the file changed while it was read"


def replaced(source: Path) -> None:
    """Another file under its name."""
    write(source.with_name(f"new{source.suffix}"), rows(40)[::-1]).replace(source)


def cut(source: Path) -> None:
    """The same file with fewer rows."""
    os.truncate(source, source.stat().st_size // 2)


def written_over(source: Path) -> None:
    """As many bytes, and the time of before."""
    found, content = source.stat(), source.read_bytes()
    source.write_bytes(content)
    os.utime(source, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("change", [replaced, cut, written_over])
def test_rows_never_get_answers_of_what_the_file_was(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, change: Callable[[Path], None]
) -> None:
    source, output = write(tmp_path / f"in{suffix}", rows(40)), tmp_path / "out.csv"
    kept = source.read_bytes()
    monkeypatch.setattr(job, "ROWS_AT_ONCE", 10)

    class Changing(AsyncClient):
        asked = 0

        async def similarity(self, pairs: Any, **options: Any) -> Similarities:
            Changing.asked += 1
            if Changing.asked == 3:
                change(source)
            return await super().similarity(pairs, **options)

    async def run(client: type[AsyncClient]) -> None:
        async with client(url) as opened:
            await run_batch(opened, source, output, OPTIONS, concurrency=1)

    with pytest.raises(BatchError, match=CHANGED):
        asyncio.run(run(Changing))
    assert not output.exists()
    assert (tmp_path / "out.csv.partial").exists()
    source.write_bytes(kept)
    asyncio.run(run(AsyncClient))
    assert [row["a"] for row in read(output)] == [row["a"] for row in rows(40)]


def test_an_output_that_another_run_has_just_ended_is_kept(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = write(tmp_path / "in.csv", rows(5)), tmp_path / "out.csv"
    (tmp_path / "out.csv.partial").write_text("{}")

    class Late(AsyncClient):
        async def models(self, **options: Any) -> Any:
            (tmp_path / "out.csv.partial").unlink()
            output.write_text("of the other run")
            return await super().models(**options)

    async def run() -> None:
        async with Late(url) as client:
            await run_batch(client, source, output, OPTIONS)

    with pytest.raises(BatchError, match="exists; --overwrite replaces it"):
        asyncio.run(run())
    assert output.read_text() == "of the other run"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_of_large_rows_few_are_read_at_once(tmp_path: Path, suffix: str) -> None:
    texts = [random.randbytes(50_000).hex() for _ in range(400)]  # 40 MB
    source = open_source(write(tmp_path / f"in{suffix}", [{"a": text} for text in texts]))
    chunks = list(source.chunks(3, 1000))
    assert max(len(chunk.rows) for chunk in chunks) < 250
    assert [row["a"] for chunk in chunks for row in chunk.rows if isinstance(row, dict)] == texts[3:]


def test_dedupe_says_so_too(url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = write(tmp_path / "in.csv", [{"sentence": f"a dog {i}"} for i in range(60)]), tmp_path / "out.csv"
    embed = AsyncClient.embed

    async def changing(self: AsyncClient, texts: Any, **options: Any) -> Any:
        write(source, [{"sentence": f"a cat {i}"} for i in range(70)])
        return await embed(self, texts, **options)

    monkeypatch.setattr(AsyncClient, "embed", changing)
    ran = semblance("dedupe", source, output, "--url", url)
    assert ran.code == 2
    assert CHANGED in ran.err
    assert not output.exists()


@pytest.mark.parametrize("name", ["in.csv", "link.csv", "hard.csv", "./in.csv"])
@pytest.mark.parametrize("command", ["batch", "dedupe --column a"])
def test_an_output_that_is_the_input_is_refused(
    url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    source = write(tmp_path / "in.csv", rows(5))
    before = source.read_bytes()
    (tmp_path / "link.csv").symlink_to("in.csv")
    os.link(source, tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    ran = semblance(*command.split(), "in.csv", name, "--overwrite", "--url", url)
    assert ran.code == 2
    assert "is the input too: name another output" in ran.err
    assert source.read_bytes() == before


def test_so_is_one_that_is_the_file_of_a_persons_answers(url: str, semblance: Run, tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    answers.write_text("row_1,row_2,text_1,text_2,same\n1,2,x,y,yes\n")
    source, given = write(tmp_path / "in.csv", rows(5)), ("--column", "a", "--reviewed", answers, "--url", url)
    ran = semblance("dedupe", source, answers, "--overwrite", *given)
    assert (ran.code, ran.out) == (2, "")
    assert f"{answers} is the input too" in ran.err
    assert answers.read_text().startswith("row_1")


@pytest.mark.parametrize("command", ["batch", "dedupe --column a"])
@pytest.mark.parametrize("name", ["", ".", "/"])
def test_an_output_without_a_name_is_refused(url: str, semblance: Run, tmp_path: Path, command: str, name: str) -> None:
    ran = semblance(*command.split(), write(tmp_path / "in.csv", rows(5)), name, "--url", url)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"semblance: {name or '.'}: expected .jsonl")


def test_so_is_an_input_that_a_file_beside_the_output_would_replace(url: str, semblance: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "out.csv.errors.jsonl", rows(5))
    ran = semblance("batch", source, tmp_path / "out.csv", "--url", url)
    assert ran.code == 2
    assert "is the input too" in ran.err
    assert source.exists()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".txt"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"in{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    for name in ("in", "device"):
        with pytest.raises(BatchError, match="a pipe or a device"):
            open_source(tmp_path / f"{name}{suffix}", lines="text")


@pytest.mark.parametrize("line", ['{"a": "x", "more": "\\ud800"}', '{"a": [{"\\uDFFF": 1}]}', '{"a": 1e400}'])
@pytest.mark.parametrize("out", [".csv", ".jsonl", ".parquet"])
def test_what_no_output_can_hold_is_no_row(url: str, semblance: Run, tmp_path: Path, line: str, out: str) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / f"out{out}"
    source.write_text(f'{{"a": "x", "b": "\\ud83d\\ude00"}}\n{line}\n', encoding="utf-8")
    assert semblance("batch", source, output, "--url", url).code == 4
    assert [row["b"] for row in read(output)] == ["\U0001f600"]
    assert [each["code"] for each in read(Path(f"{output}.errors.jsonl"))] == ["unreadable"]


def test_a_column_that_only_a_late_object_has_is_there(url: str, semblance: Run, tmp_path: Path) -> None:
    rows = [{"a": "a dog"}] * 101 + [{"a": "a dog", "b": "a cat"}]
    command = (write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", "--url", url)
    assert semblance("batch", *command).code == 4
    assert semblance("dedupe", *command[:1], tmp_path / "groups.jsonl", *command[2:], "--column", "b").code == 4
    assert len(read(tmp_path / "out.jsonl")) == len(read(tmp_path / "groups.jsonl")) == 1


def test_other_columns_of_parquet_need_no_type_of_python(url: str, semblance: Run, tmp_path: Path) -> None:
    late = pa.array([2**60] * 2, pa.timestamp("us"))
    pq.write_table(pa.table({"claim": ["a dog runs", "a man"], "late": late}), tmp_path / "in.parquet")
    (tmp_path / "man.md").write_text("a man plays\n")
    groups, labels = tmp_path / "groups.parquet", tmp_path / "labels.parquet"
    assert semblance("dedupe", tmp_path / "in.parquet", groups, "--column", "claim", "--url", url).code == 0
    assert semblance("claims", tmp_path / "man.md", tmp_path / "in.parquet", "-o", labels, "--url", url).code == 0
    assert all(pq.read_table(path)["late"].combine_chunks().equals(late) for path in (groups, labels))


def test_the_key_that_stands_twice_is_found_at_once(tmp_path: Path) -> None:
    keys = ", ".join(f'"k{i}": 0' for i in range(60_000))
    (tmp_path / "in.jsonl").write_text(f'{{{keys}, "k59999": 1}}\n', encoding="utf-8")
    chunk = next(open_source(tmp_path / "in.jsonl").chunks(0, 1))
    assert chunk.rows == [Unreadable("not JSON: the key 'k59999' stands twice in an object")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be"])
def test_a_bad_line_has_its_number_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    bad = b"\xff" if encoding == "utf-8" else b"\xd8\x00\x00a"
    (tmp_path / "in.csv").write_bytes("a\r\nb\r\nc\r\n\r\nd".encode(encoding) + bad)
    for block in range(1, 12):
        monkeypatch.setattr(decoding, "BLOCK", block)
        with pytest.raises(BatchError, match=r"line 5: "):
            open_source(tmp_path / "in.csv", read_as=decoding_of(encoding))


def decoding_of(encoding: str) -> Any:
    from semblance.tables.delimited import FileFormat

    return FileFormat(encoding)


@pytest.mark.parametrize("command", ["classify", "embed"])
def test_without_a_standard_input_a_text_is_asked_for(
    semblance: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as a shell leaves it with <&-
    ran = semblance(command)
    assert ran.code == 2
    assert "none were given, and standard input" in ran.err


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_cells_that_a_spreadsheet_would_run_are_quoted_where_asked(
    url: str, semblance: Run, tmp_path: Path, suffix: str
) -> None:
    given = [{"=n": n, "a": "x", "b": "y"} for n in ("=1+1", "+cmd", "@sum", "\uff1d1+1", '"=1+1"', "-2", "plain")]
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / f"out{suffix}"
    assert semblance("batch", source, output, "--quote-formulas", "--url", url).code == 0
    assert [row["'=n"] for row in read(output)] == ["'=1+1", "'+cmd", "'@sum", "'\uff1d1+1", '\'"=1+1"', "-2", "plain"]
    assert semblance("batch", source, output, "--overwrite", "--url", url).code == 0
    assert [row["=n"] for row in read(output)] == [row["=n"] for row in given]
    assert semblance("batch", source, tmp_path / "out.jsonl", "--quote-formulas", "--url", url).code == 2


@pytest.mark.parametrize("before", ["\n", "\r\n", "\t", " ", "\u00a0", "\ufeff"])
def test_so_are_formulas_behind_what_a_spreadsheet_leaves_out(before: str) -> None:
    assert no_formula(f"{before}=1+1") == f"'{before}=1+1"
    assert no_formula(f"{before}-2") in (f"{before}-2", f"'{before}-2")
    assert no_formula(f"{before}plain = text") == f"{before}plain = text"


def test_so_are_those_of_groups_their_files_of_pairs_and_claims(url: str, semblance: Run, tmp_path: Path) -> None:
    formula = '=HYPERLINK("a man plays the guitar 3")'
    source = write(tmp_path / "in.csv", [{"sentence": formula}, {"sentence": formula.replace("3", "4")}])
    output = tmp_path / "out.csv"
    asked = ("--url", url, "--quote-formulas")
    assert semblance("dedupe", source, output, *asked).code == 0
    assert read(output)[0]["sentence"] == f"'{formula}"
    pairs = [file for file in (tmp_path / "out.review.csv", tmp_path / "out.apart.csv") if file.exists()]
    assert pairs
    for file in pairs:
        assert read(file)[0]["text_1"] == f"'{formula}"
        answered = write(tmp_path / "answers.csv", [row | {"same": "yes"} for row in read(file)])
        assert semblance("dedupe", source, tmp_path / "again.csv", *asked, "--reviewed", answered).code == 0
        assert read(tmp_path / "again.csv")[1]["cluster"] == "1"
    document = tmp_path / "document.txt"
    document.write_text("a man plays the guitar")
    claims = write(tmp_path / "claims.csv", [{"claim": "+a man plays"}])
    assert semblance("claims", document, claims, "--output", tmp_path / "said.csv", *asked).code == 0
    assert read(tmp_path / "said.csv")[0]["claim"] == "'+a man plays"
    assert semblance("claims", document, claims, "--output", tmp_path / "said.jsonl", *asked).code == 2
