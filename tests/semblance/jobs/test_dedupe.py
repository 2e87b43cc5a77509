"""`semblance dedupe`: files of every kind, judged pairs, the files to review, what a person answers; interruptions."""

import asyncio
import json
import os
import random
import re
import sys
from asyncio.subprocess import PIPE
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.duplicates.__main__ import f1, files_of
from benchmarks.duplicates.edits import EDITS
from core.facts import facts_of
from semblance import AsyncClient, Client
from semblance.errors import BatchError, NoAnswer
from semblance.jobs.dedupe import neighbours, session
from semblance.jobs.dedupe.corpus import Matrix
from semblance.jobs.dedupe.neighbours import ApproximateNeighbours, nearest_of
from semblance.jobs.dedupe.review import COLUMNS, ReviewRow, check_no_answers_lost, read_review, writing_review
from semblance.tables import output_file
from tests.harness.commands import Ran, Run
from tests.harness.process import ROOT
from tests.harness.tables import SUFFIXES, read, sentences, write

FILES = files_of("development")
LEAST = 0.97


def unit(rows: int, dim: int = 16, seed: int = 0, centres: int = 40) -> Matrix:
    """Vectors around some centres: some are near each other."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(centres, dim))[random.integers(centres, size=rows)]
    values = (values + 0.1 * random.normal(size=(rows, dim))).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def numbers(found: list[dict[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in found]


def pairs(groups: list[Any]) -> set[tuple[int, int]]:
    return {(a, b) for a, b in combinations(range(len(groups)), 2) if groups[a] == groups[b]}


def quality(path: Path, truth: list[str]) -> float:
    found, right = pairs([row["cluster"] for row in read(path)]), pairs(truth)
    return f1(len(found & right), len(found), len(right))


def written(path: Path, texts: list[str]) -> Path:
    return write(path, [{"sentence": text} for text in texts])


def test_a_search_of_likely_cells_tells_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SAMPLE", 10**6)  # all
    monkeypatch.setattr(neighbours, "PROBES", 1)
    values = unit(3000, centres=1000)
    few = ApproximateNeighbours(values)
    near = sum(int((cosines >= 0.9).sum()) for _, cosines in few.nearest(5))
    there = sum(int((cosines >= 0.9).sum()) for _, cosines in nearest_of(values, 5, 0.9)[0])
    assert few.recall(5, 0.9) == pytest.approx(near / there, abs=1e-9)
    assert 0.5 < near / there < 1
    monkeypatch.setattr(neighbours, "PROBES", 10**6)
    assert ApproximateNeighbours(values).recall(5, 0.9) == 1
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 100)
    assert nearest_of(values, 5, 0.9)[1] == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_near_duplicates_of_a_file(url: str, semblance: Run, tmp_path: Path, suffix: str) -> None:
    texts = [f"{text} {i % 20}" for i, text in enumerate(sentences(40))]
    texts[7], texts[9] = f" {texts[3].upper()} ", f"{texts[3]}!"
    source = write(tmp_path / f"in{suffix}", [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    output = tmp_path / f"out{suffix}"
    command = ("dedupe", source, output, "--column", "text", "--cosine", LEAST, "--no-guard", "--url", url)
    ran = semblance(*command)
    assert (ran.code, ran.err) == (0, "")
    found = read(output)
    assert [(row["id"], row["text"]) for row in found] == [(str(i), text) for i, text in enumerate(texts)]
    first = [int(lead) - 1 for lead in numbers(found, "cluster")]
    assert first[3] == first[7] == first[9]
    assert all(first[lead] == lead <= i for i, lead in enumerate(first))
    assert numbers(found, "cluster_size") == [first.count(lead) for lead in first]
    with Client(url) as client:
        values = np.array(client.embed(texts).embeddings)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    for i, j in pairs(first) - pairs([1 if i in (3, 7, 9) else -i for i in range(40)]):
        assert values[i] @ values[j] > LEAST - 0.1
    lines = ran.out.splitlines()
    assert lines[0].endswith(f"clusters: {len(set(first))}; {output}")
    assert lines[1] == f"judged by a cosine of {LEAST:g} or more"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"in{suffix}", f"out{suffix}"]

    kept = tmp_path / f"kept{suffix}"
    assert semblance(*command[:2], kept, *command[3:], "--only-first").code == 0
    assert [row["id"] for row in read(kept)] == [str(i) for i, lead in enumerate(first) if lead == i]


# Floors a little under what is reached; a cosine of .9 alone has .18, .32 and .00.
FLOORS = {"title": 0.6, "company": 0.8, "ticket": 0.42}


@pytest.mark.parametrize("kind", ["company", "ticket"])
def test_rows_that_say_the_same_are_found_without_options(
    published: str, semblance: Run, tmp_path: Path, kind: str
) -> None:
    source, output = written(tmp_path / "rows.csv", FILES[kind][0]), tmp_path / "clusters.csv"
    ran = semblance("dedupe", source, output, "--url", published)
    assert ran.code == 0, ran.err
    assert quality(output, FILES[kind][1]) >= FLOORS[kind]
    assert "read by minilm-cross, each text with its 3 nearest" in ran.out.splitlines()[1]
    assert len(read(output.with_suffix(".review.csv"))) <= len(FILES[kind][0]) / 5


def test_so_are_titles_and_forty_answers_are_worth_their_time(published: str, semblance: Run, tmp_path: Path) -> None:
    texts, truth = FILES["title"]
    source, output, review = written(tmp_path / "rows.csv", texts), tmp_path / "out.csv", tmp_path / "out.review.csv"
    command = ("dedupe", source, output, "--url", published, "--keep", tmp_path / "kept")
    assert semblance(*command).code == 0
    before = quality(output, truth)
    assert before >= FLOORS["title"]
    rows = [*read(review), *read(tmp_path / "out.apart.csv")][:40]
    first, last = 0, next(i for i in range(1, len(truth)) if truth[i] != truth[0])
    rows.append(
        {"row_1": str(last + 1), "row_2": "1", "text_1": texts[last], "text_2": texts[first]}
    )  # of any two rows
    for row in rows:
        row["same"] = "yes" if truth[int(row["row_1"]) - 1] == truth[int(row["row_2"]) - 1] else "no"
    answered = write(tmp_path / "answered.csv", [{**dict.fromkeys(rows[0]), **row} for row in rows])
    ran = semblance(*command, "--reviewed", answered, "--overwrite", "--json")
    assert ran.code == 0, ran.err
    assert "reviewed pairs: 41" in json.loads(ran.out)["chosen"]
    assert quality(output, truth) > before
    clusters = [row["cluster"] for row in read(output)]
    said = {frozenset((row["row_1"], row["row_2"])): row["same"] for row in read(review)}
    for row in rows:
        a, b = int(row["row_1"]) - 1, int(row["row_2"]) - 1
        assert (clusters[a] == clusters[b]) == (row["same"] == "yes")
        assert said[frozenset((row["row_1"], row["row_2"]))] == row["same"]  # no answer is lost


def test_an_edited_copy_of_a_row_joins_it(published: str, semblance: Run, tmp_path: Path) -> None:
    chosen = random.Random(2)
    rows = FILES["ticket"][0][:12]
    copies = [(text, edit(text, chosen)) for edit in EDITS.values() for text in rows]
    output = tmp_path / "out.csv"
    texts = [*rows, *(copy for _, copy in copies)]
    assert semblance("dedupe", written(tmp_path / "in.csv", texts), output, "--url", published).code == 0
    clusters = [row["cluster"] for row in read(output)]
    of_text = dict(zip(rows, clusters, strict=False))
    joined = [of_text[text] == cluster for (text, _), cluster in zip(copies, clusters[len(rows) :], strict=True)]
    assert sum(joined) >= 0.95 * len(joined)


# Of those with the same words one is read for all; some pairs score the same.
IN_ANY_ORDER = [
    "There is 1 error in the invoice.", "There is one error in the invoice.", "The invoice contains ten errors.",
    "My order was cancelled.", "Hello, my order was cancelled. Thank you!", "Someone cancelled the purchase I made.",
    "Each parcel 1 is not refundable.", "Hi, Your bicycle B is not refundable.", "Your bicycle B is not refundable.",
    "No bicycle 14 is not refundable. Thanks!", "No bicycle 14 is not refundable.",
]  # fmt: skip


def grouped(rows: list[str], clusters: list[int]) -> set[frozenset[str]]:
    return {frozenset(row for row, other in zip(rows, clusters, strict=True) if other == each) for each in clusters}


@settings(max_examples=30, deadline=None)
@given(rows=st.permutations(IN_ANY_ORDER))
def test_the_order_of_texts_decides_nothing(published: str, rows: list[str]) -> None:
    with Client(published) as client:
        orders = [[each.cluster for each in client.dedupe(texts).results] for texts in (IN_ANY_ORDER, rows)]
    assert grouped(IN_ANY_ORDER, orders[0]) == grouped(rows, orders[1])
    assert all(lead == orders[1].index(lead) for lead in orders[1])


def test_the_order_of_rows_decides_nothing(published: str, semblance: Run, tmp_path: Path) -> None:
    found = set()
    for seed in range(4):
        rows = random.Random(seed).sample(IN_ANY_ORDER, len(IN_ANY_ORDER))
        output = tmp_path / f"{seed}.csv"
        assert semblance("dedupe", written(tmp_path / f"in{seed}.csv", rows), output, "--url", published).code == 0
        clusters = [int(row["cluster"]) - 1 for row in read(output)]
        assert all(lead == clusters.index(lead) for lead in clusters)
        found.add(frozenset(grouped(rows, clusters)))
    assert len(found) == 1


def test_rows_that_differ_in_words_unknown_to_the_model_stay_apart(
    published: str, semblance: Run, tmp_path: Path
) -> None:
    texts = [
        "Great product \U0001f44d",
        "Great product \U0001f44e",
        "\u8c22\u8c22",
        "\u518d\u89c1",
        "great product \U0001f44d!",
    ]
    source, output = written(tmp_path / "rows.csv", texts), tmp_path / "clusters.csv"
    assert semblance("dedupe", source, output, "--url", published).code == 0
    assert numbers(read(output), "cluster") == [1, 2, 3, 4, 1]
    assert all("could not be read" in row["why"] for row in read(output.with_suffix(".apart.csv")))


def test_near_rows_that_were_not_joined_are_listed_with_the_reason(
    published: str, semblance: Run, tmp_path: Path
) -> None:
    texts = ["The parcel for order 4711 is late.", "The parcel for order 4712 is late", "Do you ship to Norway?"]
    output = tmp_path / "out.csv"
    assert semblance("dedupe", written(tmp_path / "in.csv", texts), output, "--url", published).code == 0
    assert [row["kept_apart"] for row in read(output)] == ["row 2: 4711 is not 4712", "row 1: 4712 is not 4711", ""]
    (row,) = [row for row in read(tmp_path / "out.apart.csv") if "3" not in (row["row_1"], row["row_2"])]
    assert (row["row_1"], row["row_2"], row["joined"]) == ("2", "1", "no")
    assert row["why"].startswith("4712 is not 4711; cosine")
    assert semblance("dedupe", tmp_path / "in.csv", output, "--no-guard", "--overwrite", "--url", published).code == 0
    assert "kept_apart" not in read(output)[0]


def test_without_a_model_that_reads_both_cosines_decide(url: str, semblance: Run, tmp_path: Path) -> None:
    texts = ["a man plays guitar", "one man plays guitars", "a dog sleeps", "one dog is asleep", "it rains"]
    ran = semblance("dedupe", written(tmp_path / "in.csv", texts), tmp_path / "out.csv", "--url", url)
    assert ran.code == 0, ran.err
    assert "no model that is served reads both texts, so their cosines decide" in ran.out
    refused = semblance("dedupe", tmp_path / "in.csv", tmp_path / "no.csv", "--rerank", "pair-sick", "--url", url)
    assert (refused.code, "model 'pair-sick' has no paraphrase" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"same": "perhaps"}, "line 2: 'same' must be yes or no, found 'perhaps'"),
        ({"same": ""}, "no row says yes or no in the column 'same'"),
        ({"row_1": "first"}, "line 2: row_1 and row_2 must be numbers of rows"),
        ({"text_1": "a cat"}, "line 2 is of another file: its texts are not those of its rows"),
        (
            {"row_1": "4", "row_2": "3", "text_1": "It rains!", "text_2": "it rains", "same": "no"},
            "line 2: both rows have the same words, and so are the same",
        ),
        ({"row_1": "9"}, "line 2 is of another file: its texts are not those of its rows"),
    ],
)
def test_a_review_that_does_not_fit_is_refused(
    url: str, semblance: Run, tmp_path: Path, change: dict[str, str], error: str
) -> None:
    source = written(tmp_path / "in.csv", ["a man plays guitar", "a man plays a flute", "it rains", "It rains!"])
    texts = {"text_1": "a man plays guitar", "text_2": "a man plays a flute"}
    review = write(tmp_path / "review.csv", [{"row_1": "1", "row_2": "2", **texts, "same": "yes"} | change])
    ran = semblance("dedupe", source, tmp_path / "out.csv", "--url", url, "--reviewed", review)
    assert (ran.code, ran.err.strip().endswith(error)) == (2, True), ran.err
    assert not (tmp_path / "out.csv").exists()


def test_a_review_file_says_again_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.review.csv"
    row = ReviewRow((0, 4), ('a "b", c', "d\ne\rf"), 0.25, True, "cosine 0.50", None)
    with writing_review(path, [row, row._replace(rows=(1, 2), same=False), row._replace(rows=(2, 3), same=True)]):
        pass
    assert [line["joined"] for line in read(path)] == ["yes" if row.joined else "no"] * 3
    with writing_review(path.with_name("apart.csv"), [row._replace(joined=not row.joined)]):
        pass
    assert [line["joined"] for line in read(path.with_name("apart.csv"))] == ["no" if row.joined else "yes"]
    assert [(pair.rows, pair.texts, pair.same) for pair in read_review(path)] == [
        ((1, 2), row.texts, False),
        ((2, 3), row.texts, True),
    ]
    path.write_text("row_1,row_2,text_1,text_2\n1,2,a,b\n", encoding="utf-8")
    with pytest.raises(BatchError, match="there is no column 'same'"):
        read_review(path)


@pytest.mark.parametrize(("yes", "no"), [(1, 0), (True, False), (1.0, 0.0)])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_answers_may_be_numbers_or_flags(tmp_path: Path, suffix: str, yes: Any, no: Any) -> None:
    pair = {"row_1": 1, "row_2": 2, "text_1": "a", "text_2": "b"}
    review = write(tmp_path / f"a{suffix}", [{**pair, "same": same} for same in (no, None, yes)])
    assert [each.same for each in read_review(review)] == [False, True]
    lost = write(tmp_path / f"b{suffix}", [{**dict.fromkeys(COLUMNS), **pair, "same": no}])
    with pytest.raises(BatchError, match="has answers"):
        check_no_answers_lost(lost, None, overwrite=True)


def test_a_review_is_read_as_it_was_written_whatever_the_input_is(url: str, semblance: Run, tmp_path: Path) -> None:
    rows, output, review = tmp_path / "rows.csv", tmp_path / "out.csv", tmp_path / "given.csv"
    rows.write_text("id;text\n1;Un café, s'il vous plaît\n2;Two dogs bark\n", encoding="cp1252")
    review.write_text(
        'row_1,row_2,text_1,text_2,same\n1,2,"Un café, s\'il vous plaît",Two dogs bark,yes\n', encoding="utf-8"
    )
    options = ("--column", "text", "--url", url, "--delimiter", ";", "--encoding", "cp1252", "--reviewed", str(review))
    kept = review.read_bytes()
    review.write_bytes(kept.decode().encode("cp1252"))
    code, _, err = semblance("dedupe", str(rows), str(output), *options)
    assert (code, err.endswith("save it as UTF-8 (in Excel: CSV UTF-8)\n"), "--encoding" in err) == (2, True, False)
    review.write_bytes(kept)
    assert semblance("dedupe", str(rows), str(output), *options).code == 0
    assert [row["cluster"] for row in read(output)] == ["1", "1"]


def test_rows_without_a_text_are_named(url: str, semblance: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    lines = [
        '{"sentence":"a dog"}',
        '{"sentence":" "}',
        "",
        "not JSON",
        '{"sentence":3}',
        json.dumps({"sentence": "a" * 200_000}),
    ]
    source.write_text("\n".join(lines) + "\n")
    output = tmp_path / "out.csv"
    ran = semblance("dedupe", source, output, "--url", url)
    assert (ran.code, ran.out) == (
        4,
        f"rows: 6, distinct texts: 2, clusters: 1, skipped: 4; {output}\n"
        "near pairs: 0; no model that is served reads both texts, so their cosines decide\n"
        f"skipped rows: {output}.errors.jsonl\n",
    )
    bad = [(line["row"], line["code"]) for line in read(tmp_path / "out.csv.errors.jsonl")]
    assert bad == [(2, "empty_text"), (4, "unreadable"), (5, "not_text"), (6, "too_large")]
    assert len(read(output)) == 1


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[dict[str, Any]]]]:
    """The names and rows of the files that models are asked about."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    run_batch = session.run_batch

    async def noted(client: Any, source: Path, *rest: Any, **more: Any) -> Any:
        found.append((source.name, read(source)))
        return await run_batch(client, source, *rest, **more)

    monkeypatch.setattr(session, "run_batch", noted)
    return found


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            "dedupe in.jsonl out.csv",
            "in.jsonl: there is no column 'sentence', but 'text', 'id'; --column names another",
        ),
        (
            "dedupe in.csv out.csv --cosine 0.9 --rerank minilm-cross",
            "--rerank is for near pairs that a model reads, not for --cosine",
        ),
        ("dedupe void.jsonl out.csv", "void.jsonl: no row has a text in the column 'sentence'"),
        ("dedupe blank.jsonl out.csv", "blank.jsonl: no row has a text in the column 'sentence'"),
    ],
)
def test_a_mistake_is_said_before_anything_is_embedded(
    url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, error: str
) -> None:
    write(tmp_path / "in.csv", [{"sentence": "a dog"}])
    write(tmp_path / "in.jsonl", [{"text": "a dog"}, {"id": "3"}])
    write(tmp_path / "blank.jsonl", [{"sentence": " "}])
    for name in ("void.csv", "void.jsonl"):
        (tmp_path / name).touch()
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    ran = semblance(*command.split(), "--url", url)
    assert (ran.code, ran.err) == (2, f"semblance: {error}\n")
    assert sorted(tmp_path.iterdir()) == before


def test_kept_embeddings_are_used_again(
    url: str, semblance: Run, tmp_path: Path, batches: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    source, output = written(tmp_path / "in.csv", sentences(20)), tmp_path / "out.csv"

    def found() -> tuple[list[dict[str, Any]], list[str]]:
        for file in tmp_path.glob("out*.csv"):
            file.unlink()
        batches.clear()
        assert semblance("dedupe", source, output, "--url", url, "--keep", tmp_path / "kept" / "here").code == 0
        return read(output), [name for name, _ in batches]

    first, (asked,) = found()
    assert re.fullmatch(r"in\.csv\.[0-9a-f]{12}\.texts\.jsonl", asked)
    assert found() == (first, [])
    (tmp_path / "other").mkdir()
    written(source, ["another file"]).rename(tmp_path / "other" / "in.csv")
    written(source, sentences(20))
    source = tmp_path / "other" / "in.csv"
    rows, (other,) = found()
    assert (rows[0]["sentence"], other != asked) == ("another file", True)
    source = tmp_path / "in.csv"
    assert found() == (first, [])
    written(source, ["another file"])
    assert found() == (rows, [asked])
    assert semblance("dedupe", source, output, "--url", url, "--keep", tmp_path / "kept/here", "--overwrite").code == 0
    assert len(batches) == 1


def test_a_run_that_stops_between_two_questions_of_pairs_does_not_ask_the_first_again(
    published: str,
    semblance: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    source, output = written(tmp_path / "in.csv", ["a man plays the guitar", "a man is playing a guitar"]), "out.csv"
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(AsyncClient, "similarity", AsyncMock(side_effect=NoAnswer("gone")))
        assert semblance("dedupe", source, output, "--url", published).code == 3
    batches.clear()
    assert semblance("dedupe", source, output, "--url", published).code == 0
    assert [[*rows[0]] for _, rows in batches] == [["n", "a", "b"]]
    assert {path.name for path in tmp_path.iterdir()} <= {"in.csv", output, "out.review.csv", "out.apart.csv"}


@pytest.mark.parametrize("keep", [(), ("--keep", "kept")])
def test_two_runs_at_once_do_not_share_working_files(
    url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "in.csv", sentences(5))
    models, ran = AsyncClient.models, list[Ran]()

    async def another(self: AsyncClient) -> Any:
        if not ran:
            ran.append(Ran(0, "", ""))
            command = [sys.executable, "-m", "semblance", "dedupe", "in.csv", "out.csv", "--url", url, *keep]
            process = await asyncio.create_subprocess_exec(
                *command, stderr=PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
            _, err = await process.communicate()
            ran[0] = Ran(process.returncode or 0, "", err.decode())
        return await models(self)

    monkeypatch.setattr(AsyncClient, "models", another)
    assert semblance("dedupe", "in.csv", "out.csv", "--url", url, *keep).code == 0
    (lock,) = re.findall(r"^semblance: (\S+): another run is writing it\n$", ran[0].err)
    assert (ran[0].code, Path(lock).parent) == (2, Path(*keep[1:])), ran[0].err
    assert not list(tmp_path.rglob("*.lock"))


def test_an_interrupted_run_that_another_does_not_go_on_with_names_the_input(
    url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "in.csv", [f"a dog {i}" for i in range(200)])
    command = ("dedupe", source, tmp_path / "out.csv", "--url", url)
    with monkeypatch.context() as broken:
        broken.setattr(AsyncClient, "embed", AsyncMock(side_effect=NoAnswer("gone")))
        assert semblance(*command).code == 3
    written(source, sentences(5))
    ran = semblance(*command)
    assert (ran.code, ran.err.startswith(f"semblance: {source}: ")) == (2, True), ran.err
    assert ran.err.endswith("; --overwrite begins again\n")
    assert semblance(*command, "--overwrite").code == 0


def test_a_working_file_that_is_a_link_is_refused(url: str, semblance: Run, tmp_path: Path) -> None:
    source, real, kept = written(tmp_path / "in.csv", sentences(5)), tmp_path / "real.txt", tmp_path / "kept"
    real.write_text("precious")
    command = ("dedupe", source, tmp_path / "out.csv", "--url", url, "--overwrite", "--keep", kept)
    assert semblance(*command).code == 0
    (texts,) = kept.glob("*.texts.jsonl")
    texts.unlink()
    texts.symlink_to(real)
    assert semblance(*command) == Ran(2, "", f"semblance: {texts} is a link: name another output\n")
    assert real.read_text() == "precious"


@pytest.mark.parametrize("texts", [["\u200b", "\u200b\u200d"], ["a" * 200_000, "b" * 200_000]], ids=["unseen", "long"])
def test_a_file_without_a_text_that_can_be_compared_is_refused(
    url: str, semblance: Run, tmp_path: Path, texts: list[str]
) -> None:
    ran = semblance("dedupe", written(tmp_path / "in.csv", texts), tmp_path / "out.csv", "--url", url)
    assert (ran.code, "in.csv: no row has a text that can be compared; row 1: " in ran.err) == (2, True), ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_no_file_of_pairs_that_a_person_worked_on_is_replaced(semblance: Run, url: str, tmp_path: Path) -> None:
    texts = ["a man plays the guitar 3", "a man plays the guitar 4", "the dog runs", "a dog runs in the park"]
    source, output, review = written(tmp_path / "rows.csv", texts), tmp_path / "out.csv", tmp_path / "out.review.csv"
    command = ("dedupe", source, output, "--url", url)
    assert semblance(*command).code == 0
    (row, *_) = read(tmp_path / "out.apart.csv")
    write(review, [row | {"same": "yes"}])
    (tmp_path / "out.apart.csv").unlink()
    answered = review.read_bytes()
    output.unlink()
    ran = semblance(*command)
    assert (ran.code, "out.review.csv exists" in ran.err) == (2, True)
    ran = semblance(*command, "--overwrite")
    assert (ran.code, "has answers" in ran.err) == (2, True)
    assert review.read_bytes() == answered
    for more in ((), ("--cosine", ".9")):
        assert semblance(*command, "--reviewed", review, "--overwrite", *more).code == 0
        assert [row["same"] for row in read(review) if row["same"]] == ["yes"]
    output.unlink()
    assert "exists; --overwrite" in semblance(*command, "--reviewed", review).err
    write(review, [row | {"same": "yes", "by": "Anna"}])
    ran = semblance(*command, "--reviewed", review, "--overwrite")
    assert (ran.code, "out.review.csv has a column 'by', which would be lost" in ran.err) == (2, True)
    review.write_text("my own notes\nof this file\n")
    assert semblance(*command, "--overwrite").code == 2
    review.unlink()
    assert semblance(*command, "--overwrite").code == 0
    assert semblance(*command, "--overwrite").code == 0  # nobody has answered


def test_answers_given_while_it_runs_are_kept(
    semblance: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a man plays the guitar 3", "a man plays the guitar 4", "the dog runs", "a dog runs in the park"]
    source, review = written(tmp_path / "rows.csv", texts), tmp_path / "out.review.csv"
    command = ("dedupe", source, tmp_path / "out.csv", "--url", url, "--overwrite")
    assert semblance(*command).code == 0
    (row, *_) = read(tmp_path / "out.apart.csv")
    (tmp_path / "out.apart.csv").unlink()
    unanswered = write(review, [row | {"same": ""}, row | {"same": "yes"}]).read_bytes()
    later = unanswered.replace(b",\r\n", b",yes\r\n", 1)
    assert later != unanswered

    def answering(*given: Any) -> Any:
        review.write_bytes(later)
        return facts_of(*given)

    monkeypatch.setattr("semblance.jobs.dedupe.dedupe.facts_of", answering)
    ran = semblance(*command, "--reviewed", review)
    assert (ran.code, "out.review.csv: the file changed while it was read" in ran.err) == (2, True), ran.err
    assert review.read_bytes() == later


@pytest.mark.parametrize("name", ["out.review.csv", "out.apart.csv"])
def test_a_file_of_pairs_that_is_a_link_is_refused(semblance: Run, url: str, tmp_path: Path, name: str) -> None:
    source, link, real = written(tmp_path / "rows.csv", sentences(5)), tmp_path / name, tmp_path / "real.csv"
    real.write_text("precious")
    link.symlink_to(real)
    ran = semblance("dedupe", source, tmp_path / "out.csv", "--url", url, "--overwrite", "--reviewed", link)
    assert ran == Ran(2, "", f"semblance: {link} is a link: name another output\n")
    assert (link.is_symlink(), real.read_text()) == (True, "precious")


def test_answers_about_quoted_formulas_are_read(semblance: Run, url: str, tmp_path: Path) -> None:
    texts = ["-5 degrees in the morning is cold", "-5 degrees in the morning is not warm"]
    source = written(tmp_path / "rows.csv", texts)
    rows = {"row_1": "1", "row_2": "2", "text_1": f"'{texts[0]}", "text_2": f"'{texts[1]}", "same": "yes"}
    review = write(tmp_path / "answered.csv", [rows])
    output = tmp_path / "out.csv"
    ran = semblance("dedupe", source, output, "--url", url, "--reviewed", review, "--quote-formulas")
    assert ran.code == 0, ran.err
    assert [row["cluster"] for row in read(output)] == ["1", "1"]
    ran = semblance(
        "dedupe", source, output, "--url", url, "--reviewed", tmp_path / "out.review.csv", "--overwrite"
    )  # as it was written
    assert ran.code == 0, ran.err


def test_kept_vectors_that_are_cut_short_are_named(semblance: Run, url: str, tmp_path: Path) -> None:
    source, kept = written(tmp_path / "rows.csv", sentences(5)), tmp_path / "kept"
    more = ("--url", url, "--keep", kept)
    assert semblance("dedupe", source, tmp_path / "out.csv", *more).code == 0
    (vectors,) = kept.glob("*.vectors.parquet")
    vectors.write_bytes(vectors.read_bytes()[:-10])
    ran = semblance("dedupe", source, tmp_path / "again.csv", *more)
    assert (ran.code, "vectors.parquet cannot be read: remove it" in ran.err) == (2, True), ran.err
    vectors.unlink()
    assert semblance("dedupe", source, tmp_path / "again.csv", *more).code == 0


def test_kept_vectors_whose_list_of_bad_rows_is_lost_are_named(semblance: Run, url: str, tmp_path: Path) -> None:
    source, kept = written(tmp_path / "rows.csv", [*sentences(3), "a" * 100_001, "the last"]), tmp_path / "kept"
    more = ("--url", url, "--keep", kept)
    assert semblance("dedupe", source, tmp_path / "out.csv", *more).code == 4
    next(kept.glob("*.errors.jsonl")).unlink()
    ran = semblance("dedupe", source, tmp_path / "again.csv", *more)
    assert (ran.code, "vectors.parquet has 4 vectors, of 5 texts: remove it" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("name", ["cluster", "cosine"])
def test_no_column_of_json_is_replaced(semblance: Run, url: str, tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "rows.jsonl", [{"sentence": "a man plays"}, {"sentence": "the dog runs", name: "mine"}])
    ran = semblance("dedupe", source, tmp_path / "out.jsonl", "--url", url)
    assert (ran.code, f"a column '{name}' already" in ran.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_review_that_a_full_disk_does_not_take_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "open_alone", lambda *_: os.open("/dev/full", os.O_WRONLY))
    with (
        pytest.raises(OSError, match="No space left on device") as raised,
        writing_review(tmp_path / "review.csv", []),
    ):
        pytest.fail("it was written")
    assert raised.value.filename == str(tmp_path / "review.csv")


@pytest.mark.parametrize("full", ["out.csv", "out.apart.csv"])
def test_after_a_full_disk_the_same_command_goes_on(
    url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    texts = ["a man plays the guitar 3", "a man plays the guitar 4", "the dog runs", "a dog runs in the park"]
    source = written(tmp_path / "rows.csv", texts)
    command, open_alone = ("dedupe", source, tmp_path / "out.csv", "--url", url), output_file.open_alone

    def opened(path: Path, *mode: int, **anew: bool) -> int:
        taken = os.open("/dev/full", os.O_RDWR) if path.name == f"{full}.unfinished" else None
        return open_alone(path, *mode, **anew) if taken is None else taken

    with monkeypatch.context() as disk:
        disk.setattr(output_file, "open_alone", opened)
        ran = semblance(*command)
    assert (ran.code, ran.err) == (2, f"semblance: {tmp_path / full}: No space left on device\n")
    assert not {"out.csv", "out.review.csv", "out.apart.csv"} & {path.name for path in tmp_path.iterdir()}
    assert semblance(*command).code == 0
    assert (tmp_path / "out.apart.csv").exists()


def test_answers_that_are_given_again_are_no_others(url: str, semblance: Run, tmp_path: Path) -> None:
    texts = ["the dog runs", "a dog runs in the park", "The dog runs!", "a man plays the guitar"]
    source, output = written(tmp_path / "rows.csv", texts), tmp_path / "out.csv"
    pair = {"row_1": 3, "row_2": 2, "text_1": texts[2], "text_2": texts[1], "same": "yes"}
    answers = write(tmp_path / "answers.csv", [pair])
    command = ("dedupe", source, output, "--url", url, "--overwrite", "--reviewed", answers)
    for _ in range(2):
        ran = semblance(*command)
        assert ran.code == 0, ran.err
    assert [row["row_1"] for row in read(tmp_path / "out.review.csv") if row["same"] == "yes"] == ["1"]
    write(answers, [pair | {"same": "no"}])
    ran = semblance(*command)
    assert (ran.code, "out.review.csv has answers" in ran.err) == (2, True)
