"""`semblance dedupe` and `semblance search`: what is near, in files of every kind; bad rows; interruptions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semblance import Client
from semblance.corpus import groups, neighbours, options, vectors
from semblance.corpus.groups import CosineScores, ListedScores, connected, group
from semblance.corpus.neighbours import Near, Neighbours
from semblance.errors import NoAnswer
from tests.harness.commands import Run
from tests.harness.tables import SUFFIXES, read, sentences, write

LEAST = 0.97


def unit(rows: int, dim: int = 16, seed: int = 0, centres: int = 40) -> vectors.Matrix:
    """Vectors around some centres: some are near each other."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(centres, dim))[random.integers(centres, size=rows)]
    values = (values + 0.1 * random.normal(size=(rows, dim))).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def average_linkage(scores: Any, least: float) -> list[int]:
    """Each one's first member of its group, the slow way: the two groups nearest on average are joined, and again."""
    own = [[i] for i in range(len(scores))]
    while len(own) > 1:
        means = {(i, j): np.mean(scores[np.ix_(own[i], own[j])]) for i in range(len(own)) for j in range(i)}
        (i, j), best = max(means.items(), key=lambda item: item[1])
        if best < least:
            break
        own[j] += own.pop(i)
    return [min(next(each for each in own if i in each)) for i in range(len(scores))]


def joined(values: vectors.Matrix, least: float) -> list[int]:
    """Likewise, by cosines."""
    return average_linkage(values @ values.T, least)


def same(found: list[dict[str, Any]], name: str) -> list[Any]:
    return [float(row[name]) for row in found]


# neighbours and clusters


def test_a_search_of_likely_cells_tells_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "SAMPLE", 10**6)  # all
    monkeypatch.setattr(neighbours, "PROBES", 1)
    values = unit(3000, centres=1000)
    index = Neighbours(values, exact=False)
    every = (values @ values.T >= 0.9) & ~np.eye(3000, dtype=bool)
    found = sum(int((part.queries != part.rows).sum()) for part in index.above(values, 0.9))
    assert index.recall_above(0.9) == pytest.approx(found / every.sum(), abs=1e-9)
    assert 0.5 < index.recall_above(0.9) < 1
    assert 0.3 < index.recall_of_best(values, 5) < 1
    monkeypatch.setattr(neighbours, "PROBES", 10**6)
    assert Neighbours(values, exact=False).recall_above(0.9) == 1
    assert Neighbours(values, exact=True).recall_above(0.9) == 1


def test_the_nearest_of_many_texts_come_in_parts_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = unit(7, centres=7)
    whole = np.concatenate([rows for rows, _ in Neighbours(values).best(values, 3)])
    monkeypatch.setattr(neighbours, "QUERIES_AT_ONCE", 3)
    parts = [rows for rows, _ in Neighbours(values).best(values, 3)]
    assert [len(rows) for rows in parts] == [3, 3, 1]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert whole[:, 0].tolist() == list(range(7))


def test_parts_of_more_pairs_than_are_joined_at_once_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them a part whose pairs come one after the other, the later ones without the first."""
    monkeypatch.setattr(groups, "PAIRS_AT_ONCE", 2)
    links = [(1, 4), (6, 7), (4, 5), (2, 3), (5, 8), (3, 2)]
    parts = [Near(*np.array([link]).T, np.ones(1, np.float32)) for link in links]
    assert connected(parts, 9).tolist() == [0, 1, 2, 2, 1, 1, 6, 6, 1]


@pytest.mark.parametrize("most", [4, 500])
def test_groups_are_those_of_average_linkage(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Parts of more texts than are joined at once are divided by a higher score first: there groups are only purer."""
    monkeypatch.setattr(groups, "MOST", most)
    values = unit(60, centres=12, seed=3)
    found = group(CosineScores(Neighbours(values), values, None), 60, LEAST - 0.1).tolist()
    wanted = joined(values, LEAST - 0.1)
    if most == 500:
        assert found == wanted
        assert len(set(found)) < 60
    else:
        parts = connected_all(values @ values.T)
        assert all(parts[text] == parts[lead] for text, lead in enumerate(found))
        assert len(set(wanted)) <= len(set(found)) < 60


def connected_all(cosines: Any) -> list[int]:
    """The first text that each is connected with, at the least of the test above."""
    a, b = np.nonzero(cosines >= LEAST - 0.1)
    return connected([Near(a, b, cosines[a, b])], len(cosines)).tolist()


def test_a_chain_of_near_texts_is_no_group() -> None:
    chain = [(i, i + 1) for i in range(9)]
    near = Near(*np.array(chain).T, np.ones(9, np.float32))
    found = group(ListedScores(near, np.full(9, 0.9), 10), 10, 0.5)
    sizes = np.bincount(found)
    assert sizes.max() <= 2  # of three in a row the outer two have the score 0: .45 on average


def test_texts_as_good_as_equal_are_one_group_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST", 5)
    values = np.tile(unit(1), (30, 1))
    assert group(CosineScores(Neighbours(values), values, None), 30, 0.5).tolist() == [0] * 30


# files


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_near_duplicates_of_a_file(url: str, semblance: Run, tmp_path: Path, suffix: str) -> None:
    texts = sentences(40)
    texts[7] = f" {texts[3]} "
    source = write(tmp_path / f"in{suffix}", [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    output = tmp_path / f"out{suffix}"
    ran = semblance("dedupe", source, output, "--column", "text", "--cosine", LEAST, "--url", url)
    with Client(url) as client:
        values = client.embed(texts).embeddings
    values = values / np.linalg.norm(values, axis=1, keepdims=True)
    first = joined(values, LEAST)
    found = read(output)
    assert [(row["id"], row["text"]) for row in found] == [(str(i), text) for i, text in enumerate(texts)]
    assert same(found, "cluster") == [lead + 1 for lead in first]
    assert same(found, "cluster_size") == [first.count(lead) for lead in first]
    np.testing.assert_allclose(same(found, "cosine"), np.einsum("nd,nd->n", values, values[first]), atol=1e-5)
    distinct = len({text.strip() for text in texts})
    assert 1 < len(set(first)) < distinct
    assert ran == (0, f"rows: 40, distinct texts: {distinct}, clusters: {len(set(first))}; {output}\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"in{suffix}", f"out{suffix}"]

    kept = tmp_path / f"kept{suffix}"
    assert (
        semblance("dedupe", source, kept, "--column", "text", "--cosine", LEAST, "--only-first", "--url", url).code == 0
    )
    assert [row["id"] for row in read(kept)] == [str(i) for i, lead in enumerate(first) if lead == i]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_nearest_texts_of_a_file(url: str, semblance: Run, tmp_path: Path, suffix: str) -> None:
    texts, questions = [*sentences(30), "a dog", " a dog"], sentences(5, 9)
    corpus = write(tmp_path / "corpus.jsonl", [{"sentence": text} for text in texts])
    queries = write(tmp_path / f"queries{suffix}", [{"query": text, "id": f"q{i}"} for i, text in enumerate(questions)])
    output = tmp_path / f"out{suffix}"
    ran = semblance("search", corpus, queries, output, "--top-k", 3, "--url", url, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["recall"] == 1
    with Client(url) as client:
        a, b = client.embed(questions).embeddings, client.embed(texts).embeddings
    cosines = (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T
    found = read(output)
    assert [row["id"] for row in found] == [f"q{i}" for i in range(5) for _ in range(3)]
    assert same(found, "rank") == [1, 2, 3] * 5
    for i, row in enumerate(found):
        assert row["match"] == texts[int(row["row"]) - 1]
        assert float(row["cosine"]) == pytest.approx(cosines[i // 3][int(row["row"]) - 1], abs=1e-5)
    distinct = cosines[:, [i for i, text in enumerate(texts) if text.strip() not in texts[:i]]]
    np.testing.assert_allclose(same(found, "cosine"), -np.sort(-distinct)[:, :3].reshape(-1), atol=1e-5)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[dict[str, Any]]]]:
    """The names and rows of the files that models are asked about."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    run_batch = options.run_batch

    async def noted(client: Any, source: Path, *rest: Any, **more: Any) -> Any:
        found.append((source.name, read(source)))
        return await run_batch(client, source, *rest, **more)

    monkeypatch.setattr(options, "run_batch", noted)
    return found


def test_a_second_model_decides_which_near_texts_are_joined(
    url: str, semblance: Run, tmp_path: Path, batches: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    texts = list(dict.fromkeys(sentences(40)))
    source, output = tmp_path / "in.txt", tmp_path / "out.csv"
    source.write_text("\n\n".join(texts) + "\n")  # with empty lines
    with Client(url) as client:
        values = client.embed(texts).embeddings
        near = [
            (i, j)
            for i, j in np.argwhere(values @ values.T >= 0.8 * np.outer(*[np.linalg.norm(values, axis=1)] * 2))
            if i < j
        ]
        scores = [
            r.score for r in client.similarity([(texts[i], texts[j]) for i, j in near], model="pair-sick").results
        ]
    least = float(np.median(scores))
    kept = np.eye(len(texts))
    for (i, j), score in zip(near, scores, strict=True):
        kept[i, j] = kept[j, i] = score
    asked = ("--rerank", "pair-sick", "--task", "similarity", "--score", least, "--cosine", 0.8, "--url", url)
    ran = semblance("dedupe", source, output, *asked)
    assert (ran.code, ran.err) == (0, "")
    (asked_about,) = (rows for name, rows in batches if name.endswith(".pairs.jsonl"))
    found = sorted((row["a"], row["b"]) for row in asked_about)
    assert found == sorted((texts[i], texts[j]) for i, j in near)  # each pair once, no text about itself
    first = average_linkage(kept, least)
    assert same(read(output), "cluster") == [2 * lead + 1 for lead in first]
    assert 1 < len(set(first)) < len(texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.csv"]
    none = semblance(
        "dedupe", source, tmp_path / "none.csv", "--cosine", 1, "--rerank", "pair-sick", *asked[2:4], *asked[-2:]
    )
    assert none.code == 0


def test_a_second_model_orders_what_is_found(url: str, semblance: Run, tmp_path: Path) -> None:
    texts, queries = list(dict.fromkeys(sentences(20))), ["a man plays", "a dog"]
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    (tmp_path / "queries.txt").write_text("\n".join(queries))
    asked = ("search", tmp_path / "corpus.txt", tmp_path / "queries.txt")
    second = ("--rerank", "pair-sick", "--task", "similarity", "--top-k", 5, "--url", url)
    assert semblance(*asked, tmp_path / "out.jsonl", *second).code == 0
    found = read(tmp_path / "out.jsonl")
    assert [row["rank"] for row in found] == [1, 2, 3, 4, 5] * 2
    assert found == sorted(found, key=lambda row: (queries.index(row["query"]), -row["score"]))
    with Client(url) as client:
        answer = client.similarity([(row["query"], row["match"]) for row in found], model="pair-sick")
    np.testing.assert_allclose([row["score"] for row in found], [r.score for r in answer.results], atol=1e-5)
    least = found[2]["score"]
    assert semblance(*asked, tmp_path / "few.jsonl", *second, "--score", least - 1e-6).code == 0
    assert [row["match"] for row in read(tmp_path / "few.jsonl")] == [
        row["match"] for row in found if row["score"] >= least - 1e-6
    ]
    refused = semblance(*asked, tmp_path / "no.jsonl", "--rerank", "pair-sick", "--url", url)
    assert (refused.code, "model 'pair-sick' has no paraphrase" in refused.err) == (2, True)


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
        f"rows: 6, distinct texts: 2, clusters: 1, skipped: 4 (see {output}.errors.jsonl); {output}\n"
        "no two texts are near enough to be judged\n",
    )
    bad = [(line["row"], line["code"]) for line in read(tmp_path / "out.csv.errors.jsonl")]
    assert bad == [(2, "empty_text"), (4, "unreadable"), (5, "not_text"), (6, "too_large")]
    assert len(read(output)) == 1


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("dedupe in.csv out.txt", "out.txt: expected .jsonl, .ndjson, .csv, .tsv or .parquet"),
        ("dedupe in.csv nowhere/out.csv", "nowhere/out.csv: there is no folder nowhere"),
        (
            "dedupe in.jsonl out.csv",
            "in.jsonl: no row has a column 'sentence', but 'text', 'id'; --column names another",
        ),
        ("dedupe void.csv out.csv", "void.csv: there is no header"),
        ("dedupe void.jsonl out.csv", "void.jsonl: no row has a text in the column 'sentence'"),
        ("dedupe blank.jsonl out.csv", "blank.jsonl: no row has a text in the column 'sentence'"),
        (
            "search in.csv in.csv out.csv",
            "in.csv: there is no column 'query', but 'sentence'; --query-column names another",
        ),
        (
            "search in.csv in.jsonl out.csv",
            "in.jsonl: no row has a column 'query', but 'text', 'id'; --query-column names another",
        ),
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


def test_it_goes_on_where_it_stopped(url: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from semblance.client import AsyncClient

    source = write(tmp_path / "in.csv", [{"sentence": f"a dog {i}"} for i in range(1000)])
    asked: list[int] = []
    embed = AsyncClient.embed

    async def breaks(self: AsyncClient, texts: Any, **options: Any) -> Any:
        if sum(asked) > 600:
            raise NoAnswer("gone")
        asked.append(len(texts))
        return await embed(self, texts, **options)

    monkeypatch.setattr(AsyncClient, "embed", breaks)
    command = ("dedupe", source, tmp_path / "out.csv", "--url", url, "--concurrency", 1)
    assert semblance(*command).code == 3
    first = sum(asked)
    asked.clear()
    assert semblance(*command).code == 0
    assert first + sum(asked) == 1000
    assert len(read(tmp_path / "out.csv")) == 1000


def test_kept_embeddings_are_used_again(
    url: str, semblance: Run, tmp_path: Path, batches: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    corpus = write(tmp_path / "corpus.csv", [{"sentence": text} for text in sentences(20)])
    queries = write(tmp_path / "queries.csv", [{"query": "a dog"}])
    output = tmp_path / "out.csv"

    def found() -> tuple[list[dict[str, Any]], list[str]]:
        output.unlink(missing_ok=True)
        batches.clear()
        assert (
            semblance("search", corpus, queries, output, "--url", url, "--keep", tmp_path / "kept" / "here").code == 0
        )
        return read(output), [name for name, _ in batches]

    both = ["out.csv.queries.texts.jsonl", "corpus.csv.texts.jsonl"]
    first, asked = found()
    assert asked == both
    assert found() == (first, both[:1])
    write(corpus, [{"sentence": "another file"}])
    rows, asked = found()
    assert (rows[0]["match"], asked) == ("another file", both)
