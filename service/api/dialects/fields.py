"""Fields that several families share."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.schemas import Text, TextList, one_or_many

ModelName = Annotated[
    str | None,
    Field(description="one of ours, or a name of SEMBLANCE_MODEL_ALIASES; without it, the default model"),
]


class ForeignRequest(BaseModel):
    """A request in another service's format; unknown fields are ignored, as that service does."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Usage(TypedDict):
    """Tokens read, as Jina, vLLM and OpenAI call them."""

    prompt_tokens: int
    total_tokens: int


def usage(tokens: int) -> Usage:
    """The usage for `tokens` tokens read, none written."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _one_or_many(value: object) -> str | list[str]:
    if isinstance(value, list) and value and isinstance(value[0], int | list):
        raise PydanticCustomError(
            "token_ids",
            "token ids are of another model's vocabulary, send texts "
            "(LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))",
        )
    return one_or_many(value)


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


def _one_text_or_pair(value: object) -> str | tuple[str, str]:
    if isinstance(value, str):
        return value
    if pair := _pair(value):
        return pair
    raise PydanticCustomError("pair", "expected a text, or a pair of texts [premise, hypothesis]")


class ToLabel(NamedTuple):
    """What TEI's `/predict` labels: texts, or pairs of premise and hypothesis."""

    rows: Annotated[list[tuple[str, ...]], Field(fail_fast=True)]  # of one text each, or of two
    one: bool  # whether the request has one row and is not a list of rows


def _to_label(value: object) -> ToLabel:
    if isinstance(value, str):
        return ToLabel([(value,)], True)
    for kind, one in ((_ROW, True), (_TEXTS, False), (_PAIRS, False)):
        try:
            found = kind.validate_python(value)
        except ValidationError:
            continue
        return ToLabel([found] if one else found, one)
    message = "expected a text, a pair of texts [premise, hypothesis], or a list of such pairs, or of lists of one text"
    raise PydanticCustomError("rows", message)


_ROW = TypeAdapter[Any](tuple[str] | tuple[str, str])
_TEXTS = TypeAdapter[Any](Annotated[list[tuple[str]], Field(min_length=1, fail_fast=True)])
_PAIRS = TypeAdapter[Any](Annotated[list[tuple[str, str]], Field(min_length=1, fail_fast=True)])
OneOrMany = Annotated[str | list[str], PlainValidator(_one_or_many, json_schema_input_type=Text | TextList)]
Document = Annotated[
    str | Mapping[str, str],
    PlainValidator(_document, json_schema_input_type=Text | Annotated[dict[str, str], Field(min_length=1)]),
]
OneTextOrPair = Annotated[
    str | tuple[str, str], PlainValidator(_one_text_or_pair, json_schema_input_type=Text | tuple[Text, Text])
]
TextsOrPairs = Annotated[
    ToLabel,
    PlainValidator(
        _to_label,
        json_schema_input_type=Text
        | tuple[Text, Text]
        | Annotated[list[tuple[Text]], Field(min_length=1, fail_fast=True)]
        | Annotated[list[tuple[Text, Text]], Field(min_length=1, fail_fast=True)],
    ),
]
