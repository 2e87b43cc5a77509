"""Our own requests to models: check limits, find the model, ask it, build the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.measures import to_digits
from core.ranking import ConfidenceFit, Match, digest_of, texts_of
from core.scoring import most_likely
from core.tokenizer import Encoded
from service.engine.context import RequestContext
from service.errors import (
    EmptyText,
    InvalidRequest,
    RequestError,
    TooLarge,
    TooSlow,
    UnknownModel,
    UnsupportedTask,
    some,
)
from service.routes.body import RequestLimits, counted
from service.routes.dialects.scoring import DialectContext, rows_of
from service.routes.duplicates import answer_duplicates
from service.routes.labelling import answer_classify
from service.routes.operation import Dialect, Operation
from service.routes.texts import RequestTexts
from service.schemas import (
    SCALES,
    Answer,
    ClaimsRequest,
    ClaimsResponse,
    ClassifyRequest,
    ClassifyResponse,
    DedupeRequest,
    DuplicatesResponse,
    EmbedRequest,
    EmbedResponse,
    EntailmentRequest,
    EntailmentResponse,
    Entry,
    ErrorResponse,
    ExplainRequest,
    ExplainResponse,
    RankRequest,
    RankResponse,
    SimilarityRequest,
    SimilarityResponse,
)
from service.scoring.explaining import explain as explained
from service.scoring.ranking import RERANK_TOP, Candidates, Wanted
from service.scoring.ranking import rank as ranked
from service.scoring.scorer import Scorer
from service.scoring.verification import Documents, expected_seconds, read_documents, verify
from service.service import Service

_FIELDS: dict[Match, tuple[str, ...]] = {
    "question": (".question",),
    "answer": (".answer",),
    "both": ("",),  # an error of both as one text names the entry
    "either": (".question", ".answer"),
}
CONTRADICTION = "contradiction"  # the label that a model must have
_ERRORS = {
    400: "The body is not JSON, or the request not HTTP",
    401: "The API key is missing or wrong",
    404: "No such model",
    408: "The request did not arrive in time",
    413: "The body, a list or a text is over its limit",
    415: "The body is not declared as JSON",
    422: "A field does not fit, a text is empty, or the model lacks the task",
    429: "Too much is waiting, or this caller asks too often",
    431: "The headers are over their limit",
    500: "The service failed",
    503: "No answer in time",
}


async def answer_rank(
    context: RequestContext, service: Service, limits: RequestLimits, request: RankRequest
) -> tuple[str, RankResponse]:
    """Order the candidates or entries of a request: the id of the first stage's model, and the answer.

    Raises:
        RequestError: a field or a text does not fit, no such model, or `min_confidence` without a fit.
    """
    if (request.candidates is None) == (request.entries is None):
        raise InvalidRequest("expected either candidates, or entries of an FAQ", field="candidates")
    candidates = _candidates(limits, request)
    default = service.defaults["/rank"]
    try:
        first = await service.registry.pick(context, request.model or default, "similarity", ranks=True)
    except UnknownModel as error:
        raise error.answered_by(default) from None
    second = await _second_stage(context, service, request)
    limits.check_texts(RequestTexts.of("query", request.query))
    limits.check_texts(RequestTexts(candidates.texts, candidates.field_of))
    top = min(request.rerank_top or RERANK_TOP, candidates.size)
    possible = service.queue.admissions.possible(context)
    if second is not None:
        limits.check_time(second, "rerank_top", top * candidates.each, possible)
    if first.manifest.family == "interaction":  # whose pairs with a new query are all new
        limits.check_time(first, candidates.field, len(candidates.texts), possible, at_least=0.5)
    fit = _fit(request, first, second, candidates.size)
    asks_least = request.min_score is not None or request.min_confidence is not None
    own_threshold = None if fit is None or asks_least else fit.threshold
    wanted = Wanted(
        top_k=request.top_k,
        rerank_top=top,
        fit=fit,
        min_score=request.min_score,
        threshold=own_threshold if request.min_confidence is None else request.min_confidence,
        declines=asks_least or request.entries is not None,
    )
    with counted(candidates.field, candidates.size):
        answer = await ranked(context, first, request.query, candidates, second, wanted)
    if request.entries is not None:
        for result in (*answer["results"], *answer.get("suggestions", ())):
            if (name := request.entries[result["index"]].get("id")) is not None:
                result["id"] = name
    return first.id, answer


def _candidates(limits: RequestLimits, request: RankRequest) -> Candidates:
    """The texts to order, and where in the request each stands; their number within its limit."""
    if request.candidates is not None:
        limits.check_count("candidates", len(request.candidates), "max_candidates")
        return Candidates("candidates", request.candidates)
    entries = request.entries or []
    names = _FIELDS[request.match]
    _check_entries(entries)
    limits.check_count("entries", len(entries) * len(names), "max_candidates")
    texts = [text for entry in entries for text in texts_of(entry["question"], entry["answer"], request.match)]
    return Candidates("entries", texts, names)


def _check_entries(entries: Sequence[Entry]) -> None:
    """Refuse what the command refuses in a file: a text that nobody sees, and an id that names two entries."""
    places: dict[str, int] = {}
    for place, entry in enumerate(entries):
        for name in ("question", "answer"):
            if not entry[name].strip():
                raise InvalidRequest("the text has no visible character", field=f"entries.{place}.{name}")
        if (known := entry.get("id")) is not None and places.setdefault(known, place) != place:
            message = f"{known!r} is the id of entries.{places[known]} too"
            raise InvalidRequest(message, field=f"entries.{place}.id")


async def _second_stage(context: RequestContext, service: Service, request: RankRequest) -> Scorer | None:
    """The model of the second stage, if the request asks for one."""
    if request.rerank_model is None and request.rerank_top is None:
        return None
    name = request.rerank_model or service.reranker
    if name is None:
        able = some(service.registry.able("similarity"))
        message = f"there is no default model for the second stage; name one of: {able}"
        raise InvalidRequest(message, field="rerank_model")
    return await service.registry.pick(context, name, "similarity", field="rerank_model", ranks=True)


def _fit(request: RankRequest, first: Scorer, second: Scorer | None, count: int) -> ConfidenceFit | None:
    """What makes `confidence` of a ranking: the request's own fit, else that of the first model; None: nothing.

    Raises:
        InvalidRequest: the request's fit is for other models, or there is none and `min_confidence` needs one.
    """
    of_first = first.id, first.manifest.fingerprint
    of_second = None if second is None else (second.id, second.manifest.fingerprint)
    wanted_top = request.rerank_top or RERANK_TOP
    own = request.confidence_fit
    if own is not None and not own.is_for(of_first, of_second, wanted_top):
        message = "it was fitted for other models, other versions of them or another rerank_top: choose again"
        raise InvalidRequest(message, field="confidence_fit")
    if own is not None and request.entries is not None and own.match not in (None, request.match):
        message = f"it was fitted with match {own.match!r}: ask with that, or choose again"
        raise InvalidRequest(message, field="confidence_fit")
    if own is not None and own.entries is not None:
        given = digest_of((entry["question"], entry["answer"]) for entry in request.entries or ())
        if given != own.entries:
            message = "it was fitted on other entries: one was changed, added or left out since; choose again"
            raise InvalidRequest(message, field="confidence_fit")
    published = (fit for fit in first.manifest.confidence if fit.is_for(of_first, of_second, wanted_top))
    fit = own or next(published, None)
    if request.min_confidence is None:
        return fit
    if fit is None:
        names = first.id if second is None else f"{first.id} before {second.id} with rerank_top {wanted_top}"
        message = (
            f"no confidence was fitted for {names}; min_score works with every model, and semblance choose --faq fits"
        )
        raise InvalidRequest(message, field="min_confidence")
    if min(count, wanted_top if second is not None else count) < 2:
        raise InvalidRequest("a confidence needs two candidates or more", field="min_confidence")
    return fit


async def answer_verification(
    context: RequestContext, service: Service, limits: RequestLimits, request: ClaimsRequest
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
    limits.check_texts(RequestTexts.of("claims", request.claims))
    limits.check_documents(given)
    pair = await registry.pick(context, name, "entailment")
    encoder = await registry.pick(context, request.encoder or defaults["/embed"], "embedding", "encoder")
    documents = await read_documents(context, service.queue, given)
    for i in sorted(set(range(len(given))) - set(documents.of)):
        field = "documents" if isinstance(request.documents, str) else f"documents.{i}"
        if not given[i].strip():
            raise EmptyText(field)
        raise InvalidRequest("there is no sentence, but headings at most", field=field)
    count = len(request.claims)
    _check_time(encoder, pair, documents, count, service.queue.admissions.possible(context))
    with counted("claims", count):
        return pair.id, await verify(context, encoder, pair, service.queue, documents, request.claims)


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


def _body(error: RequestError, _: int, request_id: str) -> Mapping[str, object]:
    return error.content(request_id)


OURS = Dialect("scoring", _body, ErrorResponse, {}, _ERRORS, strict=True)
# Of requests without a body, and of what is nowhere.
OPERATIONS = Dialect(
    "operations", _body, ErrorResponse, {}, {status: _ERRORS[status] for status in (401, 422, 429, 500)}, strict=True
)


def operations(scoring: DialectContext) -> list[Operation]:
    """The POST requests of our own format."""
    service, limits = scoring.service, scoring.limits
    settings, registry, defaults = service.settings, service.registry, service.defaults

    async def read_pairs(
        context: RequestContext, scorer: Scorer, pairs: Sequence[Mapping[str, Any]], names: tuple[str, str]
    ) -> tuple[Sequence[Encoded], Sequence[Encoded]]:
        """Read both texts of each pair, after a check of their lengths; `names` are the fields that hold them."""
        found = [pair[name] for pair in pairs for name in names]
        texts = RequestTexts(found, lambda i: f"pairs.{i // 2}.{names[i % 2]}")
        limits.check_texts(texts)
        sentences = await scorer.read(context, texts.texts, texts.where)
        return scorer.fit(sentences[::2], sentences[1::2])

    async def similarity(request: SimilarityRequest, context: RequestContext) -> tuple[str, SimilarityResponse]:
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        scorer = await registry.pick(context, request.model or defaults["/similarity"], request.task)
        with counted("pairs", len(request.pairs)):
            a, b = await read_pairs(context, scorer, request.pairs, ("a", "b"))
            raw, ratings, scores = await scorer.similarity(context, a, b, request.task)
        results: list[Answer] = [
            {
                "score": score,
                "raw_score": raw_score,
                "tokens": (len(ids), len(ids_b)),
                "truncated": (cut, cut_b),
                "unknown": (_share(unknown, words), _share(unknown_b, words_b)),
            }
            for score, raw_score, (ids, words, unknown, cut), (ids_b, words_b, unknown_b, cut_b) in zip(
                scores, raw, a, b, strict=True
            )
        ]
        if ratings is not None and (scale := scorer.rating_scale) is not None:
            for result, rating in zip(results, ratings, strict=True):
                result["rating"] = rating
                result["rating_scale"] = scale
        return scorer.id, {"model": scorer.id, "scale": SCALES[request.task], "results": results}

    async def rank(request: RankRequest, context: RequestContext) -> tuple[str, RankResponse]:
        return await answer_rank(context, service, limits, request)

    async def explain(request: ExplainRequest, context: RequestContext) -> tuple[str, ExplainResponse]:
        scorer = await registry.pick(context, request.model or defaults["/explain"], "explanation")
        texts = RequestTexts([request.a, request.b], "ab".__getitem__)
        limits.check_texts(texts)
        a, b = sentences = await scorer.read(context, texts.texts, texts.where)
        limit = settings.max_explained_tokens
        for field, sentence in zip("ab", sentences, strict=True):
            if len(sentence.ids) > limit:
                message = f"{len(sentence.ids)} tokens to explain, the limit is {limit}"
                raise TooLarge(message, field=field, limit=limit)
        return scorer.id, await explained(context, scorer, a, b)

    async def entailment(request: EntailmentRequest, context: RequestContext) -> tuple[str, EntailmentResponse]:
        scorer = await registry.pick(context, request.model or defaults["/entailment"], "entailment")
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        premises, hypotheses = await read_pairs(context, scorer, request.pairs, ("premise", "hypothesis"))
        with counted("pairs", len(request.pairs)):
            answers = await scorer.entailment(context, premises, hypotheses)
        results: list[Answer] = [
            {
                "label": most_likely(probabilities),
                "probabilities": probabilities,
                "truncated": (premise.truncated, hypothesis.truncated),
            }
            for probabilities, premise, hypothesis in zip(answers, premises, hypotheses, strict=True)
        ]
        return scorer.id, {"model": scorer.id, "results": results}

    async def claims(request: ClaimsRequest, context: RequestContext) -> tuple[str, ClaimsResponse]:
        return await answer_verification(context, service, limits, request)

    async def dedupe(request: DedupeRequest, context: RequestContext) -> tuple[str, DuplicatesResponse]:
        return await answer_duplicates(context, service, limits, request)

    async def classify(request: ClassifyRequest, context: RequestContext) -> tuple[str, ClassifyResponse]:
        return await answer_classify(context, service, limits, request)

    async def embed(request: EmbedRequest, context: RequestContext) -> tuple[str, EmbedResponse]:
        texts = RequestTexts.of("sentences", request.sentences)
        limits.check_count("sentences", len(request.sentences), "max_sentences")
        scorer = await registry.pick(context, request.model or defaults["/embed"], "embedding")
        limits.check_texts(texts)
        sentences = await scorer.read(context, texts.texts, texts.where, role=request.role)
        with counted("sentences", len(sentences)):
            matrix = await scorer.embed(context, sentences)
        answer: EmbedResponse = {
            "model": scorer.id,
            "dim": matrix.shape[1],
            "embeddings": rows_of(matrix),
            "truncated": [sentence.truncated for sentence in sentences],
        }
        return scorer.id, answer

    return [
        Operation("/similarity", similarity, OURS, "Score pairs of sentences"),
        Operation("/rank", rank, OURS, "Order candidates by their relevance, or similarity, to a query"),
        Operation("/explain", explain, OURS, "Show what made the score of two sentences"),
        Operation("/entailment", entailment, OURS, "Label pairs of premise and hypothesis, or claims about a document"),
        Operation("/claims", claims, OURS, "What documents say of claims, and where"),
        Operation("/dedupe", dedupe, OURS, "Which texts say the same"),
        Operation("/classify", classify, OURS, "Label texts"),
        Operation("/embed", embed, OURS, "Embed sentences"),
    ]


def _share(part: int, whole: int) -> float:
    return to_digits(part / whole) if part else 0.0  # most texts have no unknown word
