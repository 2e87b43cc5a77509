"""What comes first: a file's distinct texts, and their vectors."""

from dataclasses import dataclass
from pathlib import Path

from semblance.errors import BatchError
from semblance.jobs.dedupe import vectors
from semblance.jobs.dedupe.options import CorpusOptions, CorpusSession
from semblance.jobs.dedupe.review import apart_path, refuse_loss, review_path
from semblance.jobs.dedupe.texts import DistinctTexts, Input, collect
from semblance.jobs.dedupe.vectors import CorpusVectors
from semblance.tables.formats import write_of
from semblance.tables.outputs import errors_of, refuse_input, unfinished_of
from semblance.tables.rows import BadRow, RowSource


@dataclass(frozen=True)
class EmbeddedCorpus:
    """A file whose texts have vectors."""

    source: RowSource
    texts: DistinctTexts
    vectors: CorpusVectors

    def first_row(self, vector: int) -> int:
        """The first row, from 0, that has the text of a vector."""
        return int(self.texts.first_row[int(self.vectors.texts[vector])])

    def without(self) -> list[tuple[int, BadRow]]:
        """Rows, from 0, without a vector, and why; an empty line is none of them."""
        reasons = ((row, self.texts.bad.get(row) or self.vectors.bad.get(n)) for row, n in enumerate(self.texts.of_row))
        lines = self.texts.line_of_row
        return [(row, reason.at(lines[row] if lines else None)) for row, reason in reasons if reason is not None]


async def read(work: CorpusSession, of: Input, beside: Path) -> EmbeddedCorpus:
    """Embed the distinct texts of a column; working files have names that begin with `beside`.

    Raises:
        BatchError: the rows or the model do not fit.
        SemblanceError: the service does not answer; what was embedded is kept for the next time.
    """
    for note in of.source.notes:
        work.say(note)
    work.step("reading", 0.0)
    texts = collect(of, beside.with_name(f"{beside.name}.texts.jsonl"))
    found = await vectors.embed(work, texts, beside.with_name(f"{beside.name}.vectors.parquet"))
    return EmbeddedCorpus(of.source, texts, found)


def place(path: Path, output: Path, asking: CorpusOptions, reviewed: Path | None) -> Path:
    """How names of the working files for an input begin: in the folder that keeps them, or beside the output.

    Raises:
        BatchError: the output exists, is an input, or has no folder or no known suffix; or a file of pairs exists that
            a person has worked on, other than `reviewed`.
    """
    if output.exists() and not asking.overwrite:
        raise BatchError(f"{output} exists; --overwrite replaces it")
    if path.exists():
        refuse_input(path, output, errors_of(output), unfinished_of(output), review_path(output), apart_path(output))
    write_of(output, quote_formulas=asking.quote_formulas)
    for pairs in (review_path(output), apart_path(output)):
        refuse_loss(pairs, reviewed, overwrite=asking.overwrite)
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
