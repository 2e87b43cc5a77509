"""What made a score: shares that sum to it, a model's own matrices, and the score without each word."""

from pathlib import Path

import numpy as np
import pytest

from core.manifest import ExplanationGraph, Manifest, Matrix
from service.errors import StartupError
from service.service import Service
from service.settings import Settings
from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
PAIR = {"a": "a man plays the guitar", "b": "the man is not running"}
TOKENS_A = ["a", "man", "plays", "the", "guitar"]
TOKENS_B = ["the", "man", "is", "not", "run", "##ning"]
MODELS = ["avg-paraphrase", "avg-sick", "pair-sick"]


def named(entries: list[dict], name: str) -> dict:
    return next(entry for entry in entries if entry["name"] == name)


async def test_a_share_is_the_words_own_row_against_the_other_sentence(lasting: Client) -> None:
    rows = fakes.table(seed=0)
    x, y = (rows[list(fakes.tokenizer().encode(PAIR[side], 99).ids)].astype(np.float64) for side in "ab")
    a, b = x.mean(axis=0), y.mean(axis=0)
    answer = await lasting.answer("/explain", **PAIR)
    expected = x @ b / (len(x) * np.linalg.norm(a) * np.linalg.norm(b))
    assert named(answer["vectors"], "contributions")["a"] == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
async def test_deletion_is_what_the_score_loses_without_the_word(lasting: Client, models, model: str) -> None:
    manifest, runs = Manifest.load(models / model), fakes.runs_of(models / model)

    def raw(a: str, b: str) -> float:
        found = fakes.answer(a, b, runs, manifest.encoder, manifest.similarity, None).raw_score
        assert found is not None
        return found

    answer = await lasting.answer("/explain", **PAIR, model=model)
    vector = named(answer["vectors"], "deletion")
    whole = raw(PAIR["a"], PAIR["b"])
    without = [" ".join(TOKENS_A[:i] + TOKENS_A[i + 1 :]) for i in range(len(TOKENS_A))]
    assert vector["a"] == pytest.approx([whole - raw(a, PAIR["b"]) for a in without], abs=1e-5)
    assert np.ptp(vector["a"]) > 1e-3  # there is something to agree on
    shorter = [" ".join(TOKENS_B[:i] + TOKENS_B[i + 1 : 4]) + " running" for i in range(4)]
    assert vector["b"][:4] == pytest.approx([whole - raw(PAIR["a"], b) for b in shorter], abs=1e-5)
    assert vector["range"] == ([-2.0, 2.0] if model == "avg-paraphrase" else [-4.0, 4.0])


@pytest.mark.parametrize("model", MODELS)
async def test_a_sentence_of_one_token_has_none_to_lose(lasting: Client, model: str) -> None:
    answer = await lasting.answer("/explain", a="man", b="a dog", model=model)
    alone = await lasting.answer("/explain", a="man", b="dog", model=model)
    vector = named(answer["vectors"], "deletion")
    assert vector["a"] == [None]
    assert all(isinstance(value, float) for value in vector["b"])
    vector = named(alone["vectors"], "deletion")
    assert (vector["a"], vector["b"]) == ([None], [None])


@pytest.mark.parametrize("model", MODELS)
async def test_explaining_neither_fills_nor_asks_the_caches_of_answers(serve: Serve, model: str) -> None:
    async with serve(cache="memory") as client:
        for _ in range(2):
            await client.answer("/explain", **PAIR, model=model)
        assert await client.metric("semblance_cache_entries") == 0
        for name in ("hits", "misses"):
            for tier in ("scores", "memory"):
                assert await client.metric(f"semblance_cache_{name}_total", tier=tier) == 0


async def test_an_interaction_model_shows_its_own_matrices(lasting: Client) -> None:
    rows = fakes.table().astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [list(fakes.tokenizer().encode(PAIR[side], 99).ids) for side in "ab"]
    answer = await lasting.answer("/explain", **PAIR, model="pair-sick")
    turned = await lasting.answer("/explain", a=PAIR["b"], b=PAIR["a"], model="pair-sick")
    assert [matrix["name"] for matrix in answer["matrices"]] == ["cosine", "alike"]
    cosine, alike = answer["matrices"]
    assert (cosine["description"], cosine["range"]) == ("of the two words' rows", [-1.0, 1.0])
    np.testing.assert_allclose(cosine["values"], rows[ids[0]] @ rows[ids[1]].T, atol=1e-5)
    np.testing.assert_array_equal(alike["values"], np.array(cosine["values"]) > 0)
    np.testing.assert_allclose(turned["matrices"][0]["values"], np.transpose(cosine["values"]), atol=1e-6)
    assert [vector["name"] for vector in answer["vectors"]] == ["deletion"]


def opened(models: Path) -> Service:
    return Service(Settings(models_dir=models, preload=("m",)))


def refusal(models: Path) -> str:
    with pytest.raises(StartupError) as caught:
        opened(models)
    return str(caught.value)


def with_tokens(root: Path, *, scale: float = 1.0) -> None:
    """The siamese model "m", whose embedding is a mean of what a graph of its own says of each token."""
    (root / "m").mkdir()
    fakes.encoder_graph(root / "m" / "encoder.onnx")
    fakes.token_graph(root / "m" / "tokens.onnx", scale=scale)
    fakes.publish(root / "m", "m", encoder="encoder.onnx", similarity=fakes.COSINE)
    fakes.sign(root / "m", token_embeddings="tokens.onnx")


async def test_shares_of_tokens_in_context_sum_to_the_score(serve: Serve, root: Path) -> None:
    with_tokens(root)
    async with serve(models_dir=root) as client:
        answer = await client.answer("/explain", **PAIR, model="m")
        shown = (await client.get("/models")).json()
    shares, matrix = named(answer["vectors"], "contributions"), named(answer["matrices"], "contributions")
    assert len(shares["a"]) == len(answer["a"]["tokens"])
    for total in (sum(shares["a"]), sum(shares["b"]), np.sum(matrix["values"])):
        assert total == pytest.approx(answer["raw_score"], abs=1e-6)
    (listed,) = [model for model in shown["models"] if model["id"] == "m"]
    assert "contributions" in listed["explanations"]["vectors"]


def with_matrices(root: Path, *matrices: Matrix) -> str:
    """What is said of the interaction model, whose graph explains by two matrices, where its manifest has these."""
    fakes.interaction_model(root / "m", "m")
    fakes.explanation_graph(root / "m" / "explanation.onnx")
    explanation = ExplanationGraph(graph="explanation.onnx", matrices=matrices)
    fakes.sign(root / "m", "explanation.onnx", explanation=explanation)
    return refusal(root)


def test_another_number_of_matrices_than_described(tmp_path) -> None:
    message = with_matrices(tmp_path, *fakes.EXPLAINED.matrices[:1])
    assert message.endswith("explanation.onnx: matrices is 2, explanation needs 1")
