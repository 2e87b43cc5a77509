"""Near-duplicates of a file: each row gets the first row of its cluster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semblance.batch.delimited import FileFormat
from semblance.batch.formats import write_of
from semblance.batch.outputs import write_output
from semblance.batch.rows import Answered, Kind, Row
from semblance.corpus.asking import Work
from semblance.corpus.clusters import cluster
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
) -> Deduped:
    """Write a file with each row's cluster: two texts are joined if the cosine of their embeddings is at least `least`,
    and so are texts that are joined to the same one.

    Args:
        work: see there.
        path: .jsonl, .ndjson, .csv, .tsv or .parquet; or .txt, a text a line.
        output: one of these too, but .txt. New columns: `cluster`, the number of the cluster's first row, from 1;
            `cluster_size`, in rows; `cosine` with that first row.
        column: of the texts.
        read_as: encoding and separator of the file.
        least: cosine.
        score: that the second model must give a pair that near, if there is one.
        only_first: write only the first row of each cluster.

    Raises:
        BatchError, SemblanceError: see `place`, `opened` and `read`.
    """
    asking, step = work.asking, work.step
    beside = place(path, output, asking)
    names: dict[str, Kind] = {"cluster": "place", "cluster_size": "place", "cosine": "number"}
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

    joining: Iterable[Near] = found()
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
    of_row = np.asarray(texts.of_row, dtype=np.int64)
    leaders = leader[of_row]
    sizes = np.bincount(leaders[leaders >= 0], minlength=len(of_row))

    def rows() -> Iterator[Answered]:
        for chunk in corpus.source.chunks(0, ROWS_AT_ONCE):
            kept: list[int] = []
            cells: list[Row] = []
            for at, row in enumerate(range(chunk.before, chunk.before + len(chunk.rows))):
                lead = int(leaders[row])
                if lead == row or (lead >= 0 and not only_first):
                    kept.append(at)
                    values_of = (lead + 1, int(sizes[lead]), round(float(closeness[of_row[row]]), 6))
                    cells.append(dict(zip(adds, values_of, strict=True)))
            yield Answered(chunk, kept, cells)
            step("writing", (chunk.before + len(chunk.rows)) / len(of_row))

    bad = corpus.without()
    write_output(write_of(output), output, corpus.source, adds, rows, bad)
    if asking.keep is None:
        forget(beside)
    clusters = int((sizes > 0).sum())
    return Deduped(len(of_row), len(texts.first_row), clusters, len(bad), corpus.vectors.model, near.exact, recall)
