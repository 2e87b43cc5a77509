"""Near-duplicates of a file: each row gets the first row of its group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semblance.batch.delimited import FileFormat
from semblance.batch.formats import write_of
from semblance.batch.outputs import write_output
from semblance.batch.rows import Answered, Kind, Row
from semblance.batch.tasks import find_model
from semblance.corpus.duplicates import JOINED_FROM, Candidates, JudgedScores, candidates
from semblance.corpus.groups import CosineScores, ListedScores, PairScores, group
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
        work: see there.
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
    values, texts = corpus.vectors.values, corpus.texts
    step("indexing", 0.0)
    near = Neighbours(values, exact=asking.exact)
    known = texts.read(corpus.vectors.texts.tolist())
    of_vector = [known[number] for number in corpus.vectors.texts.tolist()]
    guard = Guard(of_vector) if guarded else None
    chosen: list[str] = []
    review: Path | None = None
    if rule is None and len(values) > EXACT_ROWS:
        if answers:
            raise BatchError(f"--reviewed: of more than {EXACT_ROWS:,} texts pairs are not judged one by one")
        rule = Rule(LARGE_COSINE, 0.0)
        chosen.append(f"cosine {LARGE_COSINE:g}: there are more than {EXACT_ROWS:,} texts, too many to judge pairs")
        work = replace(work, asking=replace(work.asking, rerank=None))
    if rule is not None:
        scores, least = await _by_rule(work, rule, corpus, near, guard, beside)
        first = group(scores, len(values), least)
        recall = near.recall_above(rule.cosine)
    else:
        step(f"comparing {len(values):,} texts", 0.0)
        words = [words_of(text) for text in of_vector]
        judged = candidates(values, near, guard, words)
        places = _places_of(answers, judged, corpus, of_vector)
        asked = np.union1d(judged.doubtful(len(values)), np.fromiter(places, np.int64, len(places)))
        if work.asking.rerank is not None and len(asked):
            part = Near(judged.pairs.queries[asked], judged.pairs.rows[asked], judged.pairs.cosines[asked])
            judged.read[asked] = await read_pairs(work, part, corpus, beside, entailment=True)
        probabilities = judged.probabilities()
        if places:
            at, same = np.array(list(places), dtype=np.int64), np.array(list(places.values()), dtype=bool)
            judged.learn(at, same)
            probabilities = judged.probabilities()
            probabilities[at] = same
        first = group(JudgedScores(judged, probabilities, values, guard, words), len(values), JOINED_FROM)
        recall = 1.0
        chosen += _reasons(work, judged, len(asked), len(places))
        rows = _review_rows(judged, probabilities, first, places, corpus, of_vector, work.asking.rerank)
        if rows:
            review = review_path(output)
            write_review(review, rows)
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

    def rows_of() -> Iterator[Answered]:
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
    write_output(write_of(output), output, corpus.source, adds, rows_of, bad)
    if asking.keep is None:
        forget(beside)
    largest = int(sizes.argmax())
    return DedupeSummary(
        rows=len(of_row),
        texts=len(texts.first_row),
        clusters=int((sizes > 0).sum()),
        skipped=len(bad),
        model=corpus.vectors.model,
        exact=near.exact,
        recall=recall,
        largest=int(sizes[largest]),
        largest_first=largest + 1,
        chosen=chosen,
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


async def _by_rule(
    work: CorpusSession, rule: Rule, corpus: EmbeddedCorpus, near: Neighbours, guard: Guard | None, beside: Path
) -> tuple[PairScores, float]:
    """The scores of a rule, and the one from which on two texts are near."""
    values = corpus.vectors.values
    cosines = CosineScores(near, values, guard)
    if work.asking.rerank is None:
        return cosines, rule.cosine
    parts = [
        (pairs.queries[kept], pairs.rows[kept], pairs.cosines[kept])
        for pairs in cosines.at_least(None, rule.cosine)
        for kept in [pairs.queries < pairs.rows]
    ]
    queries, rows, of_pairs = (np.concatenate(side) for side in zip(*parts, strict=True))
    found = Near(queries, rows, of_pairs)
    read_scores = np.nan_to_num(await read_pairs(work, found, corpus, beside), nan=-1.0)
    return ListedScores(found, read_scores, len(values)), rule.score


def _places_of(
    answers: Sequence[ReviewedPair], judged: Candidates, corpus: EmbeddedCorpus, of_vector: Sequence[str]
) -> dict[int, bool]:
    """Reviewed pairs by their places among the candidates.

    Raises:
        BatchError: a text is not the one of its row, so that the review is of another file; or two answers of the same
            pair differ.
    """
    vector_of = {int(text): vector for vector, text in enumerate(corpus.vectors.texts)}
    of_row = corpus.texts.of_row
    size = len(of_vector)
    keys = {int(key): i for i, key in enumerate(judged.pairs.queries * size + judged.pairs.rows)}
    found: dict[int, bool] = {}
    for answer in answers:
        vectors = [vector_of.get(of_row[row]) if 0 <= row < len(of_row) else None for row in answer.rows]
        a, b = vectors
        if a is None or b is None or [of_vector[a], of_vector[b]] != [text.strip() for text in answer.texts]:
            raise BatchError(f"--reviewed: line {answer.line} is of another file: its texts are not those of its rows")
        place_of = keys.get(min(a, b) * size + max(a, b))
        if place_of is None:
            raise BatchError(f"--reviewed: line {answer.line}: the two rows are no candidates with these options")
        if found.setdefault(place_of, answer.same) != answer.same:
            raise BatchError(f"--reviewed: line {answer.line} contradicts an earlier answer about the same two texts")
    return found


def _reasons(work: CorpusSession, judged: Candidates, asked: int, reviewed: int) -> list[str]:
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
    judged: Candidates,
    probabilities: npt.NDArray[np.float64],
    first: Indices,
    places: dict[int, bool],
    corpus: EmbeddedCorpus,
    of_vector: Sequence[str],
    reader: str | None,
) -> list[ReviewRow]:
    """The pairs to review, the most doubtful first: those that were joined, and those that nearly were."""
    joined = first[judged.pairs.queries] == first[judged.pairs.rows]
    shown = np.flatnonzero(joined | (probabilities >= DOUBT))
    order = shown[np.argsort(np.abs(probabilities[shown] - JOINED_FROM), kind="stable")][:MOST]
    rows: list[ReviewRow] = []
    for at in order.tolist():
        a, b = int(judged.pairs.queries[at]), int(judged.pairs.rows[at])
        own = tuple(int(corpus.texts.first_row[corpus.vectors.texts[vector]]) for vector in (a, b))
        _, nearest_of, alike, _, edited = judged.features[at]
        why = f"cosine {judged.pairs.cosines[at]:.2f}, {NEAREST[int(nearest_of)]}, words alike {alike:.2f}"
        why += ", but for one place or their order the same" if edited else ""
        if not np.isnan(judged.read[at]):
            why += f", one entails the other {judged.read[at]:.2f} ({reader})"
        of_pair = (of_vector[a], of_vector[b])
        score = float(probabilities[at])
        rows.append(ReviewRow((own[0], own[1]), of_pair, score, bool(joined[at]), why, places.get(at)))
    return rows
