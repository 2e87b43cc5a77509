"""What the requests and answers of several families have in common."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

ModelName = Annotated[
    str | None,
    Field(
        description="one of ours, ID or ID@VERSION, or a name of SEMBLANCE_MODEL_ALIASES; without it, the default model"
    ),
]


class ForeignRequest(BaseModel):
    """What another service's client sends; what it sends besides the fields we know is ignored, as there."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Usage(TypedDict):
    """Tokens read, as Jina, vLLM and OpenAI call them."""

    prompt_tokens: int
    total_tokens: int


def usage(tokens: int) -> Usage:
    """So many tokens read, and none written."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _one_or_many(value: object) -> str | list[str]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("texts", "expected a text or a list of texts")
    if not value:
        raise PydanticCustomError("texts", "expected at least one text")
    for i, item in enumerate(value):
        if isinstance(item, int | list):
            raise PydanticCustomError(
                "token_ids",
                "token ids are of another model's vocabulary, send texts "
                "(LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))",
            )
        if not isinstance(item, str):
            raise PydanticCustomError("texts", "item {position} is no text", {"position": i})
    return value


def _document(value: object) -> str | Mapping[str, str]:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value and all(isinstance(text, str) for text in value.values()):
        return value
    raise PydanticCustomError("document", "expected a text, or an object of texts")


def _pair(value: object) -> tuple[str, str] | None:
    match value:
        case [str(premise), str(hypothesis)]:
            return premise, hypothesis
    return None


def _one_pair_or_many(value: object) -> tuple[str, str] | list[tuple[str, str]]:
    if pair := _pair(value):
        return pair
    if isinstance(value, list) and value:
        pairs = [pair for item in value if (pair := _pair(item))]
        if len(pairs) == len(value):
            return pairs
    raise PydanticCustomError("pairs", "expected a pair of texts [premise, hypothesis], or a list of such pairs")


OneOrMany = Annotated[str | list[str], PlainValidator(_one_or_many, json_schema_input_type=str | list[str])]
Document = Annotated[str | Mapping[str, str], PlainValidator(_document, json_schema_input_type=str | dict[str, str])]
OnePairOrMany = Annotated[
    tuple[str, str] | list[tuple[str, str]],
    PlainValidator(_one_pair_or_many, json_schema_input_type=tuple[str, str] | list[tuple[str, str]]),
]
