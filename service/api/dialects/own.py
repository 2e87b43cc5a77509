"""Our own requests to models: check limits, find the model, ask it, build the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from contract.measures import to_digits
from contract.scoring import most_likely
from contract.tokenizer import Encoded
from service.api.claims import answer_verification
from service.api.dialects.scoring import DialectContext, rows_of
from service.api.family import Dialect
from service.api.labelling import answer_claims, answer_classify
from service.api.limits import counted
from service.api.operation import Operation
from service.api.ranking import answer_rank
from service.errors import RequestError, TooLarge
from service.schemas import (
    SCALES,
    Answer,
    ClaimsRequest,
    ClaimsResponse,
    ClassifyRequest,
    ClassifyResponse,
    EmbedRequest,
    EmbedResponse,
    EntailmentRequest,
    EntailmentResponse,
    ErrorResponse,
    ExplainRequest,
    ExplainResponse,
    RankRequest,
    RankResponse,
    SimilarityRequest,
    SimilarityResponse,
)
from service.scoring.explaining import explain as explained
from service.scoring.languages import add_hints
from service.scoring.scorer import Scorer

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
        scorer: Scorer, pairs: Sequence[Mapping[str, Any]], names: tuple[str, str]
    ) -> tuple[Sequence[Encoded], Sequence[Encoded]]:
        """Read both texts of each pair, after a check of their lengths; `names` are the fields that hold them."""
        texts = [pair[name] for pair in pairs for name in names]

        def field_of(i: int) -> str:
            return f"pairs.{i // 2}.{names[i % 2]}"

        limits.check_texts(texts, field_of)
        sentences = await scorer.read(texts, field_of)
        return scorer.fit(sentences[::2], sentences[1::2])

    async def similarity(request: SimilarityRequest) -> tuple[str, SimilarityResponse]:
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        scorer = await registry.pick(request.model or defaults["/similarity"], request.task)
        with counted("pairs", len(request.pairs)):
            a, b = await read_pairs(scorer, request.pairs, ("a", "b"))
            raw, ratings, scores = await scorer.similarity(a, b, request.task)
        results: list[Answer] = [
            {
                "score": score,
                "raw_score": raw_score,
                "tokens": (len(ids), len(ids_b)),
                "truncated": (cut, cut_b),
                "unknown": (_share(unknown, words), _share(unknown_b, words_b)),
            }
            for score, raw_score, (ids, words, unknown, cut, _), (ids_b, words_b, unknown_b, cut_b, _) in zip(
                scores, raw, a, b, strict=True
            )
        ]
        add_hints(results, a, b)
        if ratings is not None and (scale := scorer.rating_scale) is not None:
            for result, rating in zip(results, ratings, strict=True):
                result["rating"] = rating
                result["rating_scale"] = scale
        return scorer.id, {"model": scorer.id, "scale": SCALES[request.task], "results": results}

    async def rank(request: RankRequest) -> tuple[str, RankResponse]:
        return await answer_rank(service, limits, request)

    async def explain(request: ExplainRequest) -> tuple[str, ExplainResponse]:
        scorer = await registry.pick(request.model or defaults["/explain"], "explanation")
        texts = [request.a, request.b]
        limits.check_texts(texts, "ab".__getitem__)
        a, b = sentences = await scorer.read(texts, "ab".__getitem__)
        limit = settings.max_explained_tokens
        for field, sentence in zip("ab", sentences, strict=True):
            if len(sentence.ids) > limit:
                message = f"{len(sentence.ids)} tokens to explain, the limit is {limit}"
                raise TooLarge(message, field=field, limit=limit)
        return scorer.id, await explained(scorer, a, b)

    async def entailment(request: EntailmentRequest) -> tuple[str, EntailmentResponse]:
        scorer = await registry.pick(request.model or defaults["/entailment"], "entailment")
        if request.pairs is None or request.premise is not None or request.hypotheses is not None:
            return scorer.id, await answer_claims(limits, scorer, request)
        limits.check_count("pairs", len(request.pairs), "max_pairs")
        premises, hypotheses = await read_pairs(scorer, request.pairs, ("premise", "hypothesis"))
        with counted("pairs", len(request.pairs)):
            answers = await scorer.entailment(premises, hypotheses)
        results: list[Answer] = [
            {
                "label": most_likely(probabilities),
                "probabilities": probabilities,
                "truncated": (premise.truncated, hypothesis.truncated),
            }
            for probabilities, premise, hypothesis in zip(answers, premises, hypotheses, strict=True)
        ]
        add_hints(results, premises, hypotheses)
        return scorer.id, {"model": scorer.id, "results": results}

    async def claims(request: ClaimsRequest) -> tuple[str, ClaimsResponse]:
        return await answer_verification(service, limits, request)

    async def classify(request: ClassifyRequest) -> tuple[str, ClassifyResponse]:
        return await answer_classify(service, limits, request)

    async def embed(request: EmbedRequest) -> tuple[str, EmbedResponse]:
        def field_of(i: int) -> str:
            return f"sentences.{i}"

        limits.check_count("sentences", len(request.sentences), "max_sentences")
        scorer = await registry.pick(request.model or defaults["/embed"], "embedding")
        limits.check_texts(request.sentences, field_of)
        sentences = await scorer.read(request.sentences, field_of, role=request.role)
        with counted("sentences", len(sentences)):
            matrix = await scorer.embed(sentences)
        answer: EmbedResponse = {
            "model": scorer.id,
            "dim": matrix.shape[1],
            "embeddings": rows_of(matrix),
            "truncated": [sentence.truncated for sentence in sentences],
        }
        if any(hints := [sentence.language for sentence in sentences]):
            answer["language"] = hints
        return scorer.id, answer

    return [
        Operation("/similarity", similarity, OURS, "Score pairs of sentences"),
        Operation("/rank", rank, OURS, "Order candidates by their relevance, or similarity, to a query"),
        Operation("/explain", explain, OURS, "Show what made the score of two sentences"),
        Operation("/entailment", entailment, OURS, "Label pairs of premise and hypothesis, or claims about a document"),
        Operation("/claims", claims, OURS, "What documents say of claims, and where"),
        Operation("/classify", classify, OURS, "Label texts"),
        Operation("/embed", embed, OURS, "Embed sentences"),
    ]


def _share(part: int, whole: int) -> float:
    return to_digits(part / whole) if part else 0.0  # most texts have no unknown word
