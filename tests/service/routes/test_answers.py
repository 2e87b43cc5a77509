"""What the service sends: the fields that its client reads (core/answers.py), in numbers of seven digits."""

import json
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from core import answers, status
from service.schemas import typed_dict
from tests.harness import fakes
from tests.harness.dialects import REQUESTS
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
GERMAN = "Das ist nicht mein Hund, und er ist auch nicht von meiner Frau."
TEXT, TEXTS = "a man plays the guitar", ["a dog unknownly", "the man is playing a guitar .", "a woman in the park"]
PAIRS = [{"a": TEXT, "b": text} for text in TEXTS]
RANK = {"query": TEXT, "candidates": TEXTS}
ENTRIES = [
    {"id": "hours", "question": "when are you open ?", "answer": "from nine to five ."},
    {"question": "where is my card ?", "answer": "on the table ."},
]
OURS: list[tuple[str, Any, Any]] = [
    ("/similarity", answers.Similarities, GOOD["/similarity"]),
    ("/similarity", answers.Similarities, {"pairs": [{"a": GERMAN, "b": "a man"}], "model": "avg-sick"}),
    ("/similarity", answers.Similarities, {"pairs": PAIRS * 20, "model": "pair-sick"}),
    ("/similarity", answers.Similarities, {"pairs": PAIRS, "model": "both", "task": "paraphrase"}),
    ("/rank", answers.Ranking, GOOD["/rank"]),
    ("/rank", answers.Ranking, {**RANK, "model": "both"}),
    ("/rank", answers.Ranking, {"query": GERMAN, "candidates": [GERMAN, *TEXTS], "rerank_model": "pair-sick"}),
    ("/rank", answers.Ranking, {"query": "a card", "entries": ENTRIES, "min_score": 1.0}),
    ("/entailment", answers.Entailments, GOOD["/entailment"]),
    ("/claims", answers.Claims, GOOD["/claims"]),
    ("/claims", answers.Claims, {"documents": "# Dogs\n\nthe dog sleeps . it has 3 cats .", "claims": ["5 cats"]}),
    ("/dedupe", answers.Duplicates, {"texts": [*TEXTS, "a man plays 3 guitars", "a man plays 4 guitars"]}),
    ("/dedupe", answers.Duplicates, {"texts": TEXTS, "pair_model": "both"}),
    ("/classify", answers.Labels, {"text": TEXTS}),
    ("/classify", answers.Labels, {"text": TEXTS, "labels": ["dog", "cat", "guitar"]}),
    ("/classify", answers.Labels, {"text": TEXTS, "labels": ["dog", "cat"], "multi_label": True}),
    ("/embed", answers.EmbedResponse, {"sentences": [GERMAN, "a man"]}),
    ("/explain", answers.Explanation, {"a": TEXT, "b": TEXTS[1]}),
    ("/explain", answers.Explanation, {"a": GERMAN, "b": "a man", "model": "pair-sick"}),
    ("/models", status.Models, None),
    ("/models?full=true", status.Models, None),
    ("/health/ready", status.Readiness, None),
]
OTHERS = [
    *((each.path, each.body) for each in REQUESTS.values()),
    ("/tei/predict", {"inputs": [[TEXT, text] for text in TEXTS], "raw_scores": True}),
    ("/tei/rerank", {"query": TEXT, "texts": TEXTS, "raw_scores": True}),
    ("/openai/v1/score", {"text_1": TEXT, "text_2": TEXTS, "use_activation": False}),
]
VECTORS = {"embedding", "embeddings"}  # as float32 is written, which loses nothing


@pytest.fixture(scope="module")
async def client(serve: Serve, models: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A service with every task."""
    more: Path = tmp_path_factory.mktemp("more")
    fakes.tasks_model(more / "both")
    fakes.labelling_model(more / "sentiment")
    async with serve(models_dir=(models, more)) as found:
        yield found


def without_null(value: Any) -> Any:
    """The same JSON, but for fields that are null or an empty list, which may be absent as well."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None and each != []}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def numbers(answer: object, path: str = "") -> Iterator[tuple[str, Decimal]]:
    """Every number that is not whole, with the fields above it."""
    if isinstance(answer, Decimal):
        yield path, answer
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key not in VECTORS and not (key == "data" and answer.get("object") == "pooling"):
                yield from numbers(value, f"{path}.{key}")
    elif isinstance(answer, list):
        for value in answer:
            yield from numbers(value, path)


@pytest.mark.parametrize(("path", "kind", "body"), OURS)
async def test_an_answer_that_the_client_reads_and_writes_again_is_the_same(
    client: Client, path: str, kind: type, body: Any
) -> None:
    response = await (client.get(path) if body is None else client.post(path, json=body))
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


@pytest.mark.parametrize(("path", "body"), [*((path, body) for path, _, body in OURS if body), *OTHERS])
async def test_no_number_has_more_than_seven_digits(client: Client, path: str, body: dict[str, object]) -> None:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer = json.loads(response.content, parse_float=Decimal)
    if isinstance(answer, list) and isinstance(answer[0], list) and not isinstance(answer[0][0], dict):
        return  # TEI's embeddings
    for where, number in numbers(answer):
        assert len(number.normalize().as_tuple().digits) <= 7, (where, number)
