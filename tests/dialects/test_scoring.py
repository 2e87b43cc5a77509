"""Names that clients insist on, and answers that do not depend on who asks."""

import pytest

from service.app import create_app
from service.errors import ModelError, SettingsError
from service.settings import Settings
from tests.harness.service import Serve

ALIASES = {"rerank-v3.5": "avg-sick", "text-embedding-3-small": "avg-sick"}
ASK = {
    "/v2/rerank": {"query": "a man", "documents": ["a dog"]},
    "/v1/embeddings": {"input": "a man"},
    "/openai/v1/score": {"text_1": "a man", "text_2": "a dog"},
}


@pytest.mark.anyio
async def test_an_alias_is_none_in_our_own_routes(serve: Serve) -> None:
    async with serve(model_aliases=ALIASES) as client:
        response = await client.post("/embed", json={"sentences": ["a"], "model": "rerank-v3.5"})
    assert response.status_code == 404


@pytest.mark.anyio
async def test_an_alias_with_a_slash_is_found_as_it_is_listed(serve: Serve) -> None:
    async with serve(model_aliases={"BAAI/bge-small": "avg-sick"}) as client:
        listed = (await client.get("/v1/models")).json()["data"]
        found = (await client.get("/v1/models/BAAI/bge-small")).json()
        nothing = await client.get("/v1/models/")
    assert found in listed
    assert (found["id"], found["root"]) == ("BAAI/bge-small", "avg-sick")
    assert nothing.status_code == 404


@pytest.mark.parametrize(
    ("aliases", "words"),
    [
        ({"x": "nope"}, "'x' stands for 'nope', which is not among avg-paraphrase"),
        ({"avg-sick": "pair-sick"}, "'avg-sick' is a model's own name"),
    ],
)
def test_an_alias_that_cannot_be_stops_the_start(models, aliases: dict[str, str], words: str) -> None:
    with pytest.raises(ModelError, match=f"SEMBLANCE_MODEL_ALIASES: .*{words}"):
        create_app(Settings(models_dir=models, model_aliases=aliases))


@pytest.mark.parametrize(
    ("value", "aliases"),
    [
        ("rerank-v3.5=avg-sick", {"rerank-v3.5": "avg-sick"}),
        (" a = b , c=d,", {"a": "b", "c": "d"}),
        ("", {}),
        ("a", None),
        ("a=b=c", None),
        ("=b", None),
        ("a=", None),
    ],
)
def test_aliases_in_the_environment(monkeypatch, value: str, aliases: dict[str, str] | None) -> None:
    monkeypatch.setenv("SEMBLANCE_MODEL_ALIASES", value)
    if aliases is None:
        with pytest.raises(SettingsError, match="SEMBLANCE_MODEL_ALIASES: expected NAME=MODEL,NAME=MODEL, found"):
            Settings.from_environment()
    else:
        assert Settings.from_environment().model_aliases == aliases
