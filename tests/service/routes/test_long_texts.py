"""Texts at the limit of characters: read no further than models go, whatever they are made of, on every route."""

from collections.abc import Callable

import pytest

from core import text as contract_text
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
LONG = 100_000


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Characters that are read."""
    sizes: list[int] = []
    normalise = contract_text.normalise

    def counted(text: str) -> str:
        sizes.append(len(text))
        return normalise(text)

    monkeypatch.setattr(contract_text, "normalise", counted)
    return sizes


@pytest.mark.parametrize("part", ["a man runs ", "\u732b", "\ufdfa"])
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/similarity", lambda text: {"pairs": [{"a": text, "b": text[1:]}]}),
        ("/rank", lambda text: {"query": text, "candidates": [text[1:]]}),
        ("/entailment", lambda text: {"pairs": [{"premise": text, "hypothesis": text[1:]}]}),
        ("/embed", lambda text: {"sentences": [text, text[1:]]}),
        ("/v1/embeddings", lambda text: {"model": "avg-paraphrase", "input": [text, text[1:]]}),
    ],
)
async def test_a_long_text_is_read_as_far_as_models_go(
    lasting: Client, read: list[int], part: str, route: str, body: Callable[[str], object]
) -> None:
    text = (part * LONG)[:LONG]
    response = await lasting.post(route, json=body(text))
    assert response.status_code == 200, response.text
    assert 0 < sum(read) < 2 * 3000
    if route == "/similarity":
        (result,) = response.json()["results"]
        assert result["truncated"] == [True, True]
        assert result["unknown"] == [0.0 if part.startswith("a") else 1.0] * 2
