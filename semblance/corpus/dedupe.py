"""Near-duplicates of a file: each row gets the first row of its cluster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semblance.batch.delimited import FileFormat
from semblance.batch.formats import write_of
from semblance.batch.outputs import write_output
from semblance.batch.rows import Answered, Kind, Row
from semblance.corpus.asking import Work
from semblance.corpus.clusters import cluster
from semblance.corpus.guard import Guard
from semblance.corpus.neighbours import QUERIES_AT_ONCE, Near, Neighbours
from semblance.corpus.second import decided
from semblance.corpus.texts import NO_TEXT, ROWS_AT_ONCE, opened
from semblance.corpus.work import forget, place, read


@dataclass(frozen=True)
class Deduped:
    """What was found."""

    rows: int
    texts: int  # distinct ones
    clusters: int
    skipped: int
    model: str
    exact: bool
    recall: float  # of near pairs, on a sample


async def dedupe(
    work: Work,
    path: Path,
    output: Path,
    column: str,
    read_as: FileFormat,
    *,
    least: float,
    score: float,
    only_first: bool,
    numbers: bool,
) -> Deduped:
    """Write a file with each row's cluster: two texts are joined if the cosine of their embeddings is at least `least`,
    and so are texts that are joined to the same one.

    Args:
        work: see there.
        path: .jsonl, .ndjson, .csv, .tsv or .parquet; or .txt, a text a line.
        output: one of these too, but .txt. New columns: `cluster`, the number of the cluster's first row, from 1;
            `cluster_size`, in rows; `cosine` with that first row; `kept_apart`, the nearest row that is near enough but
            differs in a number, a code or a size, and how.
        column: of the texts.
        read_as: encoding and separator of the file.
        least: cosine.
        score: that the second model must give a pair that near, if there is one.
        numbers: keep texts apart that differ in a number, a code or a size (`semblance.corpus.quantities`).
        only_first: write only the first row of each cluster.

    Raises:
        BatchError, SemblanceError: see `place`, `opened` and `read`.
    """
    asking, step = work.asking, work.step
    beside = place(path, output, asking)
    names: dict[str, Kind] = {"cluster": "place", "cluster_size": "place", "cosine": "number"}
    names |= {"kept_apart": "text"} if numbers else {}
    adds = {f"{asking.prefix}{name}": kind for name, kind in names.items()}
    source = opened(path, column, read_as, adds)
    await work.check()
    corpus = await read(work, source, beside)
    values, texts = corpus.vectors.values, corpus.texts
    step("indexing", 0.0)
    near = Neighbours(values, exact=asking.exact)

    def found() -> Iterator[Near]:
        for part, pairs in enumerate(near.above(values, least)):
            step(f"comparing {len(values):,} texts", part * QUERIES_AT_ONCE / len(values))
            yield pairs

    guard = Guard([text for _, text in sorted(texts.read(corpus.vectors.texts.tolist()).items())]) if numbers else None
    joining: Iterable[Near] = found() if guard is None else guard.agreeing(found())
    if asking.rerank is not None:
        joining = [await decided(work, joining, corpus, beside, score)]
    first = cluster(joining, len(values))
    recall = near.recall_above(least)
    cosines = np.minimum(np.einsum("nd,nd->n", values, values[first]), 1.0)
    # From vectors to texts to rows.
    leader = np.full(len(texts.first_row) + 1, NO_TEXT, dtype=np.int64)  # the last is that of rows without a text
    leader[corpus.vectors.texts] = np.asarray(texts.first_row)[corpus.vectors.texts[first]]
    closeness = np.zeros(len(leader), dtype=np.float32)
    closeness[corpus.vectors.texts] = cosines
    vector_of = np.full(len(texts.first_row) + 1, NO_TEXT, dtype=np.int64)
    vector_of[corpus.vectors.texts] = np.arange(len(values))
    of_row = np.asarray(texts.of_row, dtype=np.int64)
    leaders = leader[of_row]
    sizes = np.bincount(leaders[leaders >= 0], minlength=len(of_row))

    def apart(guard: Guard, vector: int) -> str | None:
        """The row that a text was kept apart from, and why."""
        if (why := guard.why(vector)) is None:
            return None
        row = int(texts.first_row[corpus.vectors.texts[guard.nearest[vector]]])
        return f"row {row + 1}: {why}"

    def rows() -> Iterator[Answered]:
        for chunk in corpus.source.chunks(0, ROWS_AT_ONCE):
            kept: list[int] = []
            cells: list[Row] = []
            for at, row in enumerate(range(chunk.before, chunk.before + len(chunk.rows))):
                lead = int(leaders[row])
                if lead == row or (lead >= 0 and not only_first):
                    kept.append(at)
                    values_of: list[Any] = [lead + 1, int(sizes[lead]), round(float(closeness[of_row[row]]), 6)]
                    if guard is not None:
                        values_of.append(apart(guard, int(vector_of[of_row[row]])))
                    cells.append(dict(zip(adds, values_of, strict=True)))
            yield Answered(chunk, kept, cells)
            step("writing", (chunk.before + len(chunk.rows)) / len(of_row))

    bad = corpus.without()
    write_output(write_of(output), output, corpus.source, adds, rows, bad)
    if asking.keep is None:
        forget(beside)
    clusters = int((sizes > 0).sum())
    return Deduped(len(of_row), len(texts.first_row), clusters, len(bad), corpus.vectors.model, near.exact, recall)
