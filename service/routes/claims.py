"""`POST /claims`: each claim held against all documents."""

from starlette.responses import Response

from service.errors import EmptyText, InvalidRequest, TooSlow, UnsupportedTask
from service.routes.dialects import OURS
from service.routes.limits import MAX_CLAIMS, MAX_DOCUMENT_CHARS, MAX_DOCUMENTS, check_fixed
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import ClaimsRequest, ClaimsResponse
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts
from service.scoring.verification import Documents, expected_seconds, read_documents, verify
from service.service import Service

router = router_for(OURS, "scoring")
CONTRADICTION = "contradiction"  # the label that a model must have
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
        raise InvalidRequest("there is no sentence, but headings at most", field=field)
    count = len(request.claims)
    _check_time(encoder, pair, documents, count, service.queue.admissions.possible(context))
    context.items = "claims", count
    answer = await verify(context, encoder, pair, service.queue, documents, request.claims)
    return JsonAnswer(answer, pair.id)


def _labels(service: Service, name: str) -> tuple[str, ...]:
    task = service.registry[name].manifest.entailment
    return () if task is None else task.labels


def _check_time(encoder: Scorer, pair: Scorer, documents: Documents, count: int, possible: float) -> None:
    """Check how long all of it takes, before any model has read a word.

    Raises:
        TooSlow: longer than `possible` seconds of work; says how many characters of documents, or claims, do not.
    """
    once, each = expected_seconds(encoder, pair, len(documents.sentences), len(documents.passages))
    if once + each > possible:  # not even one claim
        chars = sum(sentence.end - sentence.start for sentence in documents.sentences)
        room = max(possible - each, 0.0)
        raise TooSlow(once + each, room).of("documents", chars, "characters of documents")
    if once + count * each > possible:
        error = TooSlow(once + count * each, possible)
        raise error.of("claims", count, least=once)
