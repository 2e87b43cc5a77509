"""The texts of one file that are nearest to each text of another."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semblance.batch.delimited import FileFormat
from semblance.batch.formats import write_of
from semblance.batch.outputs import write_output
from semblance.batch.rows import Answered, Kind, Row
from semblance.corpus.neighbours import Neighbours
from semblance.corpus.options import CorpusSession
from semblance.corpus.reading import scores
from semblance.corpus.texts import NO_TEXT, ROWS_AT_ONCE, opened
from semblance.corpus.work import forget, place, read


@dataclass(frozen=True)
class SearchSummary:
    """Counts of the rows and queries that were searched."""

    queries: int
    rows: int  # of the corpus
    texts: int  # distinct ones of the corpus
    skipped: int  # queries
    left_out: int  # rows of the corpus without a text that can be embedded
    model: str
    exact: bool
    recall: float  # of the nearest, on a sample


async def search(
    work: CorpusSession,
    corpus_path: Path,
    queries_path: Path,
    output: Path,
    columns: tuple[str, str],
    read_as: FileFormat,
    *,
    count: int,
    least: float,
    score: float,
) -> SearchSummary:
    """Write, for each query, its nearest texts of the corpus: one row of the output for each.

    Args:
        work: see there.
        corpus_path: .jsonl, .ndjson, .csv, .tsv or .parquet; or .txt, a text a line.
        queries_path: likewise.
        output: one of these too, but .txt: the columns of the query, and new ones: `rank` from 1; `row`, the number of
            the first row of the corpus with that text, from 1; `match`, the text; `cosine`; the second model's `score`.
        columns: of the corpus' texts, and of the queries.
        read_as: encoding and separator of both files.
        count: most texts of a query.
        least: cosine of those given.
        score: that the second model, which orders what was found, must give a text, if there is one.

    Raises:
        BatchError, SemblanceError: see `place`, `opened` and `read`.
    """
    asking, step = work.asking, work.step
    names: dict[str, Kind] = {"rank": "place", "row": "place", "match": "text", "cosine": "number"}
    names |= {"score": "number"} if asking.rerank is not None else {}
    adds = {f"{asking.prefix}{name}": kind for name, kind in names.items()}
    beside = place(corpus_path, output, asking, queries_path)
    beside_queries = output.with_name(f"{output.name}.queries")
    sources = (
        opened(corpus_path, columns[0], read_as),
        opened(queries_path, columns[1], read_as, adds, "--query-column"),
    )
    await work.check()
    # The shorter file first: what is wrong with it is told before a long corpus is embedded.
    queries = await read(work, sources[1], beside_queries)
    corpus = await read(work, sources[0], beside)
    step("indexing", 0.0)
    near = Neighbours(corpus.vectors.values, exact=asking.exact)
    step("searching", 0.0)
    parts = list(near.best(queries.vectors.values, count))
    rows, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
    recall = near.recall_of_best(queries.vectors.values, min(count, len(corpus.vectors.values)))
    numbers = corpus.vectors.texts
    given = (rows >= 0) & (cosines >= least)
    text_of = corpus.texts.read(numbers[np.unique(rows[given])].tolist())
    score_of = np.full(rows.shape, np.nan)
    if asking.rerank is not None:
        asked = queries.texts.read(queries.vectors.texts.tolist())
        pairs = [
            (asked[int(queries.vectors.texts[query])], text_of[int(numbers[rows[query, hit]])])
            for query, hit in np.argwhere(given)
        ]
        score_of[given] = await scores(work, pairs, beside)
        given &= score_of >= score
        order = np.argsort(np.where(given, -score_of, np.inf), axis=1, kind="stable")
        rows, cosines, score_of, given = (np.take_along_axis(x, order, 1) for x in (rows, cosines, score_of, given))
    vector_of = np.full(len(queries.texts.first_row) + 1, NO_TEXT, dtype=np.int64)
    vector_of[queries.vectors.texts] = np.arange(len(queries.vectors.texts))
    first_row = np.asarray(corpus.texts.first_row)[numbers]

    def found() -> Iterator[Answered]:
        for chunk in queries.source.chunks(0, ROWS_AT_ONCE):
            kept: list[int] = []
            cells: list[Row] = []
            for at in range(len(chunk.rows)):
                if (vector := int(vector_of[queries.texts.of_row[chunk.before + at]])) < 0:
                    continue
                for rank, hit in enumerate(np.flatnonzero(given[vector]), 1):
                    row, cosine = int(rows[vector, hit]), min(float(cosines[vector, hit]), 1.0)
                    values = [rank, int(first_row[row]) + 1, text_of[int(numbers[row])], round(cosine, 6)]
                    values += [] if asking.rerank is None else [round(float(score_of[vector, hit]), 6)]
                    kept.append(at)
                    cells.append(dict(zip(adds, values, strict=True)))
            yield Answered(chunk, kept, cells)
            step("writing", chunk.position / max(1, queries.source.total))

    bad = queries.without()
    write_output(write_of(output), output, queries.source, adds, found, bad)
    forget(beside_queries)
    if asking.keep is None:
        forget(beside)
    return SearchSummary(
        len(queries.texts.of_row),
        len(corpus.texts.of_row),
        len(corpus.texts.first_row),
        len(bad),
        len(corpus.without()),
        corpus.vectors.model,
        near.exact,
        recall,
    )
