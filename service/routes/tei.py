"""Hugging Face: Text Embeddings Inference (TEI), and the tasks of `huggingface_hub.InferenceClient`.

Answers are bare lists. A text that is longer than the model's limit is cut, or refused with `truncate: false`. Scores
are calibrated to 0..1, or raw with `raw_scores`.
"""

import math
import sys
from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core.manifest import Manifest, Role
from core.scoring import round_significant
from service.engine.graph import SentenceGraph
from service.errors import InvalidRequest, quote
from service.models.model import ServedModel
from service.routes.dialects import TEI
from service.routes.fields import AllowedValues, ChangesAnswer, ForeignRequest, ModelName, OneOrMany, TextsOrPairs
from service.routes.foreign import compare, entail, find_model, meant, resolve, rows_of, tokenise, values_of
from service.routes.foreign import embed as embedded
from service.routes.labelling import own_labels
from service.routes.limits import MAX_TOLD_TOKENS, RequestTexts, Truncation, check_fixed
from service.routes.operations import ready
from service.routes.paths import OPEN
from service.routes.routing import JsonAnswer, ServedRequest, router_for
from service.schemas import Readiness, Text
from service.service import Service
from service.version import version

_ROLES: dict[str, Role] = {"query": "query", "passage": "passage", "document": "passage", "text": "text"}  # of prompts
ONE_OUTPUT = "LABEL_0"  # as transformers call the output of a model with one
router = router_for(TEI, "TEI", "/tei")


class _TeiRequest(ForeignRequest):
    model: ModelName = None
    truncate: Annotated[bool | None, ChangesAnswer(False)] = None
    truncation_direction: Annotated[
        Literal["left", "Left", "right", "Right"], ChangesAnswer("left", note="left only where nothing is cut")
    ] = "right"

    @property
    def cutting(self) -> Truncation:
        """What to do with long texts."""
        return Truncation(allowed=self.truncate is not False, keep_end=self.truncation_direction.lower() == "left")


class TeiRerankRequest(_TeiRequest):
    """Texts to order by their similarity to a query."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Who plays?", "texts": ["A dog sleeps.", "A man plays a guitar."]}]}
    )

    query: Text
    texts: list[Text] = Field(min_length=1, fail_fast=True)
    raw_scores: Annotated[bool, ChangesAnswer(True)] = False
    return_text: Annotated[bool, ChangesAnswer(True)] = False


class TeiRank(TypedDict):
    """The relevance of one text."""

    index: Annotated[int, Field(description="its position in the request")]
    text: NotRequired[str]
    score: float


class TeiPredictRequest(_TeiRequest):
    """Pairs of premise and hypothesis, or texts, to label."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": [["Two dogs run.", "Animals run."]]}, {"inputs": "A lovely film."}]}
    )

    inputs: TextsOrPairs
    raw_scores: Annotated[bool, ChangesAnswer(True)] = Field(
        False, description="natural logarithms instead of probabilities"
    )
    parameters: Annotated[
        None, AllowedValues(None, {}, refuses=({"top_k": 1},), says="all labels and their probabilities are answered")
    ] = None


class TeiPrediction(TypedDict):
    """One label and its score."""

    score: float
    label: str


class TeiEmbedRequest(_TeiRequest):
    """Texts to embed, in TEI's form."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["A man plays a guitar."]}]})

    inputs: OneOrMany
    normalize: Annotated[bool, ChangesAnswer(False)] = Field(True, description="divide each embedding by its length")
    dimensions: Annotated[int | None, ChangesAnswer(2)] = Field(
        None, ge=1, description="how many numbers to keep, the first ones"
    )
    prompt_name: Annotated[str | None, ChangesAnswer("query")] = None
    encoding_format: Annotated[
        str | None, AllowedValues(None, "float", refuses=("base64",), says="embeddings are sent as numbers here")
    ] = None
    parameters: Annotated[
        None,
        AllowedValues(
            None,
            refuses=({}, {"candidate_labels": ["a", "b"]}),
            says="a text's labels are asked of POST /tei/predict, any labels of POST /classify with text and labels",
        ),
    ] = None


class TeiTokenizeRequest(ForeignRequest):
    """Texts to cut into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": "A man plays a guitar."}]})

    inputs: OneOrMany
    add_special_tokens: Annotated[
        bool | None,
        AllowedValues(None, False, refuses=(True,), says="special tokens are added by the model's graph, later"),
    ] = None
    prompt_name: Annotated[
        str | None, AllowedValues(None, refuses=("query",), says="texts are read without a prompt")
    ] = None
    model: ModelName = None


class TeiToken(TypedDict):
    """One token that the model reads; special tokens are added by its graph, and are not told here."""

    id: int
    text: str
    special: Literal[False]
    start: Annotated[None, Field(description="places in the text are not kept")]
    stop: None


class SentencesToCompare(ForeignRequest):
    """One sentence, and those to compare with it."""

    source_sentence: Text
    sentences: list[Text] = Field(min_length=1, fail_fast=True)


class TeiSimilarityParameters(_TeiRequest):
    """How the sentences are compared."""

    prompt_name: Annotated[
        str | None, AllowedValues(None, refuses=("query",), says="both texts of a similarity have one prompt")
    ] = None


class TeiSimilarityRequest(ForeignRequest):
    """One sentence, and those to compare with it: the task `sentence-similarity` of Hugging Face."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"inputs": {"source_sentence": "A man plays a guitar.", "sentences": ["Someone plays.", "A dog runs."]}}
            ]
        }
    )

    inputs: SentencesToCompare
    parameters: TeiSimilarityParameters | None = None
    model: ModelName = None


class TeiInfo(TypedDict):
    """The default model, or the one in `?model=`."""

    model_id: str
    model_sha: Annotated[str, Field(description="the model's fingerprint")]
    model_dtype: Literal["float32"]
    served_model_name: str
    model_type: Annotated[
        dict[str, dict[str, object]],
        Field(description="reranker, and embedding for models that embed; clients that know one kind read the first"),
    ]
    max_concurrent_requests: int
    max_input_length: Annotated[int, Field(description="tokens")]
    max_batch_tokens: int
    max_batch_requests: None
    max_client_batch_size: Annotated[int, Field(description="texts or pairs that every route takes in one request")]
    auto_truncate: Literal[True]
    tokenization_workers: int
    version: str


@router.post("", summary="Embed texts", response_model=list[list[float]])
@router.post("/embed", summary="Embed texts", response_model=list[list[float]])
async def embed(request: TeiEmbedRequest, call: ServedRequest) -> Response:
    """Give the embedding of each text."""
    service, context = call.service, call.context
    name = _known(service, request.model)
    role = _role_of(service, request.prompt_name, name)
    if isinstance(request.inputs, list):
        call.check_count("inputs", len(request.inputs), "max_sentences")
    texts = RequestTexts.of("inputs", request.inputs, request.cutting)
    found = await embedded(
        context, service, name, texts, unit=request.normalize, dimensions=request.dimensions, role=role
    )
    return await call.answer(found.model, values_of(found.embeddings), lambda: rows_of(found.embeddings))


@router.post("/similarity", summary="Compare one sentence with others", response_model=list[float])
async def similarity(request: TeiSimilarityRequest, call: ServedRequest) -> Response:
    """Say how alike a sentence and each of others are."""
    service, context = call.service, call.context
    inputs, parameters = request.inputs, request.parameters or TeiSimilarityParameters()
    cutting = parameters.cutting
    call.check_count("inputs.sentences", len(inputs.sentences), "max_pairs")
    found = await compare(
        context,
        service,
        "/similarity",
        _known(service, request.model or parameters.model),
        RequestTexts.of("inputs.source_sentence", inputs.source_sentence, cutting),
        RequestTexts.of("inputs.sentences", inputs.sentences, cutting),
    )
    return JsonAnswer(found.scores, found.model)


@router.post("/rerank", summary="Order texts", response_model=list[TeiRank])
async def rerank(request: TeiRerankRequest, call: ServedRequest) -> Response:
    """Order texts by their relevance, or similarity, to a query."""
    service, context = call.service, call.context
    call.check_count("texts", len(request.texts), "max_candidates")
    found = await compare(
        context,
        service,
        "/rank",
        _known(service, request.model),
        RequestTexts.of("query", request.query, request.cutting),
        RequestTexts.of("texts", request.texts, request.cutting),
        raw=request.raw_scores,
    )

    def make() -> list[TeiRank]:
        ranks: list[TeiRank] = [{"index": i, "score": found.scores[i]} for i in found.order]
        if request.return_text:
            for rank in ranks:
                rank["text"] = request.texts[rank["index"]]
        return ranks

    return await call.answer(found.model, len(TeiRank.__annotations__) * len(found.order), make)


@router.post(
    "/predict",
    summary="Label texts, or pairs of premise and hypothesis",
    response_model=list[TeiPrediction] | list[list[TeiPrediction]],
)
async def predict(request: TeiPredictRequest, call: ServedRequest) -> Response:
    """Give each text, or pair, its labels, the most probable first."""
    service, context = call.service, call.context
    rows, one = request.inputs
    call.check_count("inputs", len(rows), "max_pairs")
    name = _known(service, request.model)

    def side(which: int) -> RequestTexts:
        place = f"inputs.{which}" if one else f"inputs.{{}}.{which}"
        return RequestTexts([row[which] for row in rows], place.format, request.cutting)

    if len(rows[0]) == 1:
        texts = RequestTexts.of("inputs", rows[0][0], request.cutting) if one else side(0)
        scorer, answer = await own_labels(call, texts, meant(service, name))
        found = answer["results"]
        model, answers = scorer.id, [each["probabilities"] for each in found]
        cut = next((i for i, each in enumerate(found) if each["truncated"]), None)
        if cut is not None:
            refusal = request.cutting.refusal(scorer.manifest.limits.max_tokens, texts.where(cut))
            if refusal is not None:
                raise refusal
    elif name is not None and _has_one_output(find_model(service, name).manifest):
        # TEI answers for a reranker too, under the name of its one output.
        compared = await compare(context, service, "/rank", name, side(0), side(1), raw=request.raw_scores)
        scored: list[list[TeiPrediction]] = [
            [{"score": float(score), "label": ONE_OUTPUT}] for score in compared.scores
        ]
        return JsonAnswer(scored[0] if one else scored, compared.model)
    else:
        model, answers, _ = await entail(context, service, name, side(0), side(1))
    predictions = [_predictions_of(probabilities, request.raw_scores) for probabilities in answers]
    return JsonAnswer(predictions[0] if one else predictions, model)


@router.post("/tokenize", summary="Cut texts into tokens", response_model=list[list[TeiToken]])
async def tokenize(request: TeiTokenizeRequest, call: ServedRequest) -> Response:
    """Give the tokens that the model reads of each text."""
    texts = RequestTexts.of("inputs", request.inputs)
    scorer, read, _ = await tokenise(call, _known(call.service, request.model), texts)
    count = sum(len(each.ids) for each in read)
    check_fixed("inputs", count, MAX_TOLD_TOKENS, "tokens of all texts")

    def make() -> list[list[TeiToken]]:
        return [
            [
                {"id": i, "text": text, "special": False, "start": None, "stop": None}
                for i, text in zip(each.ids, scorer.tokens(each), strict=True)
            ]
            for each in read
        ]

    return await call.answer(scorer.id, len(TeiToken.__annotations__) * count, make)


@router.get("/info", summary="The default model, or the one named", response_model=TeiInfo)
async def info(call: ServedRequest, model: str | None = None) -> Response:
    """Describe the model that ranks."""
    service = call.service
    found = service.registry.choose(resolve(service, _known(service, model), "/rank"), "similarity")
    return JsonAnswer(_info(found, service))


router.get("/health", summary="Should requests be sent here?", response_model=Readiness, openapi_extra=OPEN)(ready)


def _known(service: Service, name: str | None) -> str | None:
    """The model that is asked for. Clients may send a name of the hub, which TEI ignores: ours have no slash."""
    return None if name is not None and "/" in name and name not in service.settings.model_aliases else name


def _role_of(service: Service, prompt: str | None, name: str | None) -> Role:
    """What the texts are for by the name of their prompt."""
    if prompt is None:
        return "text"
    model = service.registry.choose(resolve(service, name, "/embed"), "embedding")
    if model.manifest.prompts is None:
        raise InvalidRequest(f"model {model.release.id} has no prompts", field="prompt_name")
    if prompt not in _ROLES:
        raise InvalidRequest(f"prompts are {', '.join(_ROLES)}, not {quote(prompt)}", field="prompt_name")
    return _ROLES[prompt]


def _has_one_output(manifest: Manifest) -> bool:
    """Whether a model reads pairs and has nothing but a relevance: a reranker of one output."""
    return manifest.family == "interaction" and manifest.relevance is not None and manifest.entailment is None


def _predictions_of(probabilities: Mapping[str, float], raw: bool = False) -> list[TeiPrediction]:
    """Labels, the most probable first."""
    best_first = sorted(probabilities.items(), key=lambda item: -item[1])
    # A probability that underflowed to 0 counts as the smallest float.
    return [
        {"score": round_significant(math.log(max(value, sys.float_info.min))) if raw else value, "label": label}
        for label, value in best_first
    ]


def _info(model: ServedModel, service: Service) -> TeiInfo:
    manifest, settings, counts = model.manifest, service.settings, service.counts
    return {
        "model_id": manifest.id,
        "model_sha": manifest.fingerprint,
        "model_dtype": "float32",
        "served_model_name": manifest.id,
        "model_type": _model_type(manifest),
        "max_concurrent_requests": counts.workers * settings.max_in_flight,
        "max_input_length": manifest.limits.max_tokens,
        "max_batch_tokens": SentenceGraph.budget.size,
        "max_batch_requests": None,
        "max_client_batch_size": min(settings.max_pairs, settings.max_candidates, settings.max_sentences),
        "auto_truncate": True,
        "tokenization_workers": counts.worker_threads,
        "version": version(),
    }


def _model_type(manifest: Manifest) -> dict[str, dict[str, object]]:
    one = ONE_OUTPUT if _has_one_output(manifest) else "similarity"
    labels = manifest.entailment.labels if manifest.entailment else (one,)
    kinds: dict[str, dict[str, object]] = {
        "reranker": {
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)},
        }
    }
    if manifest.dim is not None:
        kinds["embedding"] = {"pooling": manifest.architecture}
    return kinds
