"""Cohere: `rerank` and `tokenize` as `cohere.Client` (v1) and `cohere.ClientV2` post to them, `rerank` on the root too.

Jina's and vLLM's clients post rankings of the same shape: one request and one answer have the fields of all, and each
ignores the others' fields of the answer. `embed` is in `cohere_embed.py`.
"""

import time
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.errors import InvalidRequest, quote
from service.routes.dialects import COHERE
from service.routes.fields import (
    Activation,
    AllowedValues,
    ChangesAnswer,
    Document,
    ForeignRequest,
    ModelName,
    Truncate,
    TruncateTokens,
    TruncationSide,
    Usage,
    usage,
)
from service.routes.foreign import compare, tokenise
from service.routes.limits import RequestTexts, Truncation
from service.routes.routing import JsonAnswer, ServedRequest, Unwritable, router_for
from service.schemas import Text
from service.scoring.tokenising import check_chars

router = router_for(COHERE, "Cohere", "/cohere")
# Where clients of Cohere and Jina look by themselves: nothing of ours stands there.
root = router_for(COHERE, "Cohere")
_MAX_RANK_FIELDS = 8  # each is looked up in every document
_BYTES_OF_A_VALUE = 8  # of a body, at least, of documents with many
_SEARCH_UNIT = 100  # documents, by Cohere's definition


# A name that is repeated counts once: no text is joined with itself.
_RankFields = Annotated[
    list[str],
    Field(min_length=1, max_length=_MAX_RANK_FIELDS, fail_fast=True),
    AfterValidator(lambda names: list(dict.fromkeys(names))),
]


class RerankRequest(ForeignRequest):
    """Documents to order by their similarity to a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "Who plays?", "documents": ["A dog sleeps.", "A man plays a guitar."], "top_n": 1},
                {"query": "Who plays?", "documents": [{"text": "A man plays."}], "return_documents": True},
            ]
        }
    )

    query: Text
    documents: list[Document] = Field(min_length=1, fail_fast=True, description="texts, or objects that hold one")
    model: ModelName = None
    top_n: Annotated[int | None, ChangesAnswer(1)] = Field(
        None, ge=0, description="how many of the best to return; all without it, or with 0"
    )
    top_k: Annotated[int | None, ChangesAnswer(1)] = Field(
        None, ge=1, description="the same, as Voyage calls it; with both, the fewer"
    )
    return_documents: Annotated[bool | None, ChangesAnswer(True)] = None
    rank_fields: Annotated[_RankFields | None, ChangesAnswer(["title"])] = Field(
        None, description="fields that make a document's text (Cohere)"
    )
    max_tokens_per_doc: Annotated[int | None, ChangesAnswer(3)] = Field(None, ge=0, description="Cohere, vLLM; 0: all")
    max_tokens_per_query: Annotated[int | None, ChangesAnswer(1)] = Field(None, ge=0, description="vLLM; 0: all")
    max_chunks_per_doc: Annotated[int | None, ChangesAnswer(2, note="above 1 only where nothing is cut")] = Field(
        None, ge=1, description="Cohere v1; a document is one chunk, up to the model's limit"
    )
    truncation: Annotated[bool | None, ChangesAnswer(False)] = Field(
        None, description="Voyage; false: a text that would be cut is refused"
    )
    truncate: Truncate = None
    truncate_prompt_tokens: TruncateTokens = None
    truncation_side: TruncationSide = None
    use_activation: Activation = Field(None, description="false: the model's own score, not calibrated (vLLM)")
    activation: Activation = Field(None, description="the same, as vLLM called it before")
    softmax: Activation = Field(None, description="the same, as vLLM called it before")
    raw_scores: Annotated[bool | None, ChangesAnswer(True)] = Field(None, description="the same, as infinity calls it")
    relevant_spans: Annotated[
        dict[str, Any] | None,
        AllowedValues(
            None, {}, {"mode": "disabled"}, refuses=({"mode": "enabled"},), says="a document gets a score, not spans"
        ),
    ] = None
    return_embeddings: Annotated[
        bool | None,
        AllowedValues(None, False, refuses=(True,), says="embeddings are not returned: POST /v1/embeddings"),
    ] = None

    def text_of(self, i: int) -> str:
        """The text of the i-th document.

        Raises:
            InvalidRequest: it has none of the fields that make one.
            TooLarge: the text would be longer than the limit; checked before its parts are joined.
        """
        document = self.documents[i]
        if isinstance(document, str):
            return document
        fields = self.rank_fields or ["text"]
        parts = [document[name] for name in fields if name in document]
        if not parts:
            raise InvalidRequest(f"a document without {' or '.join(map(quote, fields))}", field=f"documents.{i}")
        for name in fields:
            if not isinstance(document.get(name, ""), str):
                raise InvalidRequest("expected a text", field=f"documents.{i}.{quote(name)[1:-1]}")
        check_chars(f"documents.{i}", sum(map(len, parts)) + len(parts) - 1)
        return "\n".join(parts)

    @property
    def raw(self) -> bool:
        """Whether scores are to be the model's own."""
        return False in (self.use_activation, self.activation, self.softmax) or self.raw_scores is True

    def cutting(self, tokens: int | None, chunks: int | None = None) -> Truncation:
        """How to cut texts of one kind, whose own limit is `tokens`, and of which so many chunks are wanted."""
        left = self.truncation_side == "left" or self.truncate == "START"
        cut = self.truncation is not False and self.truncate not in (False, "NONE")
        return Truncation.to(tokens or None, self.truncate_prompt_tokens, keep_end=left, chunks=chunks, allowed=cut)


class RerankResult(TypedDict):
    """The relevance of one document."""

    index: Annotated[int, Field(description="its position in the request")]
    relevance_score: float
    document: NotRequired[Annotated[dict[str, Any], Field(description="as it was sent; a text as {text}")]]


class ApiVersion(TypedDict):
    """The version of Cohere's API."""

    version: str


class BilledUnits(TypedDict):
    """As Cohere would count; nothing is billed here."""

    search_units: int


class TokenUsage(TypedDict):
    """Tokens read, as Cohere calls them."""

    input_tokens: int
    output_tokens: Literal[0]


class Meta(TypedDict):
    """Cohere's metadata of a ranking."""

    api_version: ApiVersion
    billed_units: BilledUnits
    tokens: TokenUsage
    warnings: NotRequired[Annotated[list[str], Field(description="one for each text that was cut")]]


class RerankResponse(TypedDict):
    """The documents, best first; of equal ones the earlier first."""

    id: str
    object: Literal["rerank"]
    created: int
    model: str
    results: list[RerankResult]
    usage: Usage
    meta: Meta


class CohereTokenizeRequest(ForeignRequest):
    """A text to cut into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A man plays a guitar."}]})

    text: Text
    model: ModelName = None


class TokensMeta(TypedDict):
    """Cohere's metadata of tokens."""

    api_version: ApiVersion
    warnings: NotRequired[Annotated[list[str], Field(description="that the text was cut")]]


class CohereTokens(TypedDict):
    """The tokens that the model reads."""

    tokens: list[int]
    token_strings: list[str]
    meta: TokensMeta


@root.post("/v1/rerank", summary="Order documents", response_model=RerankResponse)
@router.post("/v1/rerank", summary="Order documents", response_model=RerankResponse)
async def rerank_v1(request: RerankRequest, call: ServedRequest) -> Response:
    """Order documents by their relevance, or similarity, to a query."""
    return await _rerank(request, call, "1")


@root.post("/v2/rerank", summary="Order documents", response_model=RerankResponse)
@router.post("/v2/rerank", summary="Order documents", response_model=RerankResponse)
async def rerank_v2(request: RerankRequest, call: ServedRequest) -> Response:
    """Order documents by their relevance, or similarity, to a query."""
    return await _rerank(request, call, "2")


async def _rerank(request: RerankRequest, call: ServedRequest, api_version: str) -> Response:
    call.check_count("documents", len(request.documents), "max_candidates")
    texts = [request.text_of(i) for i in range(len(request.documents))]
    found = await compare(
        call.context,
        call.service,
        "/rank",
        request.model,
        RequestTexts.of("query", request.query, request.cutting(request.max_tokens_per_query)),
        RequestTexts.of("documents", texts, request.cutting(request.max_tokens_per_doc, request.max_chunks_per_doc)),
        raw=request.raw,
    )
    best = found.order[: request.top_n or None][: request.top_k]
    meta: Meta = {
        "api_version": {"version": api_version},
        "billed_units": {"search_units": -(-len(texts) // _SEARCH_UNIT)},
        "tokens": {"input_tokens": found.tokens, "output_tokens": 0},
    }
    if found.warnings:
        meta["warnings"] = found.warnings

    def make() -> RerankResponse:
        results: list[RerankResult] = [{"index": i, "relevance_score": found.scores[i]} for i in best]
        if request.return_documents:
            for result in results:
                given = request.documents[result["index"]]
                result["document"] = {"text": given} if isinstance(given, str) else dict(given)
        return {
            "id": call.request_state.id,
            "object": "rerank",
            "created": int(time.time()),
            "model": found.model,
            "results": results,
            "usage": usage(found.tokens),
            "meta": meta,
        }

    given_back = len(call.request_state.body) // _BYTES_OF_A_VALUE if request.return_documents else 0
    try:
        return await call.answer(found.model, 3 * len(best) + len(found.warnings) + given_back, make)
    except Unwritable:  # to write one by another library takes long, and nobody else has a turn meanwhile
        message = "so many that have an integer of more than 64 bits are not given back: leave out return_documents"
        raise InvalidRequest(message, field="documents") from None


@router.post("/v1/tokenize", summary="Cut a text into tokens", response_model=CohereTokens)
async def tokenize(request: CohereTokenizeRequest, call: ServedRequest) -> Response:
    """Give the tokens that the model reads of a text."""
    scorer, (read,), warnings = await tokenise(call, request.model, RequestTexts.of("text", request.text))
    meta: TokensMeta = {"api_version": {"version": "1"}}
    if warnings:
        meta["warnings"] = warnings
    answer: CohereTokens = {"tokens": list(read.ids), "token_strings": scorer.tokens(read), "meta": meta}
    return JsonAnswer(answer, scorer.id)
