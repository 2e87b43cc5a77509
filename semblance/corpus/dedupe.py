"""Near-duplicates of a file: each row gets the first row of its group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semblance.batch.delimited import FileFormat
from semblance.batch.formats import write_of
from semblance.batch.outputs import write_output
from semblance.batch.rows import Answered, Kind, Row, Step
from semblance.batch.tasks import find_model
from semblance.corpus.duplicates import JOINED_FROM, CandidatePairs, JudgedScores, find_candidates
from semblance.corpus.groups import CosineScores, ListedScores, group
from semblance.corpus.guard import Guard
from semblance.corpus.neighbours import EXACT_ROWS, Indices, Near, Neighbours
from semblance.corpus.options import CorpusSession
from semblance.corpus.reading import read_pairs
from semblance.corpus.review import MOST, ReviewedPair, ReviewRow, read_review, review_path, write_review
from semblance.corpus.texts import NO_TEXT, ROWS_AT_ONCE, opened
from semblance.corpus.wording import words_of
from semblance.corpus.work import EmbeddedCorpus, forget, place, read
from semblance.errors import BatchError

LARGE_COSINE = 0.9  # decides where a file has too many texts to judge pairs
NEAREST = ("another row is nearer to each", "another row is nearer to one", "nearest to each other")
DOUBT = 0.05  # pairs of a lower probability are not in the review file


@dataclass(frozen=True)
class Rule:
    """Two texts are near if their cosine is at least `cosine` and the second model, if there is one, says `score`."""

    cosine: float
    score: float


@dataclass(frozen=True)
class Grouping:
    """Which embedded texts are together.

    Attributes:
        first: of each embedded text the first one of its group, [N].
        recall: of near pairs, on a sample.
        chosen: what was chosen where the user left it open, and why: lines for people.
        review: the pairs that a person should look at, the most doubtful first.
    """

    first: Indices
    recall: float
    chosen: Sequence[str] = ()
    review: Sequence[ReviewRow] = ()


@dataclass(frozen=True)
class DedupeSummary:
    """The result of a deduplication, as it is printed."""

    rows: int
    texts: int  # distinct ones
    clusters: int
    skipped: int
    model: str
    exact: bool
    recall: float  # of near pairs, on a sample
    largest: int  # rows of the largest cluster
    largest_first: int  # its first row, from 1
    chosen: Sequence[str]  # what was chosen where the user left it open, and why: lines for people
    review: str | None  # the file of pairs to review


async def dedupe(
    work: CorpusSession,
    path: Path,
    output: Path,
    column: str,
    read_as: FileFormat,
    *,
    rule: Rule | None,
    reviewed: Path | None,
    only_first: bool,
    guarded: bool,
) -> DedupeSummary:
    """Write a file with each row's cluster.

    Args:
        work: the client, what the user asks for, and where progress is told.
        path: .jsonl, .ndjson, .csv, .tsv or .parquet; or .txt, a text a line.
        output: one of these too, but .txt. New columns: `cluster`, the number of the cluster's first row, from 1;
            `cluster_size`, in rows; `cosine` with that first row; `kept_apart`, the nearest row that is near enough but
            differs in a number, a size or another fact, and how.
        column: of the texts.
        read_as: encoding and separator of the file.
        rule: which texts are near; None: that is judged pair by pair (`semblance.corpus.duplicates`), and a review file
            is written.
        reviewed: a review file that a person has answered, to learn from; only without a rule.
        guarded: keep texts apart that differ in a fact (`semblance.corpus.guard`).
        only_first: write only the first row of each cluster.

    Raises:
        BatchError, SemblanceError: see `place`, `opened`, `read` and `read_review`.
    """
    asking, step = work.asking, work.step
    beside = place(path, output, asking)
    names: dict[str, Kind] = {"cluster": "place", "cluster_size": "place", "cosine": "number"}
    names |= {"kept_apart": "text"} if guarded else {}
    adds = {f"{asking.prefix}{name}": kind for name, kind in names.items()}
    source = opened(path, column, read_as, adds)
    answers = [] if reviewed is None else read_review(reviewed, read_as)
    work = await _with_reader(work, rule)
    if rule is not None:
        await work.check()
    corpus = await read(work, source, beside)
    values = corpus.vectors.values
    step("indexing", 0.0)
    near = Neighbours(values, exact=asking.exact)
    known = corpus.texts.read(corpus.vectors.texts.tolist())
    embedded = [known[number] for number in corpus.vectors.texts.tolist()]
    guard = Guard(embedded) if guarded else None
    if rule is not None:
        grouping = await _group_by_rule(work, rule, corpus, near, guard, beside)
    elif len(values) > EXACT_ROWS:
        if answers:
            raise BatchError(f"--reviewed: of more than {EXACT_ROWS:,} texts pairs are not judged one by one")
        rule = Rule(LARGE_COSINE, 0.0)
        cosine_alone = replace(work, asking=replace(asking, rerank=None))
        grouping = await _group_by_rule(cosine_alone, rule, corpus, near, guard, beside)
        reason = f"cosine {LARGE_COSINE:g}: there are more than {EXACT_ROWS:,} texts, too many to judge pairs"
        grouping = replace(grouping, chosen=[reason])
    else:
        step(f"comparing {len(values):,} texts", 0.0)
        grouping = await _group_by_judging(work, corpus, near, guard, embedded, answers, beside)
    clusters = RowClusters(corpus, grouping.first, guard)
    bad = corpus.without()
    write_output(
        write_of(output), output, corpus.source, adds, lambda: clusters.rows(adds, step, only_first=only_first), bad
    )
    review = None
    if grouping.review:
        review = review_path(output)
        write_review(review, grouping.review)
    if asking.keep is None:
        forget(beside)
    largest = int(clusters.sizes.argmax())
    return DedupeSummary(
        rows=len(clusters.leaders),
        texts=len(corpus.texts.first_row),
        clusters=int((clusters.sizes > 0).sum()),
        skipped=len(bad),
        model=corpus.vectors.model,
        exact=near.exact,
        recall=grouping.recall,
        largest=int(clusters.sizes[largest]),
        largest_first=largest + 1,
        chosen=grouping.chosen,
        review=None if review is None else str(review),
    )


async def _with_reader(work: CorpusSession, rule: Rule | None) -> CorpusSession:
    """Name the model that reads the doubtful pairs where the user does not: the first main one that knows entailment.

    Raises:
        BatchError: the one that the user names does not know entailment.
    """
    if rule is not None:
        return work
    models = await work.client.models()
    if work.asking.rerank is not None:
        find_model(models, work.asking.rerank, "entailment")
        return work
    able = [model.id for model in models.models if model.main and "entailment" in model.tasks]
    return replace(work, asking=replace(work.asking, rerank=able[0] if able else None))


async def _group_by_rule(
    work: CorpusSession, rule: Rule, corpus: EmbeddedCorpus, near: Neighbours, guard: Guard | None, beside: Path
) -> Grouping:
    """The groups of texts whose cosine, and second model's score if there is one, are high enough."""
    values = corpus.vectors.values
    recall = near.recall_above(rule.cosine)
    cosines = CosineScores(near, values, guard)
    if work.asking.rerank is None:
        return Grouping(group(cosines, len(values), rule.cosine), recall)
    parts = [pairs.only(pairs.queries < pairs.rows) for pairs in cosines.at_least(None, rule.cosine)]
    found = Near(*map(np.concatenate, zip(*parts, strict=True)))
    read_scores = np.nan_to_num(await read_pairs(work, found, corpus, beside), nan=-1.0)
    return Grouping(group(ListedScores(found, read_scores, len(values)), len(values), rule.score), recall)


async def _group_by_judging(
    work: CorpusSession,
    corpus: EmbeddedCorpus,
    near: Neighbours,
    guard: Guard | None,
    embedded: Sequence[str],
    answers: Sequence[ReviewedPair],
    beside: Path,
) -> Grouping:
    """The groups of texts that say the same, judged pair by pair, by what a person has answered too.

    Raises:
        BatchError: see `_places_of`.
    """
    values = corpus.vectors.values
    words = [words_of(text) for text in embedded]
    judged = find_candidates(values, near, guard, words)
    places = _places_of(answers, judged, corpus, embedded)
    asked = np.union1d(judged.doubtful(len(values)), np.fromiter(places, np.int64, len(places)))
    if work.asking.rerank is not None and len(asked):
        judged.read[asked] = await read_pairs(work, judged.pairs.only(asked), corpus, beside, entailment=True)
    if places:
        at, same = np.array(list(places), dtype=np.int64), np.array(list(places.values()), dtype=bool)
        judged.learn(at, same)
    probabilities = judged.probabilities()
    if places:
        probabilities[at] = same
    first = group(JudgedScores(judged, probabilities, values, guard, words), len(values), JOINED_FROM)
    chosen = _reasons(work, judged, len(asked), len(places))
    review = _review_rows(judged, probabilities, first, places, corpus, embedded, work.asking.rerank)
    return Grouping(first, 1.0, chosen, review)


class RowClusters:
    """The clusters of a file's rows, from the groups of its embedded texts.

    Attributes:
        leaders: of each row the first row of its cluster, [R]; below 0 where a row has no text.
        sizes: rows of the cluster that each row leads, [R].
    """

    def __init__(self, corpus: EmbeddedCorpus, first: Indices, guard: Guard | None) -> None:
        """Carry over from embedded texts [N] to distinct texts to rows.

        Args:
            corpus: the file, its texts and their vectors.
            first: of each embedded text the first one of its group, [N].
            guard: knows which texts it kept apart; None: none were.
        """
        self._corpus, self._guard = corpus, guard
        texts, embedded = corpus.texts, corpus.vectors.texts
        values = corpus.vectors.values
        self._of_row = np.asarray(texts.of_row, dtype=np.int64)
        count = len(texts.first_row) + 1  # the last is that of rows without a text
        leader = np.full(count, NO_TEXT, dtype=np.int64)
        leader[embedded] = np.asarray(texts.first_row)[embedded[first]]
        self._cosines = np.zeros(count, dtype=np.float32)
        self._cosines[embedded] = np.minimum(np.einsum("nd,nd->n", values, values[first]), 1.0)
        self._vector_of = np.full(count, NO_TEXT, dtype=np.int64)
        self._vector_of[embedded] = np.arange(len(values))
        self.leaders: Indices = leader[self._of_row]
        self.sizes = np.bincount(self.leaders[self.leaders >= 0], minlength=len(self._of_row))

    def rows(self, columns: Iterable[str], step: Step, *, only_first: bool) -> Iterator[Answered]:
        """The rows to write with their new cells, chunk by chunk."""
        for chunk in self._corpus.source.chunks(0, ROWS_AT_ONCE):
            kept: list[int] = []
            cells: list[Row] = []
            for at, row in enumerate(range(chunk.before, chunk.before + len(chunk.rows))):
                leader = int(self.leaders[row])
                if leader == row or (leader >= 0 and not only_first):
                    kept.append(at)
                    cells.append(dict(zip(columns, self._cells(row, leader), strict=True)))
            yield Answered(chunk, kept, cells)
            step("writing", (chunk.before + len(chunk.rows)) / len(self._of_row))

    def _cells(self, row: int, leader: int) -> list[Any]:
        text = self._of_row[row]
        cells: list[Any] = [leader + 1, int(self.sizes[leader]), round(float(self._cosines[text]), 6)]
        if self._guard is not None:
            vector = int(self._vector_of[text])
            why, nearest = self._guard.why(vector), self._corpus.vectors.texts[self._guard.nearest[vector]]
            cells.append(None if why is None else f"row {int(self._corpus.texts.first_row[nearest]) + 1}: {why}")
        return cells


def _places_of(
    answers: Sequence[ReviewedPair], judged: CandidatePairs, corpus: EmbeddedCorpus, embedded: Sequence[str]
) -> dict[int, bool]:
    """Reviewed pairs by their places among the candidates.

    Raises:
        BatchError: a text is not the one of its row, so that the review is of another file; or two answers of the same
            pair differ.
    """
    vector_of = {int(text): vector for vector, text in enumerate(corpus.vectors.texts)}
    of_row = corpus.texts.of_row
    size = len(embedded)
    keys = {int(key): i for i, key in enumerate(judged.pairs.queries * size + judged.pairs.rows)}
    found: dict[int, bool] = {}
    for answer in answers:
        vectors = [vector_of.get(of_row[row]) if 0 <= row < len(of_row) else None for row in answer.rows]
        a, b = vectors
        if a is None or b is None or [embedded[a], embedded[b]] != [text.strip() for text in answer.texts]:
            raise BatchError(f"--reviewed: line {answer.line} is of another file: its texts are not those of its rows")
        place_of = keys.get(min(a, b) * size + max(a, b))
        if place_of is None:
            raise BatchError(f"--reviewed: line {answer.line}: the two rows are no candidates with these options")
        if found.setdefault(place_of, answer.same) != answer.same:
            raise BatchError(f"--reviewed: line {answer.line} contradicts an earlier answer about the same two texts")
    return found


def _reasons(work: CorpusSession, judged: CandidatePairs, asked: int, reviewed: int) -> list[str]:
    """What was chosen, and why."""
    count = len(judged.pairs.rows)
    if not count:
        return ["no two texts are near enough to be judged"]
    lines = [
        f"candidates: {count:,} pairs with a cosine of {judged.least:.2f} or more "
        f"(two texts of this file have {judged.usual:.2f})"
    ]
    if work.asking.rerank is None:
        lines.append("read by: no model that is served reads both texts, so cosines decide")
    else:
        lines.append(f"read by {work.asking.rerank}: {asked:,} pairs that their cosines leave in doubt")
    if reviewed:
        lines.append(f"learnt from {reviewed:,} reviewed pairs")
    return lines


def _review_rows(
    judged: CandidatePairs,
    probabilities: npt.NDArray[np.float64],
    first: Indices,
    places: dict[int, bool],
    corpus: EmbeddedCorpus,
    embedded: Sequence[str],
    reader: str | None,
) -> list[ReviewRow]:
    """The pairs to review, the most doubtful first: those that were joined, and those that nearly were.

    Those that a person has answered come last, all of them, so that no answer is lost.
    """
    joined = first[judged.pairs.queries] == first[judged.pairs.rows]
    doubtful = joined | (probabilities >= DOUBT)
    answered = np.array(sorted(places), dtype=np.int64)
    doubtful[answered] = False
    shown = np.flatnonzero(doubtful)
    order = shown[np.argsort(np.abs(probabilities[shown] - JOINED_FROM), kind="stable")][:MOST]
    rows: list[ReviewRow] = []
    for at in [*order.tolist(), *answered.tolist()]:
        a, b = int(judged.pairs.queries[at]), int(judged.pairs.rows[at])
        own = tuple(int(corpus.texts.first_row[corpus.vectors.texts[vector]]) for vector in (a, b))
        _, nearest_of, alike, _, edited = judged.features[at]
        why = f"cosine {judged.pairs.cosines[at]:.2f}, {NEAREST[int(nearest_of)]}, words alike {alike:.2f}"
        why += ", but for one place or their order the same" if edited else ""
        if not np.isnan(judged.read[at]):
            why += f", one entails the other {judged.read[at]:.2f} ({reader})"
        if at not in places and joined[at] != (probabilities[at] >= JOINED_FROM):
            why += ", joined through others of their group" if joined[at] else ", but not near on average"
        of_pair = (embedded[a], embedded[b])
        score = float(probabilities[at])
        rows.append(ReviewRow((own[0], own[1]), of_pair, score, bool(joined[at]), why, places.get(at)))
    return rows
