"""Claim verification: does a document entail a claim, contradict it, or leave it open, and where does it say so?

An encoder and shared words find the passages that may speak of a claim (`evidence`), a model of pairs reads each with
the claim, and `verdicts` joins what it says.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from core.alignment import Amount, amounts_in, written_alike
from core.answers import ClaimLabel
from core.facts import difference, facts_of
from core.same_words import same_words
from core.scoring import Embeddings
from service.engine.context import RequestContext
from service.engine.queue import Queue
from service.errors import TooLarge
from service.schemas import Answer, ClaimsResponse
from service.scoring.documents import Sentence, sentences_in
from service.scoring.evidence import BEST, Evidence, Found, Passage, passages_of
from service.scoring.scorer import Scorer
from service.scoring.verdicts import MOST_CHARS, Reading, Statement, Verdict, verdict

_READ_SECONDS = 4e-6  # of a character: sentences, and which words they have; expected
_JOIN_SECONDS = 1e-3  # of the passages of one claim
_ALIKE_SECONDS = 2e-4  # of a claim and a passage: their amounts
_SEARCH_SECONDS = 1e-7  # of a passage for one claim
MOST_SENTENCES = 10_000  # of a request: their vectors, and those of neighbours, take some 60 MB
MOST_OTHERS = 2  # words of an amount, or the like, in which a passage and a claim differ
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


async def read_documents(context: RequestContext, queue: Queue, documents: Sequence[str]) -> Documents:
    """Find the sentences of documents, and the passages that they make; in a thread where that takes long.

    Raises:
        TooLarge: more sentences than `MOST_SENTENCES`.
    """
    pieces = [(len(each) * _READ_SECONDS, partial(sentences_in, each)) for each in documents]
    found = await queue.run_all(context, pieces)
    if (count := sum(map(len, found))) > MOST_SENTENCES:
        message = f"{count:,} sentences, list items and table rows; {MOST_SENTENCES:,} at most"
        raise TooLarge(message, field="documents", limit=MOST_SENTENCES)
    sentences = list(chain.from_iterable(found))
    of = [i for i, each in enumerate(found) for _ in each]
    return Documents(sentences, of, passages_of(sentences, of))


def expected_seconds(encoder: Scorer, pair: Scorer, sentences: int, passages: int) -> tuple[float, float]:
    """Expected work of the models, nothing of it cached: for the documents, and for each claim."""
    of_text = encoder.seconds_per_new_pair / 2
    return sentences * of_text, of_text + min(passages, BEST) * pair.seconds_per_new_pair


async def verify(
    context: RequestContext, encoder: Scorer, pair: Scorer, queue: Queue, documents: Documents, claims: Sequence[str]
) -> ClaimsResponse:
    """Hold each claim against all documents together.

    Args:
        context: of the request.
        encoder: with embeddings.
        pair: with entailment in three labels.
        queue: for what is neither's.
        documents: read.
        claims: m of them.

    Raises:
        EmptyText: a claim without a visible character.
        InferenceFailed: a graph raised, or gave a number that is not finite.
        Overloaded, TooSlow: it would not end in time.
    """
    passages = documents.passages
    texts = [each.text for each in passages[: len(documents.sentences)]]
    once, each_claim = expected_seconds(encoder, pair, len(texts), len(passages))
    finding = once + len(claims) * encoder.seconds_per_new_pair / 2
    # Of the whole work; a pair model that is as fast as an encoder, or faster, is there too.
    with context.part(max(1e-3, finding / (once + len(claims) * each_claim))):
        asked = await encoder.read(context, claims, lambda i: f"claims.{i}", role="query")
        read = await encoder.read(context, texts, lambda _: "documents", role="passage")
        matrix = await encoder.embed(context, [*read, *asked])
    chars = sum(len(text) for text in texts)
    seconds = chars * _READ_SECONDS + len(claims) * len(passages) * _SEARCH_SECONDS
    found = await queue.run(context, seconds, partial(_find, passages, matrix, claims))
    of_claim = [(i, each) for i, some in enumerate(found) for each in some]
    places = list(dict.fromkeys(each.passage for _, each in of_claim))
    premises = dict(
        zip(places, await pair.read(context, [passages[i].text for i in places], lambda _: "documents"), strict=True)
    )
    hypotheses = await pair.read(context, claims, lambda i: f"claims.{i}")
    comparing = len(of_claim) * _ALIKE_SECONDS
    alike = await queue.run(context, comparing, partial(_alike, passages, claims, of_claim))
    same = await queue.run(context, comparing, partial(_compared, documents, claims, of_claim))
    others = list(dict.fromkeys(text for text in alike if text is not None))
    rewritten = dict(zip(others, await pair.read(context, others, lambda _: "claims"), strict=True))
    answers, aux_scores = await pair.read_claims(
        context,
        [premises[each.passage] for _, each in of_claim],
        [hypotheses[i] if text is None else rewritten[text] for (i, _), text in zip(of_claim, alike, strict=True)],
    )
    readings: list[list[Reading]] = [[] for _ in claims]
    stating: list[list[Reading]] = [[] for _ in claims]  # those of passages that have words
    for (i, each), answer, more, words in zip(of_claim, answers, aux_scores, same, strict=True):
        reading = Reading(each, passages[each.passage], answer["entailment"], answer["contradiction"], more, *words)
        readings[i].append(reading)
        if reading.same_words or (pair.has_word(premises[each.passage]) and pair.has_word(hypotheses[i])):
            stating[i].append(reading)
    work = [
        (_JOIN_SECONDS, partial(verdict, claim, some) if some else partial(_no_verdict, claim, every))
        for claim, some, every in zip(claims, stating, readings, strict=True)
    ]
    results: list[Answer] = []
    for said, hypothesis in zip(await queue.run_all(context, work), hypotheses, strict=True):
        result: Answer = {
            "label": said.label,
            "confidence": said.probabilities[said.label],
            "probabilities": dict(said.probabilities),
            "runner_up": _passage(documents, said.runner_up),
            "truncated": hypothesis.truncated,
        }
        if said.evidence is not None:
            result["evidence"] = _passage(documents, said.evidence)
        results.append(result)
    return {"model": pair.id, "encoder": encoder.id, "results": results}


def _alike(passages: Sequence[Passage], claims: Sequence[str], pairs: Sequence[tuple[int, Found]]) -> list[str | None]:
    """Of each pair of claim and passage the claim, its amounts as the passage writes them; None: nothing changes."""
    own = [amounts_in(claim[:MOST_CHARS]) for claim in claims]
    said: dict[int, list[Amount]] = {}
    found: list[str | None] = []
    for i, each in pairs:
        text = passages[each.passage].text
        if own[i] and each.passage not in said:
            said[each.passage] = amounts_in(text)
        alike = written_alike(claims[i], own[i], text, said[each.passage]) if own[i] else claims[i]
        found.append(None if alike == claims[i] else alike)
    return found


def _compared(
    documents: Documents, claims: Sequence[str], pairs: Sequence[tuple[int, Found]]
) -> list[tuple[bool, bool]]:
    """Whether each passage has the words of its claim, no matter under which headings, and whether all but a fact."""
    own = [same_words(claim).split() if len(claim) <= MOST_CHARS else [] for claim in claims]
    found = []
    for i, each in pairs:
        text = _text_of(documents, documents.passages[each.passage])
        words = same_words(text).split() if own[i] and len(text) <= 2 * MOST_CHARS else []
        others = sum(a != b for a, b in zip(own[i], words, strict=False))
        alike = 0 < len(words) == len(own[i]) and others <= MOST_OTHERS
        differs = alike and others > 0 and difference(facts_of(claims[i]), facts_of(text)) is not None
        found.append((alike and others == 0, differs))
    return found


def _text_of(documents: Documents, passage: Passage) -> str:
    first, last = documents.sentences[passage.first], documents.sentences[passage.last]
    return first.text if first is last else f"{first.text} {last.text}"


def _no_verdict(claim: str, readings: Sequence[Reading]) -> Verdict:
    """That of a claim, or of passages, without words: nothing is stated, whatever a model makes of the characters."""
    said = verdict(claim, readings)
    return Verdict("not_stated", _NOT_STATED, None, said.evidence or said.runner_up)


def _find(passages: Sequence[Passage], embeddings: Embeddings, claims: Sequence[str]) -> list[list[Found]]:
    """The best passages of each claim; embeddings are of the sentences, then of the claims."""
    evidence = Evidence(passages, embeddings[: -len(claims)])
    pairs = zip(claims, embeddings[-len(claims) :], strict=True)
    return [evidence.best(claim[:MOST_CHARS], each) for claim, each in pairs]


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
