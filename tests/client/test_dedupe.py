"""`semblance dedupe` without options: judged pairs, the file to review, and what is learnt from its answers."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.duplicates.__main__ import f1, files_of
from semblance.batch.formats import AS_FOUND
from semblance.corpus.pair_model import PairModel, fit
from semblance.corpus.review import ReviewRow, read_review, write_review
from semblance.corpus.wording import wording, words_of
from semblance.errors import BatchError
from tests.harness.commands import Ran, Run
from tests.harness.tables import read, write

FILES = files_of("development")


def pairs(groups: list[Any]) -> set[tuple[int, int]]:
    return {(a, b) for a, b in combinations(range(len(groups)), 2) if groups[a] == groups[b]}


def quality(path: Path, truth: list[str]) -> float:
    found, right = pairs([row["cluster"] for row in read(path)]), pairs(truth)
    return f1(len(found & right), len(found), len(right))


def written(path: Path, texts: list[str]) -> Path:
    return write(path, [{"sentence": text} for text in texts])


# Floors a little under what is reached; a cosine of .9 alone has .18, .32, .00 and .05.
LEAST = {"title": 0.78, "company": 0.8, "ticket": 0.5, "mixed": 0.3}


def found_without_options(ran: Ran, output: Path, kind: str) -> float:
    """The quality of what is found, once it is seen to be enough and to be said."""
    assert ran.code == 0, ran.err
    found = quality(output, FILES[kind][1])
    assert found >= LEAST[kind]
    lines = ran.out.splitlines()
    assert lines[1].startswith("candidates: ")
    assert lines[2].startswith("read by minilm-cross: ")
    assert lines[3] == f"doubtful pairs, to review: {output.with_suffix('.review.csv')}"
    return found


@pytest.mark.parametrize("kind", ["company", "ticket", "mixed"])
def test_rows_that_say_the_same_are_found_without_options(
    published: str, semblance: Run, tmp_path: Path, kind: str
) -> None:
    source, output = written(tmp_path / "rows.csv", FILES[kind][0]), tmp_path / "clusters.csv"
    found_without_options(semblance("dedupe", source, output, "--url", published), output, kind)


def test_so_are_titles_and_forty_answers_are_worth_their_time(published: str, semblance: Run, tmp_path: Path) -> None:
    texts, truth = FILES["title"]
    source, output, review = written(tmp_path / "rows.csv", texts), tmp_path / "out.csv", tmp_path / "out.review.csv"
    command = ("dedupe", source, output, "--url", published, "--keep", tmp_path / "kept")
    before = found_without_options(semblance(*command), output, "title")
    rows = read(review)
    doubts = [abs(float(row["score"]) - 0.35) for row in rows]
    assert doubts == pytest.approx(sorted(doubts), abs=2e-3)  # written with three digits
    for row in rows[:40]:
        row["same"] = "yes" if truth[int(row["row_1"]) - 1] == truth[int(row["row_2"]) - 1] else "no"
    answered = write(tmp_path / "answered.csv", rows)
    ran = semblance(*command, "--reviewed", answered, "--overwrite", "--json")
    assert ran.code == 0, ran.err
    assert "learnt from 40 reviewed pairs" in json.loads(ran.out)["chosen"]
    assert quality(output, truth) > before
    said = {(row["row_1"], row["row_2"]): row["same"] for row in read(review)}
    for row in rows[:40]:
        assert said[row["row_1"], row["row_2"]] == row["same"]  # no answer is lost, and none is asked again


def test_without_a_model_that_reads_both_cosines_decide(url: str, semblance: Run, tmp_path: Path) -> None:
    texts = ["a man plays the guitar", "the man plays a guitar", "a dog sleeps", "one dog is asleep", "it rains"]
    ran = semblance("dedupe", written(tmp_path / "in.csv", texts), tmp_path / "out.csv", "--url", url)
    assert ran.code == 0, ran.err
    assert "read by: no model that is served reads both texts, so cosines decide" in ran.out


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"same": "perhaps"}, "line 2: 'same' must be yes or no, found 'perhaps'"),
        ({"same": ""}, "no row says yes or no in the column 'same'"),
        ({"row_1": "first"}, "line 2: row_1 and row_2 must be numbers of rows"),
        ({"text_1": "a cat"}, "line 2 is of another file: its texts are not those of its rows"),
        ({"row_1": "9"}, "line 2 is of another file: its texts are not those of its rows"),
    ],
)
def test_a_review_that_does_not_fit_is_refused(
    url: str, semblance: Run, tmp_path: Path, change: dict[str, str], error: str
) -> None:
    source = written(tmp_path / "in.csv", ["a man plays guitar", "a man plays the guitar", "it rains"])
    texts = {"text_1": "a man plays guitar", "text_2": "a man plays the guitar"}
    review = write(tmp_path / "review.csv", [{"row_1": "1", "row_2": "2", **texts, "same": "yes"} | change])
    ran = semblance("dedupe", source, tmp_path / "out.csv", "--url", url, "--reviewed", review)
    assert (ran.code, ran.err.strip().endswith(error)) == (2, True), ran.err
    assert not (tmp_path / "out.csv").exists()


def test_a_review_and_a_cosine_are_too_many_ways(semblance: Run, tmp_path: Path) -> None:
    source = written(tmp_path / "in.csv", ["a", "b"])
    ran = semblance("dedupe", source, tmp_path / "out.csv", "--cosine", 0.9, "--reviewed", source)
    assert (ran.code, "leave one of them out" in ran.err) == (2, True)


def test_a_review_file_says_again_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.review.csv"
    row = ReviewRow((0, 4), ('a "b", c', "d\ne"), 0.25, True, "cosine 0.50", None)
    write_review(path, [row, row._replace(rows=(1, 2), same=False), row._replace(rows=(2, 3), same=True)])
    assert [line["joined"] for line in read(path)] == ["yes" if row.joined else "no"] * 3
    write_review(path.with_name("apart.csv"), [row._replace(joined=not row.joined)])
    assert [line["joined"] for line in read(path.with_name("apart.csv"))] == ["no" if row.joined else "yes"]
    assert [(pair.rows, pair.texts, pair.same) for pair in read_review(path, AS_FOUND)] == [
        ((1, 2), row.texts, False),
        ((2, 3), row.texts, True),
    ]
    path.write_text("row_1,row_2,text_1,text_2\n1,2,a,b\n", encoding="utf-8")
    with pytest.raises(BatchError, match="there is no column 'same'"):
        read_review(path, AS_FOUND)


def test_weights_move_as_far_as_the_pairs_speak() -> None:
    start = PairModel((5.0, 1.0), -6.0, (0.2, 0.7))
    random = np.random.default_rng(0)
    features = np.column_stack([random.uniform(0, 1, 200), random.integers(0, 3, 200)]).astype(float)
    same = features[:, 0] > 0.8
    learnt = fit(features, same, start)
    assert ((learnt.probabilities(features) >= 0.5) == same).mean() > (
        (start.probabilities(features) >= 0.5) == same
    ).mean()
    assert fit(features[:0], same[:0], start).weights == pytest.approx(start.weights)
    held = fit(features, same, start, strength=1e9)
    assert held.weights == pytest.approx(start.weights, abs=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "edited"),
    [
        ("the parcel is in the hall", "the parcel is in my car", True),  # two words on each side
        ("the parcel is in the hall", "the parcel is in my old car", False),
        ("the app crashes when I open a photo", "the app crashes when I take a photo", True),
        ("Acme Inc., Portland", "Acme Inc., Oakland", True),
        ("HDMI to USB-C adapter", "USB-C to HDMI adapter", True),
        ("Line 20 is late today.", "Line 20b is late today.", True),  # no number is a misspelt one
        ("Hotel Bellevue, Luzern", "Bellevue Hotel, Luzern", False),  # no order that means something
        ("Main Street 4, Dayton", "Main Str. 4, Dayton", False),
        ("an adaptor of glass", "an adapter of glass", False),
        ("a red chair", "a red chair with arms", False),  # says more
        ("a red chair and a table", "one red chair, and tables", False),  # in two places
        ("the same", "the same", False),
        ("cheap" + " so" * 250, "dear" + " so" * 250, True),  # a word that comes often counts like any other
    ],
)
def test_texts_that_are_the_same_but_for_one_place(a: str, b: str, edited: bool) -> None:
    assert wording(words_of(a), words_of(b)).edited == edited
    assert wording(words_of(b), words_of(a)).edited == edited
