"""`semblance batch`: files of every kind in and out, bad rows, interruptions."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semblance import AsyncClient, Client
from semblance.errors import BatchError, NoAnswer, ServiceFailed
from semblance.jobs.batch import job
from semblance.jobs.batch.job import run_batch
from semblance.jobs.batch.journal import Journal
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions
from semblance.types import Similarities
from tests.harness.commands import Ran, Run
from tests.harness.service import NEEDED_SECONDS
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


def test_labelled_pairs_keep_their_columns(batch: Batch, tmp_path: Path) -> None:
    """A column `score` of the input stays; the new ones get a prefix, and the batch says which."""
    given = [{"a": row["a"], "b": row["b"], "score": 3.5} for row in rows(5)]
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    code, out, err = batch(source, output)
    assert (code, out) == (0, f"5 rows: {output}\n")
    assert err == (
        "semblance: the input has a column 'score' already, which is kept: the new columns are semblance_score, "
        "semblance_raw_score, semblance_truncated, semblance_unknown (--prefix names them otherwise)\n"
    )
    names = ["score", "raw_score", "truncated", "unknown"]
    for row, before in zip(read(output), given, strict=True):
        assert {name: row[name] for name in before} == before
        assert list(row) == [*before, *(f"semblance_{name}" for name in names)]
    again = tmp_path / "again.jsonl"
    assert batch(output, again).code == 0  # and once more
    assert list(read(again)[0])[-4:] == [f"semblance2_{name}" for name in names]


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
    pq.write_table(table.append_column("raw", pa.array([b"\x00"])), tmp_path / "in.parquet")
    found = batch(tmp_path / "in.parquet", tmp_path / "raw.jsonl")
    assert (found.code, found.err) == (2, "semblance: JSON has nothing for bytes: write .parquet instead\n")


@pytest.mark.parametrize("out", SUFFIXES)
def test_an_input_without_rows(batch: Batch, tmp_path: Path, out: str) -> None:
    (tmp_path / "in.csv").write_text("id,a,b\n")
    assert batch(tmp_path / "in.csv", tmp_path / f"out{out}").out == f"0 rows: {tmp_path}/out{out}\n"
    assert read(tmp_path / f"out{out}") == []
    if out == ".parquet":
        assert pq.read_schema(tmp_path / "out.parquet").names == ["score", "raw_score", "truncated", "unknown"]


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
        b'{"a": "x", "b": "x", "score": 1}',
        b'{"a": "x", "b": "x", "n": NaN}',
        b'{"a": "%s", "b": "x"}' % (b"x" * 100_001),
        good,
    ]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    output = tmp_path / "out.jsonl"
    code, out, err = batch(tmp_path / "in.jsonl", output)
    assert (code, err) == (4, "")
    assert out == f"13 rows, 10 skipped (see {output}.errors.jsonl): {output}\n"
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
        (10, "column_taken", "score"),
        (11, "unreadable", None),
        (12, "too_large", "a"),
    ]
    assert said[0]["reason"] == "the text has no visible character"
    assert said[6]["reason"] == "a lone surrogate is not a character"


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
        ({"query": "q", "candidates": ["x", 1]}, "not_text", "candidates"),
        ({"query": "q", "candidates": ["x", "\u200b"]}, "empty_text", "candidates"),
    ],
)
def test_bad_rows_of_rank(batch: Batch, tmp_path: Path, row: dict[str, Any], code: str, column: str) -> None:
    source = write(tmp_path / "in.jsonl", [row, {"query": "q", "candidates": ["x", "y"]}])
    assert batch(source, tmp_path / "out.jsonl", "--task", "rank").code == 4
    (line,) = errors_of(tmp_path / "out.jsonl")
    assert (line["row"], line["code"], line["column"]) == (1, code, column)
    assert len(read(tmp_path / "out.jsonl")) == 1


class Stumbling(AsyncClient):
    """Fails at requests that hold a certain text, without saying which of its rows that is."""

    def __init__(self, url: str, text: str, code: str) -> None:
        super().__init__(url)
        self._text, self._code = text, code
        self.asked: list[int] = []

    async def similarity(self, pairs: Any, *, model: str | None = None, task: Any = None) -> Similarities:
        self.asked.append(len(pairs))
        if any(a == self._text for a, _ in pairs):
            raise ServiceFailed(500 if self._code == "inference_failed" else 503, self._code, "it failed")
        return await super().similarity(pairs, model=model)


@pytest.mark.parametrize("code", ["inference_failed", "timeout"])
def test_a_row_that_the_service_stumbles_over_is_found(url: str, tmp_path: Path, code: str) -> None:
    given = rows(64)
    given[37]["a"] = "guitar guitar guitar"
    stumbling = Stumbling(url, given[37]["a"], code)
    ask_all(url, write(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl", lambda _: stumbling)
    tries = 2 if code == "timeout" else 0  # a time-out may be the service's
    assert len(stumbling.asked) <= 2 * 6 + 1 + tries  # halves of 64
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == [row["id"] for row in given if row != given[37]]
    assert errors_of(tmp_path / "out.jsonl") == [{"row": 38, "column": None, "code": code, "reason": "it failed"}]


# interruptions


OPTIONS = BatchOptions("similarity", DEFAULT_COLUMNS["similarity"])
# Kills itself, as `kill -9` would, after some chunks.
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from semblance import AsyncClient
from semblance.jobs.batch import job
from semblance.jobs.batch.tasks import BatchOptions
source, output, url, kill = sys.argv[1:]
job.ROWS_AT_ONCE = 16
seen = 0
def watch(done):
    global seen
    seen += 1
    if seen == int(kill):
        os.kill(os.getpid(), signal.SIGKILL)
async def run():
    async with AsyncClient(url) as client:
        options = BatchOptions("similarity", ("a", "b"))
        await job.run_batch(client, Path(source), Path(output), options, watch=watch)
asyncio.run(run())
"""


def killed(source: Path, output: Path, url: str, kill: int) -> int:
    arguments = [sys.executable, "-c", CHILD, source, output, url, kill]
    done = subprocess.run(list(map(str, arguments)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode


@pytest.mark.parametrize("out", [".jsonl", ".parquet"])
def test_killed_it_goes_on_exactly(url: str, tmp_path: Path, out: str) -> None:
    given = rows(100)
    given[3]["a"] = given[60]["b"] = ""
    source, output = write(tmp_path / "in.jsonl", given), tmp_path / f"out{out}"
    assert killed(source, output, url, 3) == -signal.SIGKILL
    assert not output.exists()
    partial = tmp_path / f"out{out}.partial"
    with partial.open("ab") as file:
        file.write(b'[{"half a ro')
    seen = []
    ask_all(url, source, output, watch=lambda progress: seen.append(progress.rows))
    assert seen[0] == 100  # 48 were answered already
    found = read(output)
    assert [row["id"] for row in found] == [row["id"] for i, row in enumerate(given) if i not in (3, 60)]
    assert [line["row"] for line in errors_of(output)] == [4, 61]
    ask_all(url, source, tmp_path / f"whole{out}")
    assert found == read(tmp_path / f"whole{out}")
    assert not partial.exists()


def ask_all(
    url: str, source: Path, output: Path, client: Callable[[str], AsyncClient] = AsyncClient, **options: Any
) -> Any:
    async def run() -> Any:
        async with client(url) as opened:
            return await run_batch(opened, source, output, OPTIONS, **options)

    return asyncio.run(run())


class Leaving(AsyncClient):
    """Answers twice, and is gone."""

    asked = 0

    async def similarity(self, pairs: Any, *, model: str | None = None, task: Any = None) -> Similarities:
        type(self).asked += 1
        if type(self).asked > 2:
            raise NoAnswer("gone")
        return await super().similarity(pairs, model=model)


def interrupted(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A batch of 40 rows that has answered 20 when the service goes."""
    monkeypatch.setattr(job, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(Leaving, "asked", 0)
    source, output = write(tmp_path / "in.jsonl", rows(40)), tmp_path / "out.jsonl"
    with pytest.raises(NoAnswer, match="gone"):
        ask_all(url, source, output, Leaving, concurrency=1)
    return source, output


@pytest.mark.parametrize("step", ["replace", "unlink"])
def test_killed_while_it_finishes_it_finishes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(10)), tmp_path / "out.csv"

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("os.replace" if step == "replace" else "pathlib.Path.unlink", power_cut)
        with pytest.raises(KeyboardInterrupt):
            ask_all(url, source, output)
    asked = []
    ask_all(url, source, output, watch=asked.append)
    assert asked == []
    assert len(read(output)) == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.csv"]


@pytest.mark.parametrize("change", ["input", "model", "prefix", "fingerprint"])
def test_another_batch_does_not_go_on_from_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    source, output = interrupted(url, tmp_path, monkeypatch)
    options = OPTIONS
    if change == "input":
        with source.open("a") as file:
            file.write("\n")
    elif change == "fingerprint":
        path = tmp_path / "out.jsonl.partial"
        path.write_text(path.read_text().replace('"fingerprints": ["', '"fingerprints": ["0'))
    else:
        options = replace(OPTIONS, **{change: "avg-sick"})
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", options)
    with pytest.raises(BatchError, match=f"is of another batch .*{change}.* was .*--overwrite begins again"):
        ask_all(url, source, output)
    ask_all(url, source, output, overwrite=True)
    assert len(read(output)) == 40


@pytest.mark.parametrize("content", ["{", "[]\n", "{}\n", '{"batch": 2}\n'])
def test_a_file_that_is_not_of_a_batch(url: str, tmp_path: Path, content: str) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.partial").write_text(content)
    with pytest.raises(BatchError, match=r"not of a batch .*--overwrite begins again"):
        ask_all(url, source, output)


def test_an_output_is_not_replaced_unasked(batch: Batch, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"
    output.write_text("precious")
    assert batch(source, output).err == f"semblance: {output} exists; --overwrite replaces it\n"
    assert output.read_text() == "precious"
    assert batch(source, output, "--overwrite").code == 0
    assert len(read(output)) == 3


def test_two_at_once_do_not_write_one_file(url: str, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(3)), tmp_path / "out.jsonl"

    held = Journal(tmp_path / "out.jsonl.partial", {})
    with pytest.raises(BatchError, match=r"out\.jsonl\.partial: another batch is writing it"):
        ask_all(url, source, output)
    held.close()
    assert ask_all(url, source, output, overwrite=True).rows == 3


def test_interrupted_by_the_keyboard_it_goes_on_from_there(url: str, tmp_path: Path) -> None:
    source, output = write(tmp_path / "in.jsonl", rows(200_000)), tmp_path / "out.jsonl"
    journal = tmp_path / "out.jsonl.partial"
    process = subprocess.Popen(
        [sys.executable, "-m", "semblance", "batch", source, output, "--url", url],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A test run in the background has it ignored, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + NEEDED_SECONDS
    while not (journal.exists() and journal.stat().st_size > 1000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=NEEDED_SECONDS)
    assert (process.returncode, out) == (130, "")
    assert err == "semblance: interrupted; the same command goes on from here\n"
    assert journal.stat().st_size > 1000
    assert not output.exists()


def test_without_a_terminal_it_says_now_and_then_how_far_it_is(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semblance.cli.progress.EVERY", 0.0)
    code, _, err = batch(write(tmp_path / "in.jsonl", rows(20)), tmp_path / "out.jsonl")
    assert code == 0
    assert re.fullmatch(r"semblance: 20 rows, 100%\n", err)


# what cannot be


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.jsonl", "out.jsonl"), "missing.jsonl: No such file or directory"),
        (("in.txt", "out.jsonl"), "in.txt: expected .jsonl, .ndjson, .csv, .tsv or .parquet"),
        (("in.csv", "out.txt"), "out.txt: expected .jsonl"),
        (("in.csv", "nowhere/out.jsonl"), "nowhere/out.jsonl: there is no folder nowhere"),
        (("empty.csv", "out.csv"), "empty.csv: there is no header"),
        (("twice.csv", "out.csv"), "twice.csv: line 1: more than one column 'a'"),
        (("broken.parquet", "out.csv"), "broken.parquet: "),
        (("in.csv", "out.csv", "--column", "a"), "similarity reads 2 columns (a, b), found 1"),
        (("in.csv", "out.csv", "--column", "a", "--column", "x"), "there is no column 'x', but 'id', 'a', 'b'"),
        (("in.jsonl", "out.csv", "--column", "a", "--column", "x"), "there is no column 'x', but 'id', 'a', 'b'"),
        (("taken.csv", "out.csv", "--prefix", ""), "the input has a column 'score' already: choose another --prefix"),
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


@pytest.mark.artifacts
@pytest.mark.parametrize("model", ["minilm-small", "minilm-cross"])
def test_a_file_is_the_same_however_its_texts_share_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """A transformer's last digits hang on how far a text is padded: of these rows most differed, run after run."""
    source = write(tmp_path / "in.csv", rows(40))
    options = BatchOptions("similarity", DEFAULT_COLUMNS["similarity"], model=model)

    def asked(output: Path, rows_at_once: int, concurrency: int, watch: job.Watch = lambda _: None) -> bytes:
        async def ask() -> None:
            async with AsyncClient.local(ROOT / "models", whole_files=True) as client:
                await run_batch(client, source, output, options, concurrency=concurrency, watch=watch)

        monkeypatch.setattr(job, "ROWS_AT_ONCE", rows_at_once)
        asyncio.run(ask())
        return output.read_bytes()

    def stop(progress: job.BatchProgress) -> None:
        raise KeyboardInterrupt

    whole = asked(tmp_path / "whole.csv", 40, 1)
    assert asked(tmp_path / "parts.csv", 7, 4) == whole
    with pytest.raises(KeyboardInterrupt):
        asked(tmp_path / "resumed.csv", 5, 2, stop)
    assert not (tmp_path / "resumed.csv").exists()
    assert asked(tmp_path / "resumed.csv", 16, 4) == whole
