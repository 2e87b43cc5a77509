"""TEI's requests and answers beyond what all dialects have (test_conformance.py)."""

import math

import pytest

from service.engine.graph import SentenceGraph
from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
QUERY = "a man plays the guitar"
TEXTS = ["a dog sleeps", "the man is playing a guitar .", "a dog sleeps", "a woman in the park"]
PAIRS = [["a man plays", "a man sleeps"], ["a dog runs in the park", "a dog"]]


async def test_rerank_gives_texts_and_raw_scores_when_asked(lasting: Client) -> None:
    body = {"query": QUERY, "texts": TEXTS, "return_text": True, "raw_scores": True}
    found = await lasting.answer("/tei/rerank", **body)
    pairs = [{"a": QUERY, "b": text} for text in TEXTS]
    raw = [result["raw_score"] for result in (await lasting.answer("/similarity", pairs=pairs))["results"]]
    assert [rank["text"] for rank in found] == [TEXTS[rank["index"]] for rank in found]
    assert [rank["score"] for rank in found] == [pytest.approx(raw[rank["index"]], abs=1e-6) for rank in found]


async def test_the_model_of_a_similarity_may_stand_among_its_parameters(lasting: Client) -> None:
    inputs = {"source_sentence": QUERY, "sentences": TEXTS}
    for model in (None, "avg-sick"):
        expected = await lasting.answer("/tei/similarity", **{"inputs": inputs, "parameters": {}, "model": model})
        inside = {"inputs": inputs, "parameters": {"model": model, "truncate": True, "prompt_name": None}}
        assert await lasting.answer("/tei/similarity", **inside) == expected
        assert await lasting.answer("/tei/similarity", inputs=inputs, parameters=None, model=model) == expected


async def test_embeddings_are_as_our_route_gives_them_where_they_are_not_normalized(lasting: Client) -> None:
    own = (await lasting.answer("/embed", sentences=TEXTS[:2]))["embeddings"]
    assert await lasting.answer("/tei/embed", inputs=TEXTS[:2], normalize=False) == own
    unit = await lasting.answer("/tei/embed", inputs=TEXTS[:2], dimensions=fakes.DIM)
    assert await lasting.answer("/tei/embed", inputs=TEXTS[:2]) == unit


async def test_an_embedding_of_nothing_but_zeros_stays_that(serve: Serve, tmp_path) -> None:
    rows = fakes.table()
    rows[1 + fakes.WORDS.index("not")] = 0
    fakes.cosine_model(tmp_path / "avg-paraphrase", rows=rows)
    fakes.graded_model(tmp_path / "avg-sick")
    async with serve(models_dir=tmp_path) as client:
        assert await client.answer("/tei/embed", inputs="not") == [[0.0] * fakes.DIM]


async def test_predict_takes_one_pair_or_several_and_gives_raw_scores(lasting: Client) -> None:
    many = await lasting.answer("/tei/predict", inputs=PAIRS)
    each = [await lasting.answer("/tei/predict", inputs=pair) for pair in PAIRS]
    raw = await lasting.answer("/tei/predict", inputs=PAIRS[0], raw_scores=True)
    assert many == each
    assert [p["label"] for p in raw] == [p["label"] for p in each[0]]
    assert [math.exp(p["score"]) for p in raw] == pytest.approx([p["score"] for p in each[0]])


async def test_texts_are_cut_unless_that_is_refused_and_short_ones_never(lasting: Client) -> None:
    for more in ({}, {"truncate": True}, {"truncate": None}, {"truncation_direction": "Right"}):
        assert await lasting.answer("/tei/embed", **{"inputs": "man " * 13, **more})
    for more in ({"truncate": False}, {"truncation_direction": "left"}):
        assert await lasting.answer("/tei/embed", **{"inputs": "man", **more})


async def test_info_describes_the_default_or_the_named_model(serve: Serve) -> None:
    async with serve(max_sentences=7, worker_threads=2, model_aliases={"bge-reranker": "pair-sick"}) as client:
        info = (await client.get("/tei/info")).json()
        graded = (await client.get("/tei/info", params={"model": "avg-sick"})).json()
        pair = (await client.get("/tei/info", params={"model": "bge-reranker"})).json()
        unknown = await client.get("/tei/info", params={"model": "nope"})
        fingerprint = client.app.service.registry["avg-paraphrase"].manifest.fingerprint
    assert info.pop("version")
    assert info == {
        "model_id": "avg-paraphrase",
        "model_sha": fingerprint,
        "model_dtype": "float32",
        "served_model_name": "avg-paraphrase",
        "model_type": {
            "reranker": {"id2label": {"0": "similarity"}, "label2id": {"similarity": 0}},
            "embedding": {"pooling": "word_averaging"},
        },
        "max_concurrent_requests": 1024,
        "max_input_length": fakes.MAX_TOKENS,
        "max_batch_tokens": SentenceGraph.budget.size,
        "max_batch_requests": None,
        "max_client_batch_size": 7,
        "auto_truncate": True,
        "tokenization_workers": 2,
    }
    assert list(info["model_type"]) == ["reranker", "embedding"]  # clients that know one kind read the first
    assert graded["model_type"]["reranker"]["id2label"] == {"0": "neutral", "1": "contradiction", "2": "entailment"}
    assert pair["model_id"] == "pair-sick"
    assert list(pair["model_type"]) == ["reranker"]
    assert unknown.status_code == 404
    assert set(unknown.json()) == {"error", "error_type"}
