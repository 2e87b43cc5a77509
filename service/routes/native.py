"""Our endpoints of pairs and texts: check the request, pick a model, tokenise, score, answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from core.labels import most_likely
from core.scoring import round_significant
from core.tokenizer import Encoded
from service.routes.dialects import OURS
from service.routes.foreign import rows_of, values_of
from service.routes.limits import MAX_EXPLAINED_TOKENS, check_fixed
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import (
    SCALES,
    Answer,
    EmbedRequest,
    EmbedResponse,
    EntailmentRequest,
    EntailmentResponse,
    ExplainRequest,
    ExplainResponse,
    SimilarityRequest,
    SimilarityResponse,
)
from service.scoring import explaining
from service.scoring.scorer import Scorer
from service.scoring.tokenising import check_texts

router = router_for(OURS, "scoring")


@router.post("/similarity", summary="Score pairs of sentences", response_model=SimilarityResponse)
async def similarity(request: SimilarityRequest, call: ServedRequest) -> Response:
    """Say how alike the two sentences of each pair are."""
    service, context = call.service, call.context
    call.check_count("pairs", len(request.pairs), "max_pairs")
    scorer = await service.pick(context, "/similarity", request.model, request.task)
    a, b = await _tokenise_pairs(call, scorer, request.pairs, ("a", "b"))
    raw, ratings, scores = await scorer.similarity(context, a, b, request.task)
    results: list[Answer] = [
        {
            "score": score,
            "raw_score": raw_score,
            "tokens": (len(ids_a), len(ids_b)),
            "truncated": (cut_a, cut_b),
            "unknown": (_share(unknown_a, words_a), _share(unknown_b, words_b)),
        }
        for score, raw_score, (ids_a, words_a, unknown_a, cut_a), (ids_b, words_b, unknown_b, cut_b) in zip(
            scores, raw, a, b, strict=True
        )
    ]
    if ratings is not None and (scale := scorer.rating_scale) is not None:
        for result, rating in zip(results, ratings, strict=True):
            result["rating"] = rating
            result["rating_scale"] = scale
    return JsonAnswer({"model": scorer.id, "scale": SCALES[request.task], "results": results}, scorer.id)


@router.post("/entailment", summary="Label pairs of premise and hypothesis", response_model=EntailmentResponse)
async def entailment(request: EntailmentRequest, call: ServedRequest) -> Response:
    """Say whether each hypothesis follows from its premise."""
    service, context = call.service, call.context
    call.check_count("pairs", len(request.pairs), "max_pairs")
    scorer = await service.pick(context, "/entailment", request.model, "entailment")
    premises, hypotheses = await _tokenise_pairs(call, scorer, request.pairs, ("premise", "hypothesis"))
    answers = await scorer.entailment_or_neutral(context, premises, hypotheses)
    results: list[Answer] = [
        {
            "label": most_likely(probabilities),
            "probabilities": probabilities,
            "truncated": (premise.truncated, hypothesis.truncated),
        }
        for probabilities, premise, hypothesis in zip(answers, premises, hypotheses, strict=True)
    ]
    return JsonAnswer({"model": scorer.id, "results": results}, scorer.id)


@router.post("/explain", summary="Show what made the score of two sentences", response_model=ExplainResponse)
async def explain(request: ExplainRequest, call: ServedRequest) -> Response:
    """Say what each word of two sentences adds to their score."""
    service, context = call.service, call.context
    scorer = await service.pick(context, "/explain", request.model, "explanation")
    check_texts([request.a, request.b], "ab".__getitem__)
    read = await scorer.tokenise(context, [request.a, request.b], "ab".__getitem__)
    (a,), (b,) = scorer.fit(read[:1], read[1:])
    for field, sentence in zip("ab", (a, b), strict=True):
        check_fixed(field, len(sentence.ids), MAX_EXPLAINED_TOKENS, "tokens to explain")
    return JsonAnswer(await explaining.explain(context, scorer, a, b), scorer.id)


@router.post("/embed", summary="Embed sentences", response_model=EmbedResponse)
async def embed(request: EmbedRequest, call: ServedRequest) -> Response:
    """Give the embedding of each sentence."""
    service, context = call.service, call.context
    call.check_count("sentences", len(request.sentences), "max_sentences")
    scorer = await service.pick(context, "/embed", request.model, "embedding")
    check_texts(request.sentences, "sentences.{}".format)
    sentences = await scorer.tokenise(context, request.sentences, "sentences.{}".format, role=request.role)
    context.items = "sentences", len(sentences)
    matrix = await scorer.embed(context, sentences)

    def make() -> Answer:
        return {
            "model": scorer.id,
            "dim": matrix.shape[1],
            "embeddings": rows_of(matrix),
            "truncated": [sentence.truncated for sentence in sentences],
        }

    return await call.answer(scorer.id, values_of(matrix), make)


async def _tokenise_pairs(
    call: ServedRequest, scorer: Scorer, pairs: Sequence[Mapping[str, Any]], names: tuple[str, str]
) -> tuple[Sequence[Encoded], Sequence[Encoded]]:
    """Tokenise both texts of each pair, after a check of their lengths; `names` are their fields."""
    call.context.items = "pairs", len(pairs)
    texts = [pair[name] for pair in pairs for name in names]

    def field_of(i: int) -> str:
        return f"pairs.{i // 2}.{names[i % 2]}"

    check_texts(texts, field_of)
    sentences = await scorer.tokenise(call.context, texts, field_of)
    return scorer.fit(sentences[::2], sentences[1::2])


def _share(part: int, total: int) -> float:
    return round_significant(part / total) if part else 0.0  # most texts have no unknown word
