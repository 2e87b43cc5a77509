"""Scores, labels and embeddings: those of the contract, whatever is batched, cached or large."""

import numpy as np
import pytest

from core.manifest import Manifest
from service.engine.graph import BatchBudget
from tests.harness import fakes
from tests.harness.service import Client, Serve, expect

pytestmark = pytest.mark.anyio
PAIRS = [
    {"a": "a man plays the guitar", "b": "the man is playing a guitar ."},
    {"a": "a dog runs in the park", "b": "a cat sleeps on the sofa"},
    {"a": "woman", "b": "a woman sleeps on the sofa in the park"},
]
MODELS = ["avg-paraphrase", "avg-sick", "pair-sick"]


def expected(manifest: Manifest, folder, pair) -> tuple[float, float]:
    """Raw score and score, by the contract and onnxruntime alone."""
    runs = fakes.runs_of(folder)
    found = fakes.answer(pair["a"], pair["b"], runs, manifest.encoder, manifest.similarity, None)
    return found.raw_score, found.score


@pytest.mark.parametrize("model", MODELS)
async def test_scores_are_the_contracts_in_the_order_of_the_request(lasting: Client, models, model: str) -> None:
    manifest = Manifest.load(models / model)
    answer = (await lasting.post("/similarity", json={"pairs": PAIRS, "model": model})).json()
    assert answer["model"] == model
    for pair, result in zip(PAIRS, answer["results"], strict=True):
        raw_score, score = expected(manifest, models / model, pair)
        assert result["raw_score"] == pytest.approx(raw_score, abs=1e-6)
        assert result["score"] == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
async def test_a_text_is_as_like_itself_as_can_be(lasting: Client, models, model: str) -> None:
    """A model that reads pairs may say otherwise; what it says stays in the raw score."""
    pair = {"a": "a woman sleeps in the park", "b": "A woman  sleeps in the park"}
    (result,) = (await lasting.post("/similarity", json={"pairs": [pair], "model": model})).json()["results"]
    scale = Manifest.load(models / model).similarity.label_scale
    assert (result["score"], result.get("rating")) == (1.0, None if scale is None else scale[1])
    assert result["raw_score"] == pytest.approx(expected(Manifest.load(models / model), models / model, pair)[0])


async def test_a_repeated_sentence_is_encoded_once(serve: Serve) -> None:
    async with serve(cache="memory") as client:
        before = await client.metric("semblance_batch_rows_sum", model="avg-paraphrase", graph="encoder.onnx")
        same = {"a": "a man", "b": "A  MAN"}
        results = (await client.post("/similarity", json={"pairs": [same] * 5})).json()["results"]
        rows = await client.metric("semblance_batch_rows_sum", model="avg-paraphrase", graph="encoder.onnx") - before
    assert rows == 1
    assert [result["score"] for result in results] == [1.0] * 5


async def test_a_pair_is_scored_once_and_turned_round_where_order_does_not_matter(serve: Serve) -> None:
    pair, turned = {"a": "a man", "b": "a dog"}, {"a": "a dog", "b": "a man"}
    graph = {"model": "pair-sick", "graph": "relatedness.onnx"}
    async with serve(cache="memory") as client:
        before = await client.metric("semblance_batch_rows_sum", **graph)
        scores = set()
        for pairs in ([pair, turned, pair], [turned]):
            answer = await client.post("/similarity", json={"pairs": pairs, "model": "pair-sick"})
            scores |= {result["raw_score"] for result in answer.json()["results"]}
        rows = await client.metric("semblance_batch_rows_sum", **graph) - before
    assert (rows, len(scores)) == (1, 1)


@pytest.mark.parametrize("model", MODELS)
async def test_a_large_request_goes_to_the_workers_and_comes_back_in_order(serve: Serve, monkeypatch, model) -> None:
    pairs = [{"a": " ".join(fakes.WORDS[: 1 + i % 7]), "b": fakes.WORDS[i % 19]} for i in range(40)]
    body = {"pairs": pairs, "model": model}
    async with serve() as client:
        expect(client.app.service.registry[model].scorer, 0.0)
        small = (await client.post("/similarity", json=body)).json()["results"]
    monkeypatch.setattr("service.engine.graph.SentenceGraph.budget", BatchBudget(16, 16))
    monkeypatch.setattr("service.engine.graph.PairGraph.budget", BatchBudget(16, 3))
    async with serve() as client:
        expect(client.app.service.registry[model].scorer, 0.01)
        large = (await client.post("/similarity", json=body)).json()["results"]
    assert [r["raw_score"] for r in large] == pytest.approx([r["raw_score"] for r in small], abs=1e-6)
    assert [r["tokens"] for r in large] == [[1 + i % 7, 1] for i in range(40)]


async def test_a_model_without_a_cache_says_so_and_answers_the_same(serve: Serve) -> None:
    body = {"pairs": PAIRS}
    async with serve(cache="off") as client, serve(cache="memory") as other:
        answers = [(await client.post("/similarity", json=body)).json() for _ in range(2)]
        assert answers[0] == answers[1] == (await other.post("/similarity", json=body)).json()
        assert (await client.get("/models")).json()["models"][0]["cache"] == []
        assert (await other.get("/models")).json()["models"][0]["cache"] == ["memory"]


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
