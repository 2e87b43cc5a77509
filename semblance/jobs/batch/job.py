"""Runs a batch: reads chunks, requests answers a few chunks ahead, records them in order, writes the output at the end.

A fixed number of chunks is under way. Chunks are small, so that with a slow model too some rows are answered, and kept,
every few seconds.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from semblance.client.clients import AsyncClient
from semblance.errors import BatchError
from semblance.jobs.batch.journal import Journal
from semblance.jobs.batch.tasks import BatchOptions, Task, ask_rows, changed, make_task
from semblance.tables.delimited import FileFormat
from semblance.tables.formats import AS_FOUND, PARQUET, open_source
from semblance.tables.output_file import OutputFile
from semblance.tables.rows import Answered, BadRow, Chunk, Outcome, RowSource, Say, columns_of, no_column, refuse_taken

ROWS_AT_ONCE = 64  # of a chunk, at most
ROWS_OF_REQUESTS = 16  # of a chunk in which each row is a request
ROWS_WRITTEN = 16_384  # at a time


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The progress of a batch."""

    position: int  # of total, in bytes or rows of the input
    total: int
    rows: int
    skipped: int


Watch = Callable[[BatchProgress], None]


def partial_of(output: Path) -> Path:
    """The file in which the progress towards an output is."""
    return output.parent / f"{output.name}.partial"  # of an output without a name, too, which is refused then


async def run_batch(
    client: AsyncClient,
    source_path: Path,
    output: Path,
    options: BatchOptions,
    *,
    read_as: FileFormat = AS_FOUND,
    overwrite: bool = False,
    quote_formulas: bool = False,
    concurrency: int = 4,
    watch: Watch = lambda _: None,
    say: Say = lambda _: None,
) -> BatchProgress:
    """Request an answer for every row of a file and write the output; resumes after an interruption.

    Args:
        client: sends the requests; `Retries` of a batch say how long a busy service is asked.
        source_path: .jsonl, .ndjson, .csv, .tsv or .parquet.
        output: the same suffixes; may differ from the input's.
        options: task, columns, model.
        read_as: encoding and separator of the input.
        overwrite: replace an existing output, and the progress of another batch.
        quote_formulas: put an apostrophe before cells that a spreadsheet would run.
        concurrency: chunks in flight at once.
        watch: called after every chunk.
        say: called with messages for the user, one line each.

    Returns:
        The final progress.

    Raises:
        BatchError: files, columns, model or progress do not fit; or the input changed while it was read, or the model
            while it was asked.
        SemblanceError: the service does not answer, or is too busy; progress is kept.
    """
    progress = partial_of(output)
    written = OutputFile(
        output,
        [source_path],
        overwrite=overwrite,
        resumed=progress.exists(),
        others=[progress],
        quote_formulas=quote_formulas,
    )
    needed = list(options.columns) if output.suffix.lower() in PARQUET else None
    source = open_source(source_path, needed, read_as=read_as)
    for note in source.notes:
        say(note)
    served = await client.models()
    task = make_task(options, served)
    _check_columns(source, task)
    adds = {f"{options.prefix}{name}": kind for name, kind in task.adds.items()}
    written.check(source, task.item, adds)
    identity = _identity(source, source_path.suffix, read_as, output, options, task)
    with closing(Journal(progress, identity, overwrite=overwrite)) as journal:
        if next(source.chunks(journal.rows, 1), None):  # else what is there may be of this batch, which was killed then
            written.refuse_earlier()
        await _ask_all(client, source, task, journal, concurrency, watch)
        if changed(served, await client.models(), [model.id for model in task.used]):
            journal.path.unlink()
            raise BatchError("the model changed while rows were asked, and answers of both are mixed: start again")
        bad = ((row, each) for row, each in enumerate(journal.outcomes()) if isinstance(each, BadRow))
        written.write(source, adds, lambda: _answered(source, journal, options.prefix), bad)
        journal.path.unlink()
        return BatchProgress(source.total, source.total, journal.rows - journal.empty, journal.skipped)


def _answered(source: RowSource, journal: Journal, prefix: str) -> Iterator[Answered]:
    """The rows that have answers, from the first on."""
    outcomes = journal.outcomes()
    for chunk in source.chunks(0, ROWS_WRITTEN):
        of_chunk = list(islice(outcomes, len(chunk.rows)))
        kept = [place for place, each in enumerate(of_chunk) if isinstance(each, dict)]
        cells = [
            {f"{prefix}{name}": cell for name, cell in each.items()} for each in of_chunk if isinstance(each, dict)
        ]
        yield Answered(chunk, kept, cells)


async def _ask_all(
    client: AsyncClient, source: RowSource, task: Task, journal: Journal, concurrency: int, watch: Watch
) -> None:
    size = min(ROWS_AT_ONCE, task.rows_at_once) if task.rows_at_once > 1 else ROWS_OF_REQUESTS
    asking: deque[tuple[Chunk, asyncio.Task[list[Outcome]]]] = deque()

    async def record_one() -> None:
        chunk, answers = asking.popleft()
        journal.append(await answers)
        watch(BatchProgress(chunk.position, source.total, journal.rows - journal.empty, journal.skipped))

    try:
        for chunk in source.chunks(journal.rows, size):
            asking.append((chunk, asyncio.ensure_future(_answer(client, task, chunk))))
            if len(asking) >= concurrency:
                await record_one()
        while asking:
            await record_one()
    finally:
        for _, one in asking:
            one.cancel()
        await asyncio.gather(*(one for _, one in asking), return_exceptions=True)


async def _answer(client: AsyncClient, task: Task, chunk: Chunk) -> list[Outcome]:
    """What becomes of each row of a chunk."""
    rows = [(place, row) for place, row in enumerate(chunk.rows) if row is not None]
    cells, bad = await ask_rows(client, task, rows)
    placed = {place: why.at(chunk.line(place)) for place, why in bad.items()}
    return [cells.get(place) or placed.get(place) for place in range(len(chunk.rows))]


def _check_columns(source: RowSource, task: Task) -> None:
    """Look that the input has the columns that the task reads, and none of the new ones; raises BatchError."""
    columns = columns_of(source)
    for name in task.columns if columns else ():
        if name not in columns:
            raise no_column(source, name, columns)
    refuse_taken(source, columns, (f"{task.options.prefix}{name}" for name in task.adds))


def _identity(
    source: RowSource, suffix: str, read_as: FileFormat, output: Path, options: BatchOptions, task: Task
) -> dict[str, Any]:
    """What must be unchanged for a batch to resume, as JSON values."""
    return {
        "input": {"sha256": source.file.sha256, "suffix": suffix.lower()},
        **{name: value for name, value in asdict(read_as).items() if value is not None},
        "output": output.suffix.lower(),
        **json.loads(json.dumps(asdict(options))),
        "model": task.model.id,
        "fingerprints": list(task.fingerprints),
    }
