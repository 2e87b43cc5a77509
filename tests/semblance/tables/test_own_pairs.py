"""Files of a user's labelled pairs: what each column may hold, and what is said of rows that do not fit."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semblance.errors import BatchError
from semblance.tables.labelled_pairs import PairsError, RowFault, read_own
from tests.harness.tables import write


def test_scores_of_any_scale(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("b,a,score,note\nthe dog,a dog,4.5,x\na cat,the man,1,y\n")
    read = read_own(path)
    assert (read.kind, read.columns, read.scale, read.faults) == ("score", ("a", "b", "score"), (1.0, 4.5), [])
    found = [(p.a, p.b, p.target, p.label) for p in read.pairs]
    assert found == [("a dog", "the dog", 4.5, None), ("the man", "a cat", 1.0, None)]
    assert read_own(path, scale=(0, 5)).scale == (0, 5)
    inside = read_own(path, scale=(0, 2))
    assert inside.faults == [RowFault(2, "score: '4.5' is no number from 0 to 2")]
    assert inside.lines == [3]


def test_labels_of_three_kinds(tmp_path: Path) -> None:
    rows = [{"a": "x", "b": "y", "label": True}, {"a": "x", "b": "z", "label": "0"}]
    yes = read_own(write(tmp_path / "yes.jsonl", rows))
    assert (yes.kind, [(p.target, p.label) for p in yes.pairs]) == ("label", [(1.0, "1"), (0.0, "0")])
    other = read_own(write(tmp_path / "other.jsonl", [{"a": "x", "b": "y", "label": 2}]), kind="label")
    assert other.faults == [RowFault(1, "label: expected 0 or 1, found 2")]
    path = tmp_path / "nli.tsv"
    path.write_text("a\tb\tlabel\nx\ty\tENTAILMENT\nx\tz\tneutral\nx\tw\tmaybe\n")
    nli = read_own(path)
    assert (nli.kind, [p.label for p in nli.pairs]) == ("entailment", ["entailment", "neutral"])
    assert nli.faults == [
        RowFault(4, "label: expected entailment, neutral, contradiction, not_entailment, found 'maybe'")
    ]
    ranked = read_own(write(tmp_path / "qa.jsonl", [{"question": "q", "answer": "x", "label": 1}]))
    assert (ranked.kind, ranked.pairs[0].group) == ("ranking", "q")


@pytest.mark.parametrize("content", ["a,b,label\nx,y,1.0\nx,z,0.0\nx,w,0.5\n", "a;b;label\nx;y;1,0\nx;z;0\nx;w;0,5\n"])
def test_labels_of_csv_may_be_written_as_pandas_does(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    read = read_own(path)
    assert (read.kind, [(p.target, p.label) for p in read.pairs]) == ("label", [(1.0, "1"), (0.0, "0")])
    assert read.faults == [RowFault(4, f"label: expected 0 or 1, found {content.split()[-1][4:]!r}")]


def test_decimals_of_parquet_are_numbers(tmp_path: Path) -> None:
    numbers = pa.array([Decimal("0.50"), Decimal("1.00")])
    for name, kind in (("score", "score"), ("label", "label")):
        pq.write_table(pa.table({"a": ["x", "x"], "b": ["y", "z"], name: numbers}), tmp_path / "in.parquet")
        read = read_own(tmp_path / "in.parquet")
        assert (read.kind, read.pairs[-1].target, len(read.faults)) == (kind, 1.0, int(name == "label"))


def test_a_fault_has_the_line_on_which_its_row_begins(tmp_path: Path) -> None:
    """Texts may hold line breaks, and empty lines count."""
    path = tmp_path / "pairs.csv"
    path.write_text('a,b,score\n"two\nlines",x,1\n\ny, ,2\nz,w\n"u",v,much\nq,r,3\n', encoding="utf-8")
    read = read_own(path)
    assert read.lines == [2, 8]
    assert read.faults == [
        RowFault(5, "b: the text has no visible character"),
        RowFault(6, "2 fields, the header has 3"),
        RowFault(7, "score: 'much' is no number"),
    ]


def test_no_row_is_lost(tmp_path: Path) -> None:
    rows = [{"a": "x", "b": "y", "score": 1}, {"a": "x"}, [1], {"a": 1, "b": "y", "score": 2}, {"a": "x", "b": "y"}]
    rows += [{"a": "x", "b": "y", "score": value} for value in (True, "1e999", [2], 3)]
    read = read_own(write(tmp_path / "pairs.jsonl", rows))
    assert len(read.pairs) + len(read.faults) == len(rows)
    assert [fault.line for fault in read.faults] == [2, 3, 4, 5, 6, 7, 8]
    assert read.describe(read.faults).endswith("; and 2 more rows")


def test_columns_of_other_names_say_what_they_are(tmp_path: Path) -> None:
    rows = [{"one": f"x {i}", "two": "y", "stars": i % 5, "same": i % 2, "nli": "neutral"} for i in range(6)]
    path = write(tmp_path / "pairs.jsonl", rows)
    assert read_own(path, ("one", "two", "stars")).kind == "score"
    assert read_own(path, ("one", "two", "same")).kind == "label"
    assert read_own(path, ("one", "two", "nli")).kind == "entailment"
    assert read_own(path, ("one", "two", "same"), scale=(0, 1)).kind == "score"
    with pytest.raises(PairsError, match="expected three columns"):
        read_own(path, ("one", "two"))
    with pytest.raises(PairsError, match="expected columns a, b and score"):
        read_own(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a,b,score,label\nx,y,1,1\n", r"has score and label: name the three columns to read \(--column\)"),
        ("a,c,score\n", r"expected columns a, b and score; .* there are 'a', 'c', 'score' \(rename .* --column\)"),
        ("a;b;score\nx;y;1\nx;y;z\n", "all scores are 1"),
        ("question,answer,score\nq,x,1\nq,y,1\n", "all scores are 1"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    with pytest.raises(PairsError, match=reason):
        read_own(path)
    with pytest.raises(PairsError, match="the scale must rise, got 5 to 1"):
        read_own(path, scale=(5, 1))
    with pytest.raises(BatchError, match=r"expected \.jsonl"):
        read_own(tmp_path / "pairs.txt")
