"""Which of some texts say the same: `core.duplicates`, asked of the models that are served."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from core.duplicates import (
    LISTED,
    MAX_WORDS,
    READ_NEAREST,
    DuplicateDecision,
    Judged,
    PairReading,
    find_candidates,
    left_apart,
    nearest_texts,
    questions,
)
from core.facts import Facts, facts_of
from core.groups import MAX_WAYS, KeptApart
from core.same_words import EXPANDED, same_words, text_order
from core.scoring import Embeddings
from service.engine.admission import RequestContext
from service.engine.queue import Queue
from service.schemas import Answer, DuplicatesResponse
from service.scoring.scorer import Scorer
from service.scoring.tokenising import turns_of

MAX_TEXTS = 2000
_WORDS_TURN_SECONDS = 0.04  # expected; the worst texts take ten times that
_WORDS_SECONDS = 2e-6  # of a character: its words and facts; expected
_COMPARE_SECONDS = 2e-8  # of a pair of vectors
_DECIDE_SECONDS, _DECIDE_WORD_SECONDS = 4e-5, 1e-6  # of a candidate, and of each word of one of its texts
_AGREE_SECONDS = 2e-6  # of two facts that are compared
_READ_OF_A_TEXT = 0.7  # pairs, as a rule; each in both directions
MOST_READ = READ_NEAREST / _READ_OF_A_TEXT  # times as many, of texts that are much alike: what is promised fits these
FIELD = "texts"


class _Distinct(NamedTuple):
    """Texts with different words, in an order that is not the request's.

    Attributes:
        read: of each the text of the request, of those with these words, that is read for all.
        first: of each the first text of the request that has these words.
        of: of each text of the request the number of its words.
        words: of each the first ones that are compared, in one spelling.
        kept_apart: by their facts; None: no text is.
    """

    read: list[int]
    first: list[int]
    of: list[int]
    words: list[list[str]]
    kept_apart: KeptApart | None


def expected_seconds(encoder: Scorer, pair: Scorer | None, texts: Sequence[str]) -> tuple[float, float]:
    """Expected work of the models, nothing of it cached: of the encoder, and of what reads pairs."""
    reading = 0.0 if pair is None else 2 * _READ_OF_A_TEXT * pair.seconds_of("entailment", texts, texts)
    return encoder.seconds_of(None, texts), reading


async def find_duplicates(
    context: RequestContext, encoder: Scorer, pair: Scorer | None, queue: Queue, texts: Sequence[str], *, guarded: bool
) -> DuplicatesResponse:
    """For each text the first one that says the same.

    Args:
        context: of the request.
        encoder: with embeddings.
        pair: with paraphrase and entailment; None: cosines decide.
        queue: for what is neither's.
        texts: n of them.
        guarded: keep texts apart that differ in a fact.

    Raises:
        EmptyText: a text without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
        Overloaded, TooSlow: it would not end in time.
    """
    numbers: dict[str, int] = {}
    of = [numbers.setdefault(text, len(numbers)) for text in texts]
    exact = list(numbers)  # the same text is read once, however often it stands there
    embedding, reading = expected_seconds(encoder, pair, exact)
    chars = [len(text) * (1 if text.isascii() else EXPANDED) for text in exact]
    turns = turns_of(chars, _WORDS_SECONDS, _WORDS_TURN_SECONDS)
    pieces = [(seconds, partial(_words_and_facts, exact[part], guarded)) for seconds, part in turns]
    with context.before(embedding + reading):
        words = [read for chunk in await queue.run_all(context, pieces) for read in chunk]
    distinct = _distinct(texts, [words[number] for number in of])
    with context.before(reading):
        encoded = await encoder.tokenise(context, exact, lambda i: f"{FIELD}.{texts.index(exact[i])}")
        read = [encoded[number] for number in of]
        embeddings = await encoder.embed(context, [read[i] for i in distinct.read])
    number = len(distinct.read)
    a_pair = _DECIDE_SECONDS + _DECIDE_WORD_SECONDS * sum(map(len, distinct.words)) / number
    if distinct.kept_apart is not None:
        a_pair += distinct.kept_apart.agreements_of_a_pair() * _AGREE_SECONDS
    seconds = number**2 * _COMPARE_SECONDS + number * LISTED * a_pair
    with context.before(reading):
        duplicates = await queue.run(context, seconds, partial(_candidates, distinct, embeddings))
    readings = None
    if pair is not None:
        readings = await _read(context, pair, queue, [texts[i] for i in distinct.read], duplicates)
    deciding = (len(duplicates.candidates) + number * MAX_WAYS) * a_pair
    truncated = [sentence.truncated for sentence in read]
    results, review, apart = await queue.run(
        context, deciding, partial(_decide, duplicates, readings, distinct, truncated)
    )
    answer: Answer = {"model": encoder.id, "results": results}
    if pair is not None:
        answer["pair_model"] = pair.id
    return {**answer, "review": review, "apart": apart}


def _decide(
    duplicates: DuplicateDecision,
    readings: Sequence[PairReading | None] | None,
    distinct: _Distinct,
    truncated: Sequence[bool],
) -> tuple[list[Answer], list[Answer], list[Answer]]:
    """The results, the pairs to review, and those apart, which are many."""
    group, judged = duplicates.decide(readings)
    first: dict[int, int] = {}
    leads = [first.setdefault(group[number], place) for place, number in enumerate(distinct.of)]
    sizes = np.bincount(leads, minlength=len(leads))
    apart = duplicates.nearest_apart()
    results: list[Answer] = []
    for lead, number, cut in zip(leads, distinct.of, truncated, strict=True):
        result: Answer = {"cluster": lead, "cluster_size": int(sizes[lead]), "truncated": cut}
        if number in apart:
            nearest, difference = apart[number]
            result["kept_apart"] = {"index": distinct.first[nearest], "why": str(difference)}
        results.append(result)
    asked = questions(judged, len(distinct.read))
    left = left_apart(judged, asked)
    return results, [_said(each, distinct) for each in asked], [_said(each, distinct) for each in left]


def _words_and_facts(texts: Sequence[str], guarded: bool) -> list[tuple[str, Facts | None]]:
    return [(same_words(text), facts_of(text) if guarded else None) for text in texts]


def _distinct(texts: Sequence[str], found: Sequence[tuple[str, Facts | None]]) -> _Distinct:
    first: dict[str, int] = {}
    read: dict[str, int] = {}
    for place, (words, _) in enumerate(found):
        first.setdefault(words, place)
    for place in sorted(range(len(texts)), key=lambda place: text_order(texts[place])):
        read.setdefault(found[place][0], place)
    numbers = {words: number for number, words in enumerate(read)}
    facts = [facts for place in read.values() if (facts := found[place][1]) is not None]
    return _Distinct(
        read=list(read.values()),
        first=[first[words] for words in read],
        of=[numbers[words] for words, _ in found],
        words=[words.split(maxsplit=MAX_WORDS)[:MAX_WORDS] for words in read],
        kept_apart=KeptApart(facts) if facts else None,
    )


def _candidates(distinct: _Distinct, embeddings: Embeddings) -> DuplicateDecision:
    lengths = np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), np.float32(1e-12))
    nearest = nearest_texts(np.asarray(embeddings / lengths, dtype=np.float32), LISTED)
    return DuplicateDecision(distinct.words, find_candidates(nearest), distinct.kept_apart)


async def _read(
    context: RequestContext, scorer: Scorer, queue: Queue, texts: Sequence[str], duplicates: DuplicateDecision
) -> list[PairReading | None]:
    pairs = [duplicates.candidates[i].pair for i in duplicates.to_read]
    if not pairs:
        return []
    seconds = 2 * scorer.seconds_of("entailment", *([texts[pair[side]] for pair in pairs] for side in (0, 1)))
    most = seconds * READ_NEAREST * len(texts) / len(pairs)
    if (error := queue.admissions.too_slow(context, most, seconds / 2)) is not None:  # both may be cached
        raise error.of(FIELD, len(texts))
    with context.before(seconds):
        read = await scorer.tokenise(context, texts, lambda _: FIELD)
    a, b = ([read[pair[side]] for pair in pairs] for side in (0, 1))
    entailed = [each["entailment"] for each in await scorer.entailment_or_neutral(context, [*a, *b], [*b, *a])]
    same = (await scorer.similarity(context, [*a, *b], [*b, *a], "paraphrase")).score
    return [
        PairReading.of_both_orders(
            (same[i], same[i + len(pairs)]),
            (entailed[i], entailed[i + len(pairs)]),
            bool(a[i].unknown or b[i].unknown),
        )
        for i in range(len(pairs))
    ]


def _said(judged: Judged, distinct: _Distinct) -> Answer:
    a, b = (distinct.first[text] for text in judged.pair)
    pair: Answer = {
        "index_1": a,
        "index_2": b,
        "cosine": round(judged.cosine, 6),
        "joined": judged.joined,
        "why": judged.why,
    }
    if judged.probability is not None:
        pair["score"] = round(judged.probability, 6)
    return pair
