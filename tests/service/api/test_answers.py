"""What the service sends is what its client reads: each answer has the fields of its type in contract/answers.py."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from contract import answers
from service.schemas import typed_dict
from tests.harness.requests import GOOD
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
GERMAN = "Das ist nicht mein Hund, und er ist auch nicht von meiner Frau."
ENTRIES = [
    {"id": "hours", "question": "when are you open ?", "answer": "from nine to five ."},
    {"question": "where is my card ?", "answer": "on the table ."},
]
ASKED = [
    ("/similarity", answers.Similarities, GOOD["/similarity"]),
    ("/similarity", answers.Similarities, {"pairs": [{"a": GERMAN, "b": "a man"}], "model": "avg-sick"}),
    ("/rank", answers.Ranking, GOOD["/rank"]),
    ("/rank", answers.Ranking, {"query": GERMAN, "candidates": [GERMAN, "a dog"], "rerank_model": "pair-sick"}),
    ("/rank", answers.Ranking, {"query": "a card", "entries": ENTRIES, "min_score": 1.0}),
    ("/entailment", answers.Entailments, GOOD["/entailment"]),
    ("/entailment", answers.Entailments, {"premise": "a man runs . a dog sleeps .", "hypotheses": ["a dog", GERMAN]}),
    ("/claims", answers.Claims, GOOD["/claims"]),
    ("/claims", answers.Claims, {"documents": "# Dogs\n\nthe dog sleeps . it has 3 cats .", "claims": ["5 cats"]}),
    ("/classify", answers.Labels, GOOD["/classify"]),
    ("/embed", answers.EmbedResponse, {"sentences": [GERMAN, "a man"]}),
    ("/explain", answers.Explanation, GOOD["/explain"]),
    ("/explain", answers.Explanation, {"a": GERMAN, "b": "a man", "model": "pair-sick"}),
    ("/models", answers.Models, None),
    ("/models?full=true", answers.Models, None),
    ("/health/ready", answers.Readiness, None),
]


def without_null(value: Any) -> Any:
    """The same JSON, but for fields that are null or an empty list, which may be absent as well."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None and each != []}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("path", "kind", "body"), ASKED)
async def test_an_answer_that_the_client_reads_and_writes_again_is_the_same(
    lasting: Client, path: str, kind: type, body: Any
) -> None:
    response = await (lasting.get(path) if body is None else lasting.post(path, json=body))
    assert response.status_code == 200, response.text
    TypeAdapter(typed_dict(kind)).validate_json(response.content)  # nothing is null that is said to be absent
    read = TypeAdapter(kind)
    again = read.dump_python(read.validate_json(response.content), mode="json")
    assert without_null(again) == without_null(response.json())


def test_a_field_that_is_missing_misspelt_or_null_is_noticed() -> None:
    """Guards the guard."""
    result = {"index": 0, "score": 0.5, "raw_score": 0.5}
    form, read = TypeAdapter(typed_dict(answers.RankResult)), TypeAdapter(answers.RankResult)
    form.validate_python(result)
    for wrong in ({**result, "stage": None}, {"index": 0, "score": 0.5}):
        with pytest.raises(ValidationError):
            form.validate_python(wrong)
    misspelt = {**result, "langauge": "de?"}
    assert without_null(read.dump_python(read.validate_python(misspelt))) != misspelt
