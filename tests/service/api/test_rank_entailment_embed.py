import numpy as np
import pytest

from contract.manifest import Manifest
from tests.harness import fakes
from tests.harness.service import Client

pytestmark = pytest.mark.anyio
QUERY = "a man plays the guitar"
CANDIDATES = ["a cat sleeps", "a man plays", "a dog", "a man plays the guitar", "a man plays"]


async def test_rank_tells_raw_scores(lasting: Client) -> None:

    async def raw_by_index(model: str) -> dict[int, float]:
        pairs = [{"a": QUERY, "b": candidate} for candidate in CANDIDATES]
        scored = (await lasting.post("/similarity", json={"pairs": pairs, "model": model})).json()["results"]
        return {i: result["raw_score"] for i, result in enumerate(scored)}

    body = {"query": QUERY, "candidates": CANDIDATES}
    once = (await lasting.post("/rank", json=body)).json()["results"]
    first, second = await raw_by_index("avg-paraphrase"), await raw_by_index("pair-sick")
    assert {result["index"]: result["raw_score"] for result in once} == pytest.approx(first, abs=1e-6)
    twice = (await lasting.post("/rank", json=body | {"rerank_model": "pair-sick", "rerank_top": 2})).json()
    for result in twice["results"]:
        expected = (second if result["stage"] == 2 else first)[result["index"]]
        assert result["raw_score"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("model", ["avg-sick", "pair-sick"])
async def test_entailment_gives_each_label_its_probability(lasting: Client, models, model: str) -> None:
    manifest = Manifest.load(models / model)
    runs = fakes.runs_of(models / model)
    pairs = [("a man plays", "the man plays the guitar"), ("a dog", "a cat sleeps on the sofa"), ("not", "a . man")]
    body = {"pairs": [{"premise": p, "hypothesis": h} for p, h in pairs], "model": model}
    answer = (await lasting.post("/entailment", json=body)).json()
    assert answer["model"] == model
    for (premise, hypothesis), result in zip(pairs, answer["results"], strict=True):
        golden = fakes.answer(premise, hypothesis, runs, manifest.encoder, None, manifest.entailment)
        assert result["probabilities"] == pytest.approx(golden.probabilities, abs=1e-6)
        assert sum(result["probabilities"].values()) == pytest.approx(1.0)
        assert result["label"] == max(golden.probabilities, key=golden.probabilities.__getitem__)
        assert result["truncated"] == [False, False]


async def test_embed_gives_the_mean_of_the_words(lasting: Client) -> None:
    rows = fakes.table(seed=0)
    tokenizer = fakes.tokenizer()
    sentences = ["a man", "dog", "a man"]
    answer = (await lasting.post("/embed", json={"sentences": sentences})).json()
    assert answer["model"] == "avg-paraphrase"
    assert answer["dim"] == fakes.DIM
    assert answer["truncated"] == [False, False, False]
    for sentence, embedding in zip(sentences, answer["embeddings"], strict=True):
        ids = tokenizer.encode(sentence, 10).ids
        np.testing.assert_allclose(embedding, rows[list(ids)].mean(axis=0), atol=1e-6)
