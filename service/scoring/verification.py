"""Claim verification: does a document entail a claim, contradict it, or leave it open, and where does it say so?

An encoder and word overlap retrieve the passages that may speak of a claim (`evidence`), a pair model classifies each
with the claim, and `verdicts` aggregates.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain, pairwise
from typing import NamedTuple

from core.alignment import Amount, amounts_in, whole_amounts, written_alike
from core.answers import ClaimLabel
from core.facts import facts_of, rules_out
from core.other_amounts import Said, said_in, says_another_amount
from core.same_words import same_words
from core.scoring import Embeddings
from service.engine.admission import RequestContext
from service.engine.queue import Queue
from service.errors import TooLarge
from service.schemas import Answer, ClaimsResponse
from service.scoring.documents import Sentence, sentences_in
from service.scoring.evidence import BEST, Evidence, Found, Passage, passages_of
from service.scoring.markup import claim_in
from service.scoring.scorer import Scorer
from service.scoring.verdicts import MAX_CHARS, Reading, Statement, Verdict, verdict

_READ_SECONDS = 4e-6  # expected, of a character: to find sentences and their words
_PASSAGE_SECONDS = 5e-6  # expected, of a sentence: to make the passages that have it
_JOIN_SECONDS = 1e-3  # expected, to aggregate the passages of one claim
_AMOUNT_SECONDS = 1e-4  # expected, to hold an amount of a passage against a claim
_WORDS_SECONDS = 5e-6  # expected, of a character: to find the words and amounts of a claim and its passages
_SEARCH_SECONDS = 1e-7  # expected, to compare a passage with a claim
MAX_SENTENCES = 10_000  # of a request: their vectors, and those of neighbours, take some 60 MB
MAX_OTHER_WORDS = 2  # words of an amount, or the like, in which a passage and a claim differ
_NOT_STATED: dict[ClaimLabel, float] = {"entailed": 0.0, "contradicted": 0.0, "not_stated": 1.0}


class Documents(NamedTuple):
    """The documents of a request, read.

    Attributes:
        sentences: of one document after the other.
        of: for each sentence the position of its document.
        passages: sentences first, then neighbours.
    """

    sentences: list[Sentence]
    of: list[int]
    passages: list[Passage]


async def read_documents(
    context: RequestContext, queue: Queue, documents: Sequence[str], later_seconds: float
) -> Documents:
    """Find the sentences of documents, and the passages that they make; in a thread where that takes long.

    Args:
        context: of the request.
        queue: runs the work.
        documents: their texts.
        later_seconds: expected, of the work that follows.

    Raises:
        Overloaded, TooSlow: it would not end in time.
        TooLarge: more sentences than `MAX_SENTENCES`.
    """
    pieces = [(len(each) * _READ_SECONDS, partial(sentences_in, each)) for each in documents]
    reading = sum(seconds for seconds, _ in pieces)
    found = await queue.run_all(context, pieces, total_seconds=reading + later_seconds)
    if (count := sum(map(len, found))) > MAX_SENTENCES:
        message = f"{count:,} sentences, list items and table rows; {MAX_SENTENCES:,} at most"
        raise TooLarge(message, field="documents", limit=MAX_SENTENCES)
    sentences = list(chain.from_iterable(found))
    of = [i for i, each in enumerate(found) for _ in each]
    joining = len(sentences) * _PASSAGE_SECONDS
    work = partial(passages_of, sentences, of)
    (passages,) = await queue.run_all(context, [(joining, work)], total_seconds=joining + later_seconds)
    return Documents(sentences, of, passages)


def expected_seconds(encoder: Scorer, pair: Scorer, sentences: int, passages: int) -> tuple[float, float]:
    """Expected work of the models, nothing of it cached: for the documents, and for each claim."""
    of_text = encoder.seconds_per_new_pair / 2
    return sentences * of_text, of_text + min(passages, BEST) * pair.seconds_per_new_pair


async def verify(
    context: RequestContext, encoder: Scorer, pair: Scorer, queue: Queue, documents: Documents, claims: Sequence[str]
) -> ClaimsResponse:
    """Verify each claim against all documents together.

    Args:
        context: of the request.
        encoder: with embeddings.
        pair: with entailment in three labels.
        queue: runs the work that is neither model's.
        documents: with their passages.
        claims: m of them.

    Raises:
        EmptyText: a claim without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
        Overloaded, TooSlow: it would not end in time.
    """
    passages = documents.passages
    claims = [claim_in(claim) for claim in claims]
    texts = [each.text for each in passages[: len(documents.sentences)]]
    once, each_claim = expected_seconds(encoder, pair, len(texts), len(passages))
    finding = once + len(claims) * encoder.seconds_per_new_pair / 2
    reading = once + len(claims) * each_claim - finding
    # The encoder's share of all work; at least a thousandth, as it is tiny beside a slow pair model.
    with context.part(max(1e-3, finding / (once + len(claims) * each_claim))):
        claim_tokens = await encoder.tokenise(context, claims, lambda i: f"claims.{i}", role="query")
        text_tokens = await encoder.tokenise(context, texts, lambda _: "documents", role="passage")
        matrix = await encoder.embed(context, [*text_tokens, *claim_tokens])
    chars = sum(len(text) for text in texts)
    seconds = chars * _READ_SECONDS + len(claims) * len(passages) * _SEARCH_SECONDS
    search = partial(_find, passages, matrix, claims)
    (found,) = await queue.run_all(context, [(seconds, search)], total_seconds=seconds + reading)
    candidates = [(i, each) for i, passages_of_claim in enumerate(found) for each in passages_of_claim]
    indices = list(dict.fromkeys(each.passage for _, each in candidates))
    premises = dict(
        zip(
            indices,
            await pair.tokenise(context, [passages[i].text for i in indices], lambda _: "documents"),
            strict=True,
        )
    )
    hypotheses = await pair.tokenise(context, claims, lambda i: f"claims.{i}")
    known: dict[int, _Words] = {}
    comparing = [
        (
            sum(len(claim[:MAX_CHARS]) + len(passages[each.passage].text) for each in passages_of_claim)
            * _WORDS_SECONDS,
            partial(_compared, documents, claim, passages_of_claim, known),
        )
        for claim, passages_of_claim in zip(claims, found, strict=True)
    ]
    seconds = sum(each for each, _ in comparing)
    parts = await queue.run_all(context, comparing, total_seconds=seconds + reading)
    compared = list(chain.from_iterable(parts))
    spelt = [each.spelt for each in compared]
    others = list(dict.fromkeys(text for text in spelt if text is not None))
    rewritten = dict(zip(others, await pair.tokenise(context, others, lambda _: "claims"), strict=True))
    left, right = pair.fit(
        [premises[each.passage] for _, each in candidates],
        [hypotheses[i] if text is None else rewritten[text] for (i, _), text in zip(candidates, spelt, strict=True)],
    )
    answers, aux_scores = await pair.read_claims(context, left, right)
    cut = {i for (i, _), claim in zip(candidates, right, strict=True) if claim.truncated}
    readings: list[list[Reading]] = [[] for _ in claims]
    for (i, each), answer, more, words in zip(candidates, answers, aux_scores, compared, strict=True):
        e, c = answer["entailment"], answer["contradiction"]
        readings[i].append(Reading(each, passages[each.passage], e, c, more, words.same_words, words.other_fact))
    has_word = cache(lambda passage: pair.has_word(premises[passage]))
    tasks = [
        (
            _JOIN_SECONDS
            + sum(len(known[each.found.passage].amounts) for each in found_readings) * _AMOUNT_SECONDS
            + sum(len(each.passage.said) for each in found_readings) * _WORDS_SECONDS,
            partial(_judged, claim, found_readings, partial(pair.has_word, hypothesis), has_word),
        )
        for claim, found_readings, hypothesis in zip(claims, readings, hypotheses, strict=True)
    ]
    results: list[Answer] = []
    for i, found_verdict in enumerate(await queue.run_all(context, tasks)):
        result: Answer = {
            "label": found_verdict.label,
            "confidence": found_verdict.probabilities[found_verdict.label],
            "probabilities": dict(found_verdict.probabilities),
            "runner_up": _passage(documents, found_verdict.runner_up),
            "truncated": i in cut,
        }
        if found_verdict.evidence is not None:
            result["evidence"] = _passage(documents, found_verdict.evidence)
        results.append(result)
    return {"model": pair.id, "encoder": encoder.id, "results": results}


class _Words(NamedTuple):
    """What is compared of a passage.

    Attributes:
        amounts: of it.
        words: in one spelling, no matter under which headings.
        said: all of it, but of a long one.
    """

    amounts: list[Amount]
    words: list[str]
    said: Said | None


class _Comparison(NamedTuple):
    """A claim beside a passage.

    Attributes:
        spelt: the claim with its amounts as the passage spells them; None: as it is.
        same_words: the passage has the words of the claim.
        other_fact: it has all of them but those of a fact, which rules the claim out, or other amounts of the same.
    """

    spelt: str | None
    same_words: bool
    other_fact: bool


def _compared(documents: Documents, claim: str, found: Sequence[Found], known: dict[int, _Words]) -> list[_Comparison]:
    """A claim beside each passage that was found for it; `known` passages are read once for all claims."""
    amounts = whole_amounts(claim[:MAX_CHARS])
    own = {claim: same_words(claim).split() if len(claim) <= MAX_CHARS else []}  # as it is, and as passages spell it
    claimed = said_in(claim) if own[claim] else None
    compared = []
    for each in found:
        passage = documents.passages[each.passage]
        text = _text_of(documents, passage)
        if each.passage not in known:
            short = len(text) <= 2 * MAX_CHARS
            words = same_words(text).split() if short else []
            known[each.passage] = _Words(amounts_in(passage.said), words, said_in(passage.said) if short else None)
        theirs, words, said = known[each.passage]
        as_said = words if "only" in own[claim] else _without_only(words)
        # Another spelling may be other words: number 12, of no. 12.
        keeps = not amounts or (own[claim] == as_said != [])
        spelt = claim if keeps else written_alike(claim, amounts, passage.said, theirs)
        if spelt not in own:
            own[spelt] = same_words(spelt).split() if own[claim] else []
        others = sum(a != b for a, b in zip(own[spelt], as_said, strict=False))
        alike = 0 < len(as_said) == len(own[spelt]) and others <= MAX_OTHER_WORDS
        ruled_out = alike and others > 0 and rules_out(facts_of(text), facts_of(claim))
        ruled_out = ruled_out or (claimed is not None and said is not None and says_another_amount(claimed, said))
        compared.append(_Comparison(None if spelt == claim else spelt, alike and others == 0, ruled_out))
    return compared


_CONDITIONS = frozenset(("if", "when", "once", "after", "while", "where", "with"))


def _without_only(words: Sequence[str]) -> list[str]:
    """The words of a passage without "only": what only managers may do managers may do. Only if is not if."""
    return [word for word, after in pairwise([*words, ""]) if word != "only" or after in _CONDITIONS]


def _text_of(documents: Documents, passage: Passage) -> str:
    first, last = documents.sentences[passage.first], documents.sentences[passage.last]
    return first.text if first is last else f"{first.text} {last.text}"


def _judged(
    claim: str, readings: Sequence[Reading], claim_has_word: Callable[[], bool], has_word: Callable[[int], bool]
) -> Verdict:
    """The verdict by the passages with words; not stated, whatever the model says, where none or the claim has any."""
    said = claim_has_word()
    with_words = [each for each in readings if each.same_words or (said and has_word(each.found.passage))]
    if with_words:
        return verdict(claim, with_words)
    shown = verdict(claim, readings)
    return Verdict("not_stated", _NOT_STATED, None, shown.evidence or shown.runner_up)


def _find(passages: Sequence[Passage], embeddings: Embeddings, claims: Sequence[str]) -> list[list[Found]]:
    """The best passages of each claim; embeddings are of the sentences, then of the claims."""
    evidence = Evidence(passages, embeddings[: -len(claims)])
    pairs = zip(claims, embeddings[-len(claims) :], strict=True)
    return [evidence.best(claim[:MAX_CHARS], each) for claim, each in pairs]


def _passage(documents: Documents, statement: Statement) -> Answer:
    """A passage as the answer has it."""
    passage = statement.passage
    first, last = documents.sentences[passage.first], documents.sentences[passage.last]
    return {
        "document": passage.document,
        "start": first.start,
        "end": last.end,
        "text": _text_of(documents, passage),
        "headings": list(first.headings),
        "label": statement.label,
        "probability": statement.probability,
        "differences": statement.differences,
    }
