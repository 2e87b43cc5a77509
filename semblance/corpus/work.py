"""What both commands do first: a file's distinct texts, their vectors, and messages about progress."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from semblance.batch.formats import write_of
from semblance.batch.job import Progress
from semblance.batch.rows import BadRow, Say, Source, Step
from semblance.client import AsyncClient
from semblance.corpus import vectors
from semblance.corpus.asking import Asking
from semblance.corpus.texts import Input, Texts, collect, input_of
from semblance.corpus.vectors import Vectors
from semblance.errors import BatchError


@dataclass(frozen=True)
class Corpus:
    """A file whose texts have vectors."""

    source: Source
    texts: Texts
    vectors: Vectors

    def without(self) -> list[tuple[int, BadRow]]:
        """Rows, from 0, without a vector, and why; an empty line is none of them."""
        reasons = ((row, self.texts.bad.get(row) or self.vectors.bad.get(n)) for row, n in enumerate(self.texts.of_row))
        return [(row, reason) for row, reason in reasons if reason is not None]


def opened(path: Path, column: str, adds: Collection[str] = (), option: str = "--column") -> Input:
    """The input, which has this column and none of the new ones, where its columns are known before its rows.

    Raises:
        BatchError: it cannot be read, lacks the column, or has a new one.
        MissingExtra: Parquet, and pyarrow is not installed.
    """
    found = input_of(path, column, option)
    if taken := sorted(set(adds) & set(found.source.columns or ())):
        raise BatchError(f"{path} has a column {taken[0]!r} already: rename it, or choose another --prefix")
    return found


async def read(client: AsyncClient, of: Input, beside: Path, asking: Asking, step: Step, say: Say) -> Corpus:
    """Embed the distinct texts of a column; working files have names that begin with `beside`.

    Raises:
        BatchError: the rows or the model do not fit.
        SemblanceError: the service does not answer; what was embedded is kept for the next time.
    """
    step("reading", 0.0)
    texts = collect(of, beside.with_name(f"{beside.name}.texts.jsonl"))

    def watch(done: Progress) -> None:
        step(f"embedding {done.rows:,} of {len(texts.first_row):,} texts", done.position / max(1, done.total))

    found = await vectors.embed(
        client,
        texts,
        beside.with_name(f"{beside.name}.vectors.parquet"),
        model=asking.model,
        overwrite=asking.overwrite,
        concurrency=asking.concurrency,
        watch=watch,
        say=say,
    )
    return Corpus(of.source, texts, found)


def place(path: Path, output: Path, asking: Asking) -> Path:
    """How names of the working files for an input begin: in the folder that keeps them, or beside the output.

    Raises:
        BatchError: the output exists, is the input, or has no folder or no known suffix.
    """
    if output.exists() and not asking.overwrite:
        raise BatchError(f"{output} exists; --overwrite replaces it")
    if output.resolve() == path.resolve():
        raise BatchError(f"{output} is the input too: name another output")
    write_of(output)
    if not output.parent.is_dir():
        raise BatchError(f"{output}: there is no folder {output.parent}")
    if asking.keep is None:
        return output.with_name(f"{output.name}.{path.stem}")
    asking.keep.mkdir(parents=True, exist_ok=True)
    return asking.keep / path.name


def forget(beside: Path) -> None:
    """Remove the working files."""
    beside.with_name(f"{beside.name}.texts.jsonl").unlink(missing_ok=True)
    vectors.remove(beside.with_name(f"{beside.name}.vectors.parquet"))
