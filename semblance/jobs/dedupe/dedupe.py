"""Near-duplicates of a file: each row gets the number of its cluster's first row, its leader."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from core.duplicates import (
    JOINED_FROM,
    LISTED,
    MIN_COSINE,
    READ_NEAREST,
    DuplicateDecision,
    Indices,
    Judged,
    find_candidates,
    left_apart,
    probability,
    questions,
)
from core.facts import facts_of
from core.groups import ContradictoryAnswers, KeptApart, Pair
from core.same_words import same_words
from semblance.errors import BatchError
from semblance.jobs.batch.tasks import find_model
from semblance.jobs.dedupe.corpus import MISSING, ROWS_AT_ONCE, EmbeddedCorpus, embed_corpus, remove_working_files
from semblance.jobs.dedupe.neighbours import EXACT_ROWS, nearest_of
from semblance.jobs.dedupe.review import (
    ReviewedPair,
    ReviewRow,
    apart_path,
    check_no_answers_lost,
    read_review,
    review_path,
    writing_review,
)
from semblance.jobs.dedupe.session import DedupeSession
from semblance.tables.formats import open_column
from semblance.tables.input_file import InputFile
from semblance.tables.output_file import OutputFile
from semblance.tables.rows import Answered, Kind, Row, Step, text_of

LARGE_FILE_COSINE = 0.9  # threshold of files with more than `EXACT_ROWS` texts
MARGIN = 0.1  # below the threshold: pairs so near still count in the mean of two clusters


@dataclass(frozen=True)
class DedupeSummary:
    """The result of a deduplication, as it is printed."""

    rows: int
    texts: int  # with different words
    clusters: int
    skipped: int
    model: str
    recall: float  # of near pairs, on a sample; 1 where all were compared
    largest: int  # rows of the largest cluster
    largest_first: int  # its first row, from 1
    chosen: Sequence[str]  # how pairs were judged: lines for people
    review: str | None  # the file of pairs to review
    apart: str | None  # the file of near pairs that were not joined


async def dedupe(session: DedupeSession) -> DedupeSummary:
    """Write a file with each row's cluster.

    The output has new columns: `cluster`, the number of the cluster's first row, from 1; `cluster_size`, in rows;
    `cosine` with that first row; `kept_apart`, the nearest row that differs in a fact, and how.

    Raises:
        BatchError: a file cannot be read or written, answers of a review do not fit it, or another run has its working
            files.
        SemblanceError: the service does not answer; what was embedded is kept for the next time.
    """
    options, path, output = session.options, session.path, session.output
    files = (review_path(output), apart_path(output))
    written = OutputFile(
        output, [path], overwrite=options.overwrite, others=files, quote_formulas=options.quote_formulas
    )
    if options.reviewed is not None:  # which may be one of the files of pairs
        OutputFile(output, [options.reviewed], overwrite=options.overwrite)
    for file in files:
        check_no_answers_lost(file, options.reviewed, overwrite=options.overwrite)
    if options.cosine is not None and options.pair_model is not None:
        raise BatchError("--rerank is for near pairs that a model reads, not for --cosine")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    with session.alone():
        return await _dedupe(session, written, files)


async def _dedupe(session: DedupeSession, written: OutputFile, files: tuple[Path, Path]) -> DedupeSummary:
    options, path, step = session.options, session.path, session.step
    names: dict[str, Kind] = {"cluster": "integer", "cluster_size": "integer", "cosine": "number"}
    names |= {"kept_apart": "text"} if options.guard else {}
    adds = {f"{options.prefix}{name}": kind for name, kind in names.items()}
    source = open_column(path, options.column, options.read_as, adds, output=session.output)
    written.check(source, lambda row: text_of(row.get(options.column), options.column), adds)
    reviewed = None if options.reviewed is None else _opened(options.reviewed)
    given = [] if reviewed is None else read_review(reviewed.path)
    pair_model = None if options.cosine is not None else await _pair_model(session)
    corpus = await embed_corpus(session, source)
    bad = corpus.without_vector()
    if not len(corpus.vectors.texts):
        remove_working_files(session)
        row, why = bad[0]
        raise BatchError(f"{path}: no row has a text that can be compared; row {row + 1}: {why.reason}")
    found = await _decide(session, corpus, given, pair_model)
    clusters = RowClusters(corpus, found.leaders, found.apart)
    for file in files:  # a person may have answered while the models read
        check_no_answers_lost(file, options.reviewed, overwrite=options.overwrite)
    if reviewed is not None:
        reviewed.check()
    pairs_of = dict(zip(files, (found.to_review, found.left_apart), strict=True))
    with ExitStack() as together:  # a full disk leaves none of them
        for file, judged in pairs_of.items():
            if judged:
                pairs = [_review_row(each, found, corpus) for each in judged]
                together.enter_context(writing_review(file, pairs, quote_formulas=options.quote_formulas))
        written.write(source, adds, lambda: clusters.rows(adds, step, only_first=options.only_first), bad)
    for file, judged in pairs_of.items():
        if not judged:
            file.unlink(missing_ok=True)
    if options.keep is None:
        remove_working_files(session)
    largest = int(clusters.sizes.argmax())
    review, apart = (str(file) if file.exists() else None for file in files)
    return DedupeSummary(
        rows=len(clusters.leaders),
        texts=len(corpus.texts.first_row),
        clusters=int((clusters.sizes > 0).sum()),
        skipped=len(bad),
        model=corpus.vectors.model,
        recall=found.recall,
        largest=int(clusters.sizes[largest]),
        largest_first=largest + 1,
        chosen=found.reasons,
        review=review,
        apart=apart,
    )


def _opened(path: Path) -> InputFile:
    try:
        return InputFile(path)
    except OSError as error:
        raise BatchError(f"{path}: {error.strerror or error}") from error


async def _pair_model(session: DedupeSession) -> str | None:
    """The model that reads near pairs; None: no model that is served can.

    Raises:
        BatchError: the one that the user names lacks paraphrase or entailment.
    """
    models = await session.client.models()
    if (named := session.options.pair_model) is not None:
        for task in ("paraphrase", "entailment"):
            found = find_model(models, named, task)
        return found.id
    able = (model.id for model in models.models if model.main and {"paraphrase", "entailment"} <= {*model.tasks})
    return next(able, None)


class TextClusters(NamedTuple):
    """Which of the N embedded texts are duplicates of each other.

    Attributes:
        texts: [N].
        leaders: of each that of its cluster whose row comes first, [N].
        apart: of a text the nearest row that differs in a fact, and how; None: nothing was kept apart so.
        answers: of a person, by pairs of texts.
        to_review: pairs on which a verdict is least sure, and those that a person has answered, which are all where
            cosines alone decide.
        left_apart: other near pairs that were not joined.
        recall: of near pairs, on a sample; 1 where all were compared.
        reasons: how pairs were judged: lines for people.
    """

    texts: Sequence[str]
    leaders: Sequence[int]
    apart: Mapping[int, str] | None
    answers: Mapping[Pair, bool]
    to_review: Sequence[Judged]
    left_apart: Sequence[Judged]
    recall: float
    reasons: Sequence[str]


async def _decide(
    session: DedupeSession, corpus: EmbeddedCorpus, reviewed: Sequence[ReviewedPair], pair_model: str | None
) -> TextClusters:
    """Which texts are duplicates, by a person's answers, by their cosines, and by the model that reads pairs."""
    values, numbers, cosine = corpus.vectors.values, corpus.vectors.texts.tolist(), session.options.cosine
    known = corpus.texts.read(numbers)
    texts = [known[number] for number in numbers]
    words = [same_words(text).split() for text in texts]
    answers = _answers(reviewed, corpus, words)
    if cosine is None and len(values) > EXACT_ROWS:
        cosine, pair_model = LARGE_FILE_COSINE, None
    session.step(f"comparing {len(values):,} texts", 0.0)
    kept_apart = KeptApart([facts_of(text) for text in texts]) if session.options.guard else None
    least = MIN_COSINE if cosine is None else cosine - MARGIN
    nearest, recall = nearest_of(values, LISTED, max(least, 0.0))
    if cosine is None:
        duplicates = DuplicateDecision(words, find_candidates(nearest), kept_apart)
        joined_from = JOINED_FROM
    else:
        candidates = find_candidates(nearest, least)
        duplicates = DuplicateDecision(words, candidates, kept_apart, LISTED)
        joined_from = probability(cosine, None, nearest=True)
    readings = None
    if pair_model is not None:
        pairs = [duplicates.candidates[i].pair for i in duplicates.to_read]
        readings = await session.read_pairs([(texts[a], texts[b]) for a, b in pairs], pair_model) if pairs else []
    try:
        groups, judged = duplicates.decide(readings, answers, joined_from)
    except ContradictoryAnswers as error:
        rows = " and ".join(map(str, sorted(corpus.first_row(text) + 1 for text in error.pair)))
        raise BatchError(
            f"--reviewed: one answer says that rows {rows} differ, others imply that they say the same"
        ) from None
    to_review, others = _answered(answers, judged), list[Judged]()
    if cosine is None:
        asked = questions(judged, len(texts), joined_from)
        to_review = [*(each for each in asked if each.pair not in answers), *to_review]
        others = left_apart(judged, to_review)
    first: dict[int, int] = {}
    for text in sorted(range(len(texts)), key=corpus.first_row):
        first.setdefault(groups[text], text)
    leaders = [first[group] for group in groups]
    apart = None if kept_apart is None else _kept_apart(duplicates, corpus)
    reasons = _reasons(cosine, pair_model, duplicates, len(answers))
    return TextClusters(texts, leaders, apart, answers, to_review, others, recall, reasons)


class RowClusters:
    """The clusters of a file's rows, from those of its embedded texts.

    Attributes:
        leaders: of each row the first row of its cluster, [R]; below 0 where a row has no text.
        sizes: rows of the cluster that each row leads, [R].
    """

    def __init__(self, corpus: EmbeddedCorpus, text_leaders: Sequence[int], apart: Mapping[int, str] | None) -> None:
        """Map the clusters of embedded texts [N] to distinct texts, and these to rows.

        Args:
            corpus: the file, its texts and their vectors.
            text_leaders: of each embedded text that of its cluster whose row comes first, [N].
            apart: of an embedded text, what `kept_apart` says; None: there is no such column.
        """
        self._corpus, self._apart = corpus, apart
        texts, embedded = corpus.texts, corpus.vectors.texts
        values, leading = corpus.vectors.values, np.asarray(text_leaders, dtype=np.int64)
        self._of_row = np.asarray(texts.of_row, dtype=np.int64)
        count = len(texts.first_row) + 1  # the last is that of rows without a text
        leader = np.full(count, MISSING, dtype=np.int64)
        leader[embedded] = np.asarray(texts.first_row)[embedded[leading]]
        self._cosines = np.zeros(count, dtype=np.float32)
        self._cosines[embedded] = np.minimum(np.einsum("nd,nd->n", values, values[leading]), 1.0)
        self._vector_of = np.full(count, MISSING, dtype=np.int64)
        self._vector_of[embedded] = np.arange(len(values))
        self.leaders: Indices = leader[self._of_row]
        self.sizes = np.bincount(self.leaders[self.leaders >= 0], minlength=len(self._of_row))

    def rows(self, columns: Iterable[str], step: Step, *, only_first: bool) -> Iterator[Answered]:
        """The rows to write with their new cells, chunk by chunk."""
        for chunk in self._corpus.source.chunks(0, ROWS_AT_ONCE):
            written: list[int] = []
            cells: list[Row] = []
            for at, row in enumerate(range(chunk.before, chunk.before + len(chunk.rows))):
                leader = int(self.leaders[row])
                if leader == row or (leader >= 0 and not only_first):
                    written.append(at)
                    cells.append(dict(zip(columns, self._cells(row, leader), strict=True)))
            yield Answered(chunk, written, cells)
            step("writing", (chunk.before + len(chunk.rows)) / len(self._of_row))

    def _cells(self, row: int, leader: int) -> list[Any]:
        text = self._of_row[row]
        cells: list[Any] = [leader + 1, int(self.sizes[leader]), round(float(self._cosines[text]), 6)]
        if self._apart is not None:
            cells.append(self._apart.get(int(self._vector_of[text])))
        return cells


def _kept_apart(duplicates: DuplicateDecision, corpus: EmbeddedCorpus) -> dict[int, str]:
    """Of each text the nearest one that differs in a fact, and how."""
    nearest = duplicates.nearest_apart()
    return {text: f"row {corpus.first_row(other) + 1}: {says}" for text, (other, says) in nearest.items()}


def _answers(
    reviewed: Sequence[ReviewedPair], corpus: EmbeddedCorpus, words: Sequence[Sequence[str]]
) -> dict[Pair, bool]:
    """A person's answers, by pairs of texts.

    Raises:
        BatchError: a text is not the one of its row, so that the review is of another file; two rows that should
            differ have the same words; or two answers of the same pair differ.
    """
    vector_of = {int(text): vector for vector, text in enumerate(corpus.vectors.texts)}
    of_row = corpus.texts.of_row
    found: dict[Pair, bool] = {}
    for answer in reviewed:
        a, b = (vector_of.get(of_row[row]) if 0 <= row < len(of_row) else None for row in answer.rows)
        if a is None or b is None or not all(map(_has_words, answer.texts, (words[a], words[b]))):
            raise BatchError(f"--reviewed: line {answer.line} is of another file: its texts are not those of its rows")
        if a == b:
            if answer.same:
                continue
            raise BatchError(f"--reviewed: line {answer.line}: both rows have the same words, and so are the same")
        if found.setdefault((min(a, b), max(a, b)), answer.same) != answer.same:
            raise BatchError(f"--reviewed: line {answer.line} contradicts an earlier answer about the same two texts")
    return found


def _has_words(text: str, words: Sequence[str]) -> bool:
    """Whether a text of a review file has these words, perhaps with the apostrophe that `--quote-formulas` adds."""
    return any(same_words(each).split() == words for each in (text, text.removeprefix("'")))


def _answered(answers: Mapping[Pair, bool], judged: Sequence[Judged]) -> list[Judged]:
    """The pairs that a person has answered, so that no answer is lost."""
    known = {each.pair: each for each in judged}
    why = "answered; not near"
    return [known.get(pair) or Judged(pair, 0.0, None, same, why) for pair, same in answers.items()]


def _review_row(judged: Judged, clusters: TextClusters, corpus: EmbeddedCorpus) -> ReviewRow:
    a, b = judged.pair
    rows = (corpus.first_row(a), corpus.first_row(b))
    of_pair = (clusters.texts[a], clusters.texts[b])
    return ReviewRow(rows, of_pair, judged.probability, judged.joined, judged.why, clusters.answers.get(judged.pair))


def _reasons(cosine: float | None, pair_model: str | None, duplicates: DuplicateDecision, answers: int) -> list[str]:
    """How pairs were judged: lines for people."""
    count = len(duplicates.to_read)
    if cosine is not None:
        lines = [f"judged by a cosine of {cosine:g} or more"]
    elif pair_model is None:
        lines = [f"near pairs: {count:,}; no model that is served reads both texts, so their cosines decide"]
    else:
        lines = [f"near pairs: {count:,}, read by {pair_model}, each text with its {READ_NEAREST} nearest"]
    return [*lines, f"reviewed pairs: {answers:,}"] if answers else lines
