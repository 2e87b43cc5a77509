"""Hugging Face: Text Embeddings Inference (TEI), and the tasks of `huggingface_hub.InferenceClient`.

Answers are bare lists. A text that is longer than the model's limit is cut, or refused with `truncate: false`. Scores
are calibrated to 0..1, or raw with `raw_scores`.
"""

import math
import sys
from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from core.manifest import Manifest, Role
from core.measures import to_digits
from service.engine.context import RequestContext
from service.engine.graph import SentenceGraph
from service.errors import (
    EmptyText,
    InferenceFailed,
    InvalidRequest,
    Overloaded,
    RateLimited,
    RequestError,
    TookTooLong,
    TooLarge,
    Unauthorized,
    quote,
)
from service.models.model import ServedModel
from service.routes.dialects.fields import AllowedValues, Changes, ForeignRequest, ModelName, OneOrMany, TextsOrPairs
from service.routes.dialects.scoring import DialectContext, rows_of
from service.routes.operation import Dialect, Operation, ReadOperation, full_message
from service.routes.texts import RequestTexts, Truncation
from service.schemas import Text
from service.version import version

_ROLES: dict[str, Role] = {"query": "query", "passage": "passage", "document": "passage", "text": "text"}  # of prompts
_ERROR_TYPES: dict[type[RequestError], str] = {
    EmptyText: "Empty",
    Overloaded: "Overloaded",
    RateLimited: "Overloaded",
    TookTooLong: "Unhealthy",
    Unauthorized: "Unauthorized",
}


class TeiError(TypedDict):
    """The body of an error in TEI's form."""

    error: str
    error_type: Literal["Validation", "Empty", "Overloaded", "Backend", "Unhealthy", "Unauthorized"]


def _body(error: RequestError, status: int, _: str) -> Mapping[str, object]:
    otherwise = "Backend" if status >= 500 or isinstance(error, InferenceFailed) else "Validation"
    return {"error": full_message(error), "error_type": _ERROR_TYPES.get(type(error), otherwise)}


ONE_OUTPUT = "LABEL_0"  # as transformers call the output of a model with one
TEI = Dialect("TEI / Hugging Face", _body, TeiError, {EmptyText: 400, InferenceFailed: 424, TooLarge: 422})


class _TeiRequest(ForeignRequest):
    model: ModelName = None
    truncate: Annotated[bool | None, Changes(False)] = None
    truncation_direction: Annotated[
        Literal["left", "Left", "right", "Right"], Changes("left", note="left only where nothing is cut")
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
    raw_scores: Annotated[bool, Changes(True)] = False
    return_text: Annotated[bool, Changes(True)] = False


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
    raw_scores: Annotated[bool, Changes(True)] = Field(False, description="natural logarithms instead of probabilities")


class TeiPrediction(TypedDict):
    """One label and its score."""

    score: float
    label: str


class TeiEmbedRequest(_TeiRequest):
    """Texts to embed, in TEI's form."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["A man plays a guitar."]}]})

    inputs: OneOrMany
    normalize: Annotated[bool, Changes(False)] = Field(True, description="divide each embedding by its length")
    dimensions: Annotated[int | None, Changes(2)] = Field(
        None, ge=1, description="how many numbers to keep, the first ones"
    )
    prompt_name: Annotated[str | None, Changes("query")] = None
    encoding_format: Annotated[
        str | None, AllowedValues(None, "float", refuses=("base64",), says="embeddings are sent as numbers here")
    ] = None
    parameters: Annotated[
        None,
        AllowedValues(
            None,
            refuses=({}, {"candidate_labels": ["a", "b"]}),
            says="a text's labels are asked of POST /predict, any labels of POST /classify with text and labels",
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
    parameters: TeiSimilarityParameters = TeiSimilarityParameters()
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


def operations(scoring: DialectContext) -> list[Operation]:
    """The requests of this dialect."""

    def known(name: str | None) -> str | None:
        """The model that is asked for. Clients may send a name of the hub, which TEI ignores: ours have no slash."""
        return None if name is not None and "/" in name and name not in scoring.aliases else name

    def role_of(prompt: str | None, name: str | None) -> Role:
        """What the texts are for by the name of their prompt."""
        if prompt is None:
            return "text"
        model = scoring.service.registry.choose(scoring.resolve(name, "/embed"), "embedding")
        if model.manifest.prompts is None:
            raise InvalidRequest(f"model {model.release.id} has no prompts", field="prompt_name")
        if prompt not in _ROLES:
            raise InvalidRequest(f"prompts are {', '.join(_ROLES)}, not {quote(prompt)}", field="prompt_name")
        return _ROLES[prompt]

    async def tei_rerank(request: TeiRerankRequest, context: RequestContext) -> tuple[str, list[TeiRank]]:
        scoring.limits.check_count("texts", len(request.texts), "max_candidates")
        found = await scoring.compare(
            context,
            "/rank",
            known(request.model),
            RequestTexts.of("query", request.query, request.cutting),
            RequestTexts.of("texts", request.texts, request.cutting),
            raw=request.raw_scores,
        )
        ranks: list[TeiRank] = [{"index": i, "score": found.scores[i]} for i in found.order]
        if request.return_text:
            for rank in ranks:
                rank["text"] = request.texts[rank["index"]]
        return found.model, ranks

    async def tei_predict(
        request: TeiPredictRequest, context: RequestContext
    ) -> tuple[str, list[TeiPrediction] | list[list[TeiPrediction]]]:
        rows, one = request.inputs
        scoring.limits.check_count("inputs", len(rows), "max_pairs")

        def side(which: int) -> RequestTexts:
            place = f"inputs.{which}" if one else f"inputs.{{}}.{which}"
            return RequestTexts([row[which] for row in rows], place.format, request.cutting)

        if len(rows[0]) == 1:
            found = await scoring.label(
                context, known(request.model), RequestTexts.of("inputs", [text for (text,) in rows])
            )
            model, answers = found.model, found.probabilities
            if True in found.truncated:
                limit = scoring.service.registry[model].manifest.limits.max_tokens
                refusal = request.cutting.refusal(limit, side(0).where(found.truncated.index(True)))
                if refusal is not None:
                    raise refusal
        elif (named := known(request.model)) is not None and _has_one_output(scoring.find(named).manifest):
            # TEI answers for a reranker too, under the name of its one output.
            compared = await scoring.compare(
                context, "/rank", known(request.model), side(0), side(1), raw=request.raw_scores
            )
            scored: list[list[TeiPrediction]] = [
                [{"score": float(score), "label": ONE_OUTPUT}] for score in compared.scores
            ]
            return compared.model, scored[0] if one else scored
        else:
            model, answers, _ = await scoring.entail(context, known(request.model), side(0), side(1))
        predictions = [predictions_of(probabilities, request.raw_scores) for probabilities in answers]
        return model, predictions[0] if one else predictions

    async def tokenize(request: TeiTokenizeRequest, context: RequestContext) -> tuple[str, list[list[TeiToken]]]:
        scorer, read = await scoring.tokenise(context, known(request.model), RequestTexts.of("inputs", request.inputs))
        tokens: list[list[TeiToken]] = [
            [
                {"id": i, "text": text, "special": False, "start": None, "stop": None}
                for i, text in zip(each.ids, scorer.tokens(each), strict=True)
            ]
            for each in read
        ]
        return scorer.id, tokens

    async def tei_embed(request: TeiEmbedRequest, context: RequestContext) -> tuple[str, list[list[float]]]:
        role = role_of(request.prompt_name, known(request.model))
        if isinstance(request.inputs, list):
            scoring.limits.check_count("inputs", len(request.inputs), "max_sentences")
        found = await scoring.embed(
            context,
            known(request.model),
            RequestTexts.of("inputs", request.inputs, request.cutting),
            unit=request.normalize,
            dimensions=request.dimensions,
            role=role,
        )
        return found.model, rows_of(found.embeddings)

    async def tei_similarity(request: TeiSimilarityRequest, context: RequestContext) -> tuple[str, list[float]]:
        inputs, cutting = request.inputs, request.parameters.cutting
        scoring.limits.check_count("inputs.sentences", len(inputs.sentences), "max_pairs")
        found = await scoring.compare(
            context,
            "/similarity",
            known(request.model or request.parameters.model),
            RequestTexts.of("inputs.source_sentence", inputs.source_sentence, cutting),
            RequestTexts.of("inputs.sentences", inputs.sentences, cutting),
        )
        return found.model, found.scores

    async def info(model: str | None = None) -> TeiInfo:
        found = scoring.service.registry.choose(scoring.resolve(model, "/rank"), "similarity")
        return _info(found, scoring)

    similar = "Compare one sentence with others"
    embedded = "Embed texts"
    return [
        Operation("/rerank", tei_rerank, TEI, "Order texts", fields={"texts": object}),
        Operation("/predict", tei_predict, TEI, "Label texts, or pairs of premise and hypothesis"),
        Operation("/tokenize", tokenize, TEI, "Cut texts into tokens"),
        Operation("/embed", tei_embed, TEI, embedded, fields={"inputs": object}),
        Operation("/similarity", tei_similarity, TEI, similar, fields={"inputs": object}),
        # For clients that know only a base URL. TEI answers by the type of its model; here the body decides.
        Operation("/", tei_embed, TEI, embedded, fields={"inputs": (str, list)}),
        Operation("/", tei_similarity, TEI, similar, fields={"inputs": dict}),
        Operation("/", tei_rerank, TEI, "Order texts", fields={"texts": object}),
        ReadOperation("/info", info, TEI, "The default model, or the one named"),
    ]


def _has_one_output(manifest: Manifest) -> bool:
    """Whether a model reads pairs and has nothing but a relevance: a reranker of one output."""
    return manifest.family == "interaction" and manifest.relevance is not None and manifest.entailment is None


def predictions_of(probabilities: Mapping[str, float], raw: bool = False) -> list[TeiPrediction]:
    """Labels, the most probable first."""
    best_first = sorted(probabilities.items(), key=lambda item: -item[1])
    # A probability that underflowed to 0 counts as the smallest float.
    return [
        {"score": to_digits(math.log(max(value, sys.float_info.min))) if raw else value, "label": label}
        for label, value in best_first
    ]


def _info(model: ServedModel, scoring: DialectContext) -> TeiInfo:
    manifest, settings, counts = model.manifest, scoring.service.settings, scoring.service.counts
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
