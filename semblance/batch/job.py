"""A batch: read, ask, write, remember; in order, a few chunks ahead, from wherever the last attempt got to."""

import asyncio
import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from semblance.batch.checkpoint import Checkpoint, Files, load
from semblance.batch.sources import PARQUET, Chunk, Row, Source, Unreadable, open_source
from semblance.batch.stores import AppendOnly, Store, open_store
from semblance.batch.tasks import BadRow, Options, Task, make_task
from semblance.client import AsyncClient
from semblance.errors import BatchError, RequestFailed

ROWS_AT_ONCE = 256  # of a chunk, if a request may carry as many
ROWS_OF_SINGLE_REQUESTS = 16  # of a chunk whose rows are a request each


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    position: int  # of total, in bytes or rows of the input
    total: int
    rows: int
    skipped: int


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """A chunk's answers, by their place in it; of every other row why it has none."""

    chunk: Chunk
    cells: dict[int, Row]
    bad: dict[int, BadRow]


async def run_batch(
    client: AsyncClient,
    source_path: Path,
    output: Path,
    options: Options,
    *,
    overwrite: bool = False,
    concurrency: int = 4,
    every: float = 1.0,
    watch: Watch = lambda _: None,
) -> Progress:
    """Ask about every row of a file and write the output; begun again after an interruption, it goes on.

    Args:
        client: whom to ask.
        source_path: .jsonl, .ndjson, .csv, .tsv or .parquet.
        output: one of these too, not necessarily the same.
        options: what to ask.
        overwrite: begin again, and replace an output that is there.
        concurrency: how many chunks are under way at once.
        every: seconds between checkpoints; a killed batch repeats no more than that.
        watch: told after every chunk.

    Returns:
        The last word to `watch`.

    Raises:
        BatchError: files, columns, model or checkpoint do not fit.
        SemblanceError: the service does not answer; what is done stays done.
    """
    files = Files(output)
    source = open_source(source_path, list(options.columns) if output.suffix.lower() in PARQUET else None)
    models = await client.models()
    task = make_task(options, models)
    adds = {f"{options.prefix}{name}": kind for name, kind in task.adds.items()}
    _check_columns(source, task, list(adds))
    store = open_store(output, source.columns, getattr(source, "schema", None), adds)
    checkpoint = _begin(files, _identity(source_path, output, options, task), overwrite)
    if not checkpoint.complete:
        with closing(_Writer(files, checkpoint, store, options.prefix, every)) as writer:
            try:
                await _ask_all(client, source, task, writer, concurrency, watch)
            except BaseException:
                writer.save()
                raise
            writer.save(complete=True)
            checkpoint = writer.done
    store.finish(files)
    if not files.output.exists():
        raise BatchError(f"{files.output} was finished, but is gone; --overwrite begins again")
    if files.errors.exists() and not files.errors.stat().st_size:
        files.errors.unlink()
    files.checkpoint.unlink()
    return Progress(source.total, source.total, checkpoint.rows, checkpoint.skipped)


def _begin(files: Files, identity: dict[str, Any], overwrite: bool) -> Checkpoint:
    """Where to go on: the checkpoint of this batch, or the first row."""
    if overwrite:
        files.checkpoint.unlink(missing_ok=True)
    found = load(files.checkpoint, identity)
    if found is None and files.output.exists() and not overwrite:
        raise BatchError(f"{files.output} exists; --overwrite replaces it")
    return found or Checkpoint(identity)


async def _ask_all(
    client: AsyncClient, source: Source, task: Task, writer: "_Writer", concurrency: int, watch: Watch
) -> None:
    size = min(ROWS_AT_ONCE, task.rows_at_once) if task.rows_at_once > 1 else ROWS_OF_SINGLE_REQUESTS
    asking: deque[asyncio.Task[Answered]] = deque()

    async def write_one() -> None:
        answered = await asking.popleft()
        writer.write(answered)
        watch(Progress(answered.chunk.position, source.total, writer.done.rows, writer.done.skipped))

    try:
        for chunk in source.chunks(writer.done.rows, size):
            asking.append(asyncio.ensure_future(_answer(client, task, chunk)))
            if len(asking) >= concurrency:
                await write_one()
        while asking:
            await write_one()
    finally:
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


class _Writer:
    """What is on disk, and the checkpoint that says so."""

    def __init__(self, files: Files, begun: Checkpoint, store: Store, prefix: str, every: float) -> None:
        """Cut both files back to the checkpoint.

        Raises:
            BatchError: another batch is writing them, or they are shorter than it says.
        """
        self.done = begun
        self._files, self._store, self._prefix, self._every = files, store, prefix, every
        with ExitStack() as opened:
            self._partial = opened.enter_context(closing(AppendOnly(files.partial, begun.partial_bytes)))
            self._errors = opened.enter_context(closing(AppendOnly(files.errors, begun.errors_bytes)))
            self._opened = opened.pop_all()
        self._saved = -math.inf

    def write(self, answered: Answered) -> None:
        """Append a chunk's rows; once in a while wait for the disk, and say so."""
        chunk, kept = answered.chunk, sorted(answered.cells)
        cells = [{f"{self._prefix}{name}": cell for name, cell in answered.cells[place].items()} for place in kept]
        self._partial.append(self._store.pack(chunk, kept, cells))
        self._errors.append(b"".join(_error_lines(answered)))
        self.done = replace(
            self.done,
            rows=chunk.before + len(chunk.rows),
            skipped=self.done.skipped + len(answered.bad),
            partial_bytes=self._partial.size,
            errors_bytes=self._errors.size,
        )
        if monotonic() - self._saved >= self._every:
            self.save()

    def save(self, *, complete: bool = False) -> None:
        """Write the checkpoint, after what it counts is on disk."""
        self._partial.sync()
        self._errors.sync()
        replace(self.done, complete=complete).save(self._files.checkpoint)
        self._saved = monotonic()

    def close(self) -> None:
        """Close both files."""
        self._opened.close()


async def _answer(client: AsyncClient, task: Task, chunk: Chunk) -> Answered:
    """Ask about the rows of a chunk; those that get no answer are known by their reasons."""
    answered = Answered(chunk, {}, {})
    items: list[tuple[int, Any]] = []
    for place, row in enumerate(chunk.rows):
        if isinstance(row, Unreadable):
            answered.bad[place] = BadRow("unreadable", row.reason)
        elif row is not None:
            try:
                items.append((place, task.item(_free(row, task))))
            except BadRow as bad:
                answered.bad[place] = bad
    at_once = task.rows_at_once
    for i in range(0, len(items), at_once):
        await _ask(client, task, items[i : i + at_once], answered)
    return answered


def _free(row: Row, task: Task) -> Row:
    """The row, if it has none of the columns that its answer will bring; raises BadRow."""
    for name in task.adds:
        if (column := f"{task.options.prefix}{name}") in row:
            raise BadRow("column_taken", "the answer's column is there already; --prefix renames it", column)
    return row


async def _ask(client: AsyncClient, task: Task, items: list[tuple[int, Any]], answered: Answered) -> None:
    """One request; where some of its rows are at fault, again without them, or in halves to find them."""
    while items:
        try:
            cells = await task.ask(client, [item for _, item in items])
        except RequestFailed as error:
            bad = task.blamed(error)
            if bad is None:
                raise
            guilty = 0 if len(items) == 1 else error.index
            if guilty is None:
                middle = len(items) // 2
                await _ask(client, task, items[:middle], answered)
                items = items[middle:]
            else:
                place, _ = items.pop(guilty)
                answered.bad[place] = bad
        else:
            answered.cells.update({place: answer for (place, _), answer in zip(items, cells, strict=True)})
            return


def _error_lines(answered: Answered) -> Iterator[bytes]:
    for place, bad in sorted(answered.bad.items()):
        line = {
            "row": answered.chunk.before + place + 1,
            "column": bad.column,
            "code": bad.code,
            "reason": bad.reason,
        }
        yield json.dumps(line).encode() + b"\n"


def _check_columns(source: Source, task: Task, adds: list[str]) -> None:
    """Whether the input has what is read, and not yet what is added; raises BatchError."""
    columns = source.columns
    if columns is None:  # nothing but the first row says it
        first = next(source.chunks(0, 1), None)
        row = first.rows[0] if first else None
        if not isinstance(row, dict):
            return
        columns = list(row)
    for name in task.columns:
        if name not in columns:
            raise BatchError(f"there is no column {name!r}, but {', '.join(map(repr, columns))}; --column names others")
    if taken := sorted({*columns} & {*adds}):
        raise BatchError(f"the input has a column {taken[0]!r} already: --prefix renames the new ones")


def _identity(source: Path, output: Path, options: Options, task: Task) -> dict[str, Any]:
    """What must be the same for a batch to go on, as JSON would have it."""
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "input": {"sha256": digest, "suffix": source.suffix.lower()},
        "output": output.suffix.lower(),
        **json.loads(json.dumps(asdict(options))),
        "model": task.model.id,
        "fingerprints": [model.fingerprint for model in (task.model, task.second) if model],
    }
