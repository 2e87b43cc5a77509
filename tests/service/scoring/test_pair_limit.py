"""A limit on both texts of a pair together: the longer one is cut."""

from pathlib import Path

import pytest

from core.manifest import Manifest
from tests.harness import fakes
from tests.harness.service import Serve

pytestmark = pytest.mark.anyio
WORDS = "a man plays the big guitar in the small park".split()  # noqa: SIM905
# Numbers of words that two texts have, and those of them that the model reads.
READ = {(10, 10): (6, 7), (10, 4): (9, 4), (4, 10): (4, 9), (6, 7): (6, 7)}


async def test_texts_that_are_too_long_together_are_cut(root: Path, serve: Serve) -> None:
    limits = Manifest.load(root / "pair-sick").limits.model_copy(update={"max_pair_tokens": 13})
    fakes.sign(root / "pair-sick", limits=limits)
    async with serve(models_dir=root) as client:

        async def scores(lengths: list[tuple[int, int]]) -> list[float]:
            pairs = [{"a": " ".join(WORDS[:a]), "b": " ".join(WORDS[::-1][:b])} for a, b in lengths]
            answer = await client.post("/similarity", json={"pairs": pairs, "model": "pair-sick"})
            assert answer.status_code == 200
            return [result["raw_score"] for result in answer.json()["results"]]

        assert await scores(list(READ)) == pytest.approx(await scores(list(READ.values())), abs=1e-6)
        for given, read in READ.items():
            assert await scores([given]) == pytest.approx(await scores([read]), abs=1e-6)


async def test_every_route_says_which_text_was_cut(root: Path, serve: Serve) -> None:
    limits = Manifest.load(root / "pair-sick").limits.model_copy(update={"max_pair_tokens": 13})
    fakes.sign(root / "pair-sick", limits=limits)
    long, short = " ".join(WORDS), " ".join(WORDS[:2])
    model = {"model": "pair-sick"}
    ranking = {"query": short, "documents": [short, long + " man"], **model}
    pairs = {"inputs": [[long, long]], **model}
    async with serve(models_dir=root) as client:
        ranked = await client.answer("/v1/rerank", **ranking | {"query": long, "documents": [short, f"the {long}"]})
        scored = await client.answer("/openai/v1/score", text_1=[long, short], text_2=[short, short], **model)
        labelled = await client.answer("/classify", text=[short, long], labels=[" ".join(WORDS[:4])], **model)
        claims = await client.answer("/claims", documents=f"{long}.", claims=[long, "a park"], **model)
        read = [
            word
            for n in (7, 6)
            for word in (await client.answer("/explain", a=" ".join(WORDS[:n]), b="a", **model))["a"]["tokens"]
        ]
        explained = await client.answer("/explain", a=long, b=" ".join(WORDS[:9]), **model)
        for path, body in (
            ("/v1/rerank", ranking | {"truncation": False, "query": long}),
            ("/v1/rerank", ranking | {"query": long, "truncation_side": "left"}),
            ("/v1/rerank", ranking | {"query": long, "max_chunks_per_doc": 2}),
            ("/openai/v1/score", {"text_1": long, "text_2": long, "truncation_side": "left", **model}),
            ("/tei/rerank", {"query": long, "texts": [long], "truncate": False, **model}),
            ("/tei/predict", pairs | {"truncate": False}),
            ("/tei/predict", pairs | {"truncation_direction": "left"}),
        ):
            refused = await client.post(path, json=body)
            assert refused.status_code in (400, 413, 422), (path, body)
            assert "a text of more than" in refused.text
    assert ranked["meta"]["warnings"] == [
        f"{name}: only its first {n} tokens were read" for name, n in (("query", 6), ("documents.1", 7))
    ]
    assert ranked["usage"]["total_tokens"] == 6 + 2 + 7
    assert "warnings" not in scored
    assert [each["truncated"] for each in labelled["results"]] == [False, True]
    assert [each["truncated"] for each in claims["results"]] == [True, False]
    assert [explained[side]["truncated"] for side in "ab"] == [True, True]
    assert explained["a"]["tokens"] + explained["b"]["tokens"] == read
    assert all(matrix["values"] for matrix in explained["matrices"])
