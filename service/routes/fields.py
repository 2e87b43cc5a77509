"""Fields that requests of other services' clients share."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from service.routes.problems import UNSUPPORTED
from service.schemas import Text, TextList, one_or_many

ModelName = Annotated[
    str | None,
    Field(description="one of ours, or a name of SEMBLANCE_MODEL_ALIASES; without it, the default model"),
]


class ForeignRequest(BaseModel):
    """A request in another service's format; unknown fields are ignored, as that service does."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class ChangesAnswer:
    """Marks a field of a request in another service's format: it changes the answer, here as there.

    Of these marks `scripts/peer_fields.py` makes the table of `docs/dialects.md`; tests send each example.
    """

    def __init__(self, *values: Any, refuses: tuple[Any, ...] = (), note: str = "") -> None:
        """Store examples of the field's values.

        Args:
            values: examples, each of which changes the answer.
            refuses: examples of values that its own type refuses as unsupported.
            note: what is not done of it.
        """
        self.values, self.refuses, self.note = values, refuses, note


class AllowedValues(ChangesAnswer):
    """A field of another service of which some values are taken; whatever else is refused by its name."""

    def __init__(self, *taken: Any, refuses: tuple[Any, ...], says: str, changes: tuple[Any, ...] = ()) -> None:
        """Store the values that are allowed.

        Args:
            taken: the values that are.
            refuses: examples of those that are not.
            says: why.
            changes: those of `taken` that change the answer; the others ask for what is done anyway.
        """
        super().__init__(*changes, refuses=refuses, note=says)
        self.taken = taken
        self.same = tuple(value for value in taken if value not in changes)

    def check(self, value: Any) -> Any:
        """The value, if it is taken; true is not 1. A list of one value, for each text, asks for that."""
        if isinstance(value, list) and value and all(each == value[0] for each in value):
            value = value[0]
        if any(type(value) is type(each) and value == each for each in self.taken):
            return value
        raise PydanticCustomError(UNSUPPORTED, "{says}", {"says": self.note})

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"enum": list(self.taken), "description": self.note}


# What several requests have of one service.
TruncateTokens = Annotated[int | None, ChangesAnswer(3), Field(ge=-1, description="vLLM; -1 is the model's limit")]
Truncate = Annotated[
    bool | str | None,
    AllowedValues(
        None,
        *(True, False, "NONE", "END", "START"),
        changes=(False, "NONE", "START"),
        refuses=("LEFT",),
        says="truncate is true, false, NONE, END or START (only where nothing is cut)",
    ),
    Field(description="of Jina or NVIDIA; false and NONE: a text that would be cut is refused"),
]
TruncationSide = Annotated[
    Literal["left", "right"] | None, ChangesAnswer("left", note="left only where nothing is cut")
]
Activation = Annotated[bool | None, ChangesAnswer(False)]


class Usage(TypedDict):
    """Tokens read, as Jina, vLLM and OpenAI call them."""

    prompt_tokens: int
    total_tokens: int


def usage(tokens: int) -> Usage:
    """The usage for `tokens` tokens read, none written."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _one_or_many(value: object) -> str | list[str]:
    first = value[0] if isinstance(value, list) and value else None
    if type(first[0] if isinstance(first, list) and first else first) is int:  # true is none
        raise PydanticCustomError(
            "token_ids",
            "token ids are of another model's vocabulary, send texts "
            "(LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))",
        )
    return one_or_many(value)


def _document(value: object) -> str | Mapping[str, Any]:
    if isinstance(value, str | dict):
        return value
    raise PydanticCustomError("document", "expected a text, or an object that holds one")


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
    str | Mapping[str, Any],
    PlainValidator(_document, json_schema_input_type=Text | Annotated[dict[str, Any], Field(min_length=1)]),
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
