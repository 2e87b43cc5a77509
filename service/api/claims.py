"""`POST /claims`: documents and claims are checked against their limits and the time that is left, then verified."""

from service.api.limits import RequestLimits, counted
from service.errors import EmptyText, InvalidRequest, TooSlow, UnsupportedTask
from service.schemas import ClaimsRequest, ClaimsResponse
from service.scoring.scorer import Scorer
from service.scoring.verification import Documents, expected_seconds, read_documents, verify
from service.service import Service

CONTRADICTION = "contradiction"  # the label that a model must have


async def answer_verification(
    service: Service, limits: RequestLimits, request: ClaimsRequest
) -> tuple[str, ClaimsResponse]:
    """Hold each claim against all documents: the model that answered, and the answer.

    Raises:
        RequestError: no such model, or one that knows no contradiction; a text that does not fit, or has no sentence;
            more claims or characters than the limits, or than would be done in time.
    """
    registry, defaults = service.registry, service.defaults
    name = request.model or defaults["/claims"]
    labels = registry.find(name, "entailment").manifest.entailment
    if labels is not None and CONTRADICTION not in labels.labels:
        able = [each for each in registry.able("entailment") if CONTRADICTION in _labels(service, each)]
        raise UnsupportedTask(name, CONTRADICTION, able)
    given = [request.documents] if isinstance(request.documents, str) else request.documents
    limits.check_count("claims", len(request.claims), "max_claims")
    limits.check_texts(request.claims, lambda i: f"claims.{i}")
    limits.check_documents(given)
    pair = await registry.pick(name, "entailment")
    encoder = await registry.pick(request.encoder or defaults["/embed"], "embedding", "encoder")
    documents = await read_documents(service.pool, given)
    for i in sorted(set(range(len(given))) - set(documents.of)):
        field = "documents" if isinstance(request.documents, str) else f"documents.{i}"
        if not given[i].strip():
            raise EmptyText(field)
        raise InvalidRequest("there is no sentence, but headings at most", field=field)
    count = len(request.claims)
    _check_time(encoder, pair, documents, count, service.pool.possible)
    with counted("claims", count):
        return pair.id, await verify(encoder, pair, service.pool, documents, request.claims)


def _labels(service: Service, name: str) -> tuple[str, ...]:
    task = service.registry[name].manifest.entailment
    return () if task is None else task.labels


def _check_time(encoder: Scorer, pair: Scorer, documents: Documents, count: int, most: float) -> None:
    """Check how long all of it takes, before any model has read a word.

    Raises:
        TooSlow: longer than `most` seconds of work; says how many characters of documents, or claims, do not.
    """
    once, each = expected_seconds(encoder, pair, len(documents.sentences), len(documents.passages))
    if once + each > most:  # not even one claim
        chars = sum(sentence.end - sentence.start for sentence in documents.sentences)
        room = max(most - each, 0.0)
        raise TooSlow(once + each, room).of("documents", chars, "characters of documents")
    if once + count * each > most:
        error = TooSlow(once + count * each, most)
        raise error.of("claims", count, least=once)
