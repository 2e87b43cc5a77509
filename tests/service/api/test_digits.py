"""Scores, ratings, probabilities and explanations have seven significant digits in every answer."""

import json
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.harness import fakes
from tests.harness.dialects import REQUESTS
from tests.harness.requests import GOOD
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
TEXT, TEXTS = (
    "a man plays the guitar",
    ["a dog unknownly", "the man is playing a guitar .", "a woman in the park"],
)
PAIRS = [{"a": TEXT, "b": text} for text in TEXTS]
RANK = {"query": TEXT, "candidates": TEXTS}
ASKED = [
    *GOOD.items(),
    *((each.path, each.body) for each in REQUESTS.values()),
    ("/similarity", {"pairs": PAIRS, "model": "avg-sick"}),
    ("/similarity", {"pairs": PAIRS * 20, "model": "pair-sick"}),
    ("/similarity", {"pairs": PAIRS, "model": "both", "task": "paraphrase"}),
    ("/rank", {**RANK, "model": "both"}),
    ("/rank", {**RANK, "rerank_model": "pair-sick"}),
    ("/classify", {"text": TEXTS}),
    ("/classify", {"text": TEXTS, "labels": ["dog", "cat", "guitar"]}),
    ("/classify", {"text": TEXTS, "labels": ["dog", "cat"], "multi_label": True}),
    ("/entailment", {"premise": ["a man plays", "a dog sleeps"], "hypotheses": TEXTS}),
    ("/explain", {"a": TEXT, "b": TEXTS[1]}),
    ("/explain", {"a": TEXT, "b": TEXTS[1], "model": "pair-sick"}),
    ("/predict", {"inputs": [[TEXT, text] for text in TEXTS], "raw_scores": True}),
    ("/rerank", {"query": TEXT, "texts": TEXTS, "raw_scores": True}),
    ("/score", {"text_1": TEXT, "text_2": TEXTS, "use_activation": False}),
    (
        "/v2/models/avg-sick/infer",
        {"inputs": [{"name": n, "datatype": "BYTES", "shape": [1], "data": [TEXTS[i]]} for i, n in enumerate("ab")]},
    ),
]
VECTORS = {"embedding", "embeddings", "data of pooling"}  # as float32 is written, which loses nothing


@pytest.fixture(scope="module")
async def client(serve: Serve, models: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A service with every task."""
    more: Path = tmp_path_factory.mktemp("more")
    fakes.tasks_model(more / "both")
    fakes.labelling_model(more / "sentiment")
    async with serve(models_dir=(models, more)) as found:
        yield found


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


@pytest.mark.parametrize(("path", "body"), ASKED)
async def test_no_number_has_more_than_seven_digits(client: Client, path: str, body: dict[str, object]) -> None:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer = json.loads(response.content, parse_float=Decimal)
    if isinstance(answer, list) and isinstance(answer[0], list) and not isinstance(answer[0][0], dict):
        return  # TEI's embeddings
    for where, number in numbers(answer):
        assert len(number.normalize().as_tuple().digits) <= 7, (where, number)
