"""`POST /claims`: each claim held against all documents."""

from starlette.responses import Response

from service.errors import EmptyText, InvalidRequest, UnsupportedTask
from service.routes.dialects import OURS
from service.routes.limits import MAX_CLAIMS, MAX_DOCUMENT_CHARS, MAX_DOCUMENTS, check_fixed
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import ClaimsRequest, ClaimsResponse
from service.scoring.evidence import BEST
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts
from service.scoring.verification import Documents, expected_seconds, read_documents, verify
from service.service import Service

router = router_for(OURS, "scoring")
CONTRADICTION = "contradiction"  # the label that a model must have
_MANY = 16  # texts at least, by which the others are judged
_SENTENCE_CHARS = 250  # more than most have: a guess from below, before documents are read


@router.post("/claims", summary="What documents say of claims, and where", response_model=ClaimsResponse)
async def claims(request: ClaimsRequest, call: ServedRequest) -> Response:
    """Say of each claim whether the documents entail or contradict it, or leave it open."""
    service, context = call.service, call.context
    registry, defaults = service.registry, service.defaults
    name = request.model or defaults["/claims"]
    labels = registry.find(name, "entailment").manifest.entailment
    if labels is not None and CONTRADICTION not in labels.labels:
        able = [each for each in registry.able("entailment") if CONTRADICTION in _labels(service, each)]
        raise UnsupportedTask(name, CONTRADICTION, able)
    given = [request.documents] if isinstance(request.documents, str) else request.documents
    check_fixed("claims", len(request.claims), MAX_CLAIMS, "claims")
    check_texts(request.claims, "claims.{}".format)
    check_fixed("documents", len(given), MAX_DOCUMENTS, "documents")
    check_fixed("documents", sum(map(len, given)), MAX_DOCUMENT_CHARS, "characters of documents")
    pair = await registry.pick(context, name, "entailment")
    encoder = await registry.pick(context, request.encoder or defaults["/embed"], "embedding", "encoder")
    guessed = sum(map(len, given)) // _SENTENCE_CHARS
    once, each = expected_seconds(encoder, pair, guessed, guessed)
    later = min(once + len(request.claims) * each, service.queue.admissions.possible(context))  # `_check_time` refuses
    documents = await read_documents(context, service.queue, given, later)
    for i in sorted(set(range(len(given))) - set(documents.of)):
        field = "documents" if isinstance(request.documents, str) else f"documents.{i}"
        if not given[i].strip():
            raise EmptyText(field)
        raise InvalidRequest(
            "there is no sentence: headings, and what is struck out or a comment, state nothing", field=field
        )
    _check_time(call, encoder, pair, documents, request.claims)
    context.items = "claims", len(request.claims)
    answer = await verify(context, encoder, pair, service.queue, documents, request.claims)
    return JsonAnswer(answer, pair.id)


def _labels(service: Service, name: str) -> tuple[str, ...]:
    task = service.registry[name].manifest.entailment
    return () if task is None else task.labels


def _check_time(call: ServedRequest, encoder: Scorer, pair: Scorer, documents: Documents, claims: list[str]) -> None:
    """Check how long all of it takes, before any model has read a word.

    Raises:
        TooSlow: longer than the time that is left; says how many characters of documents, or claims, are not.
    """
    context, admissions = call.context, call.service.queue.admissions
    texts, count, sentences = [each.text for each in documents.passages], len(claims), len(documents.sentences)
    usual_once, usual_each = expected_seconds(encoder, pair, sentences, len(texts))
    # Of which a claim's passages may be, and as `verify` goes on to expect of texts of these lengths.
    longest = sorted(texts, key=len)[-BEST:]
    of_passages = pair.seconds_of("entailment", longest, [claims[i % count] for i in range(len(longest))])
    many = texts[:sentences] * -(-_MANY // sentences)  # a batch costs too
    once = encoder.seconds_of(None, many) * sentences / len(many)
    each = max(encoder.seconds_of(None, claims) / count + of_passages, usual_each * once / usual_once)
    chars = sum(sentence.end - sentence.start for sentence in documents.sentences)
    if (error := admissions.too_slow(context, once + each, usual_once + usual_each)) is not None:  # not even one claim
        raise error.of("documents", chars, "characters of documents", least=each)
    if (error := admissions.too_slow(context, once + count * each, usual_once + count * usual_each)) is not None:
        raise error.of("claims", count, least=once)
