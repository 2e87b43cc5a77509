"""Each claim of a file is held against documents; one row of the output for each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from semblance.client.clients import AsyncClient
from semblance.client.retries import TIMEOUT
from semblance.errors import BatchError, RequestFailed
from semblance.jobs.batch.tasks import changed
from semblance.tables.delimited import FileFormat
from semblance.tables.documents import text_of_file
from semblance.tables.formats import open_column
from semblance.tables.output_file import OutputFile
from semblance.tables.rows import (
    Answered,
    BadRow,
    Chunk,
    Kind,
    Row,
    Say,
    Step,
    columns_of,
    readable,
    refuse_taken,
    text_of,
)
from semblance.types import ClaimPassage, ClaimResult

DOCUMENT = "document"  # a column that says against which document a claim is held
_ADDS: dict[str, Kind] = {
    DOCUMENT: "text",  # of the evidence
    "label": "text",
    "confidence": "number",
    "evidence": "text",
    "heading": "text",
    "start": "integer",
    "end": "integer",
    "differences": "text",
    "against": "text",
}
SHOWN = 5  # problems that are told
ROWS_AT_ONCE = 4096
CLAIMS_AT_ONCE = 25  # of one request, so that a file's progress is seen


@dataclass(frozen=True)
class Checked:
    """How many claims there were, by label."""

    claims: int
    entailed: int
    contradicted: int
    not_stated: int
    skipped: int
    problems: list[str]  # the first of the rows without an answer, and why


@dataclass(frozen=True)
class Claim:
    """A claim of a file: its chunk and place there, and the documents that it is held against, by position."""

    chunk: int
    place: int
    text: str
    documents: tuple[int, ...]


async def check(
    client: AsyncClient,
    documents: Sequence[Path],
    claims: Path,
    output: Path | None,
    column: str,
    read_as: FileFormat,
    *,
    model: str | None = None,
    encoder: str | None = None,
    prefix: str = "",
    overwrite: bool = False,
    quote_formulas: bool = False,
    step: Step = lambda what, share: None,
    say: Say = lambda _: None,
) -> tuple[Checked, list[tuple[str, ClaimResult]]]:
    """Hold the claims of a file against documents.

    Args:
        client: of a service.
        documents: files, .txt, .md, .html or .pdf.
        claims: .jsonl, .ndjson, .csv, .tsv or .parquet; or .txt, a claim a line. A column `document` with the name of a
            file says that a claim is held against that one only.
        output: one of these too, but .txt: the columns of the input, and new ones; None: none is written.
        column: of the claims.
        read_as: encoding of documents and claims, separator of claims.
        model: reads passages with claims.
        encoder: finds the passages.
        prefix: put before the names of the new columns.
        overwrite: replace an output that is there.
        quote_formulas: in CSV and TSV, put an apostrophe before cells that a spreadsheet would run.
        step: is told what is done.
        say: is told how a file is read, a line each.

    Returns:
        How many claims there were, and each with the answer.

    Raises:
        BatchError: a file cannot be read or written, or a claim names none of the documents, or leaves its column
            empty and the answer has no other.
        SemblanceError: the service refuses, or cannot be asked.
    """
    inputs, written = [claims, *documents], None
    if output is not None:
        written = OutputFile(output, inputs, overwrite=overwrite, quote_formulas=quote_formulas)
    else:
        for name, given in (("prefix", prefix), ("quote-formulas", quote_formulas), ("overwrite", overwrite)):
            if given:
                raise BatchError(f"--{name} is for a file that is written: give --output too")
    names = names_of(documents)
    adds = {f"{prefix}{name}": kind for name, kind in _ADDS.items()}
    source = open_column(claims, column, read_as, output=output, more=DOCUMENT)
    columns = columns_of(source)
    if not prefix and DOCUMENT in columns:  # it comes along, and says where the evidence is
        adds.pop(DOCUMENT)
    if written is not None:
        refuse_taken(source, columns, adds)
        written.check(source, lambda row: _claim_of(row, column, names), adds)
    for note in source.notes:
        say(note)
    texts = [text_of_file(path, read_as.encoding, say) for path in documents]
    chunks = list(source.chunks(0, ROWS_AT_ONCE))
    found, bad = _claims_of(chunks, column, names)
    several = next((claim for claim in found if len(claim.documents) > 1), None)
    if written is not None and f"{prefix}{DOCUMENT}" not in adds and several is not None:
        where = f"{claims}: the claim {several.text[:60]!r} names no document"
        raise BatchError(f"{where}, so where its evidence stands would be lost: --prefix gives it a column of its own")
    answers, refused = await _answers(client, found, texts, names, model, encoder, step) if found else ({}, {})
    for claim, why in refused.items():
        chunk = chunks[claim.chunk]
        bad[chunk.before + claim.place] = BadRow(why.code, why.reason, column, chunk.line(claim.place))
    found = [claim for claim in found if claim in answers]
    places = {row: f"row {row + 1}" if why.line is None else f"line {why.line}" for row, why in bad.items()}
    problems = [f"{places[row]}: {why.reason}" for row, why in sorted(bad.items())]
    if not found:
        if problems:
            raise BatchError(f"{claims}, {problems[0]}")
        raise BatchError(f"{claims}: no row has a claim in the column {column!r}")

    def rows() -> Iterator[Answered]:
        for number, chunk in enumerate(chunks):
            own = [claim for claim in found if claim.chunk == number]
            cells = [_cells(adds, prefix, names, answers[claim]) for claim in own]
            yield Answered(chunk, [claim.place for claim in own], cells)

    if written is not None:
        written.write(source, adds, rows, sorted(bad.items()))
    counts = Counter(each.label for each in answers.values())
    counted = Checked(
        len(answers), counts["entailed"], counts["contradicted"], counts["not_stated"], len(bad), problems[:SHOWN]
    )
    return counted, [(claim.text, answers[claim]) for claim in found]


def names_of(documents: Sequence[Path]) -> list[str]:
    """How documents are called: by the names of their files, which differ.

    Raises:
        BatchError: two have one name.
    """
    names = [path.name for path in documents]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise BatchError(f"two documents are called {twice[0]}: rename one, so that evidence can name it")
    return names


def _claims_of(chunks: Sequence[Chunk], column: str, names: Sequence[str]) -> tuple[list[Claim], dict[int, BadRow]]:
    """The claims, and why other rows have none, by row from 0."""
    everywhere = tuple(range(len(names)))
    found: list[Claim] = []
    bad: dict[int, BadRow] = {}
    for number, chunk in enumerate(chunks):
        for place, row in enumerate(chunk.rows):
            if row is None:
                continue
            try:
                text, documents = _claim_of(readable(row), column, names)
                found.append(Claim(number, place, text, documents or everywhere))
            except BadRow as why:
                bad[chunk.before + place] = why.at(chunk.line(place))
    return found, bad


def _claim_of(row: Row, column: str, names: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """The claim of a row, and the document that it names, if any; raises BadRow."""
    return text_of(row.get(column), column).strip(), _against(row, names)


def _against(row: Row, names: Sequence[str]) -> tuple[int, ...]:
    """The document that a row names; empty where it names none."""
    name = row.get(DOCUMENT)
    if name is None or name == "":
        return ()
    if name not in names:
        raise BadRow("no_document", f"no document {str(name)!r} was given, but {', '.join(names)}", DOCUMENT)
    return (names.index(str(name)),)


async def _answers(
    client: AsyncClient,
    claims: Sequence[Claim],
    texts: Sequence[str],
    names: Sequence[str],
    model: str | None,
    encoder: str | None,
    step: Step,
) -> tuple[dict[Claim, ClaimResult], dict[Claim, BadRow]]:
    """The answer to each claim, and why others are refused; those about the same documents are asked together.

    Raises:
        BatchError: a model changed meanwhile.
    """
    answers: dict[Claim, ClaimResult] = {}
    refused: dict[Claim, BadRow] = {}
    served, used, size = await client.models(), set[str](), CLAIMS_AT_ONCE
    for documents in dict.fromkeys(claim.documents for claim in claims):
        own = [claim for claim in claims if claim.documents == documents]
        while part := own[:size]:
            step("checking", len(answers) / len(claims))
            try:
                answer = await client.claims(
                    [texts[i] for i in documents], [claim.text for claim in part], model=model, encoder=encoder
                )
            except RequestFailed as error:
                if error.code == TIMEOUT and len(part) > 1:
                    size = len(part) // 2
                    continue
                place = error.index if (error.field or "").startswith("claims.") else None
                if place is None or place >= len(part):
                    raise _said_of(error, [names[i] for i in documents]) from None
                refused[own.pop(place)] = BadRow(error.code, error.message.removeprefix(f"{error.field}: "))
                continue
            used |= {answer.model, answer.encoder}
            model, encoder = answer.model, answer.encoder  # also where a default changes meanwhile
            for claim, result in zip(part, answer.results, strict=True):
                answers[claim] = _at(result, documents)
            del own[: len(part)]
    if changed(served, await client.models(), used):
        raise BatchError("a model changed while claims were asked, and answers of both are mixed: start again")
    return answers, refused


def _said_of(error: RequestFailed, names: Sequence[str]) -> RequestFailed:
    """An error about one of the documents, which says which."""
    field, _, place = (error.field or "").partition(".")
    if field == "documents" and place.isdecimal() and int(place) < len(names):
        return error.about(f"the document {names[int(place)]}")
    return error


def _at(result: ClaimResult, documents: Sequence[int]) -> ClaimResult:
    """The answer, with documents counted as the command has them."""

    def moved(passage: ClaimPassage) -> ClaimPassage:
        return replace(passage, document=documents[passage.document])

    found = None if result.evidence is None else moved(result.evidence)
    return replace(result, evidence=found, runner_up=moved(result.runner_up))


def _cells(adds: Mapping[str, Kind], prefix: str, names: Sequence[str], result: ClaimResult) -> Row:
    found = result.evidence
    cells: Row = {
        "label": result.label,
        "confidence": round(result.confidence, 6),
        "differences": None if found is None else "; ".join(found.differences) or None,
        "against": result.runner_up.text,
    }
    if found is not None:
        cells |= {
            DOCUMENT: names[found.document],
            "evidence": found.text,
            "heading": " > ".join(found.headings) or None,
            "start": found.start,
            "end": found.end,
        }
    return {name: cells.get(name.removeprefix(prefix)) for name in adds}
