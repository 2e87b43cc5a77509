"""TEI's requests and answers, field by field, held against our own routes."""

import math

import httpx
import pytest

from service.compute.graph import SentenceGraph
from tests.harness import fakes
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
QUERY = "a man plays the guitar"
TEXTS = ["a dog sleeps", "the man is playing a guitar .", "a dog sleeps", "a woman in the park"]
PAIRS = [["a man plays", "a man sleeps"], ["a dog runs in the park", "a dog"]]


async def answer(client: Client, path: str, body: object) -> object:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def ranked(client: Client, model: str | None = None) -> list[dict[str, float]]:
    """Our own answer."""
    body = {"query": QUERY, "candidates": TEXTS, "model": model}
    return (await client.post("/rank", json=body)).json()["results"]


@pytest.mark.parametrize("model", [None, "avg-sick", "pair-sick"])
async def test_rerank_is_our_rank(lasting: Client, model: str | None) -> None:
    found = await answer(lasting, "/rerank", {"query": QUERY, "texts": TEXTS, "model": model})
    expected = await ranked(lasting, model)
    assert found == [{"index": result["index"], "score": result["score"]} for result in expected]
    equal = [rank["index"] for rank in found if rank["index"] in (0, 2)]
    assert equal == [0, 2]  # of equal ones the earlier first


async def test_rerank_gives_texts_and_raw_scores_when_asked(lasting: Client) -> None:
    body = {"query": QUERY, "texts": TEXTS, "return_text": True, "raw_scores": True}
    found = await answer(lasting, "/rerank", body)
    pairs = [{"a": QUERY, "b": text} for text in TEXTS]
    raw = [result["raw_score"] for result in (await answer(lasting, "/similarity", {"pairs": pairs}))["results"]]
    assert [rank["text"] for rank in found] == [TEXTS[rank["index"]] for rank in found]
    assert [rank["score"] for rank in found] == [pytest.approx(raw[rank["index"]], abs=1e-6) for rank in found]


async def test_similarity_is_our_similarity(lasting: Client) -> None:
    inputs = {"source_sentence": QUERY, "sentences": TEXTS}
    for model in (None, "avg-sick"):
        body = {"inputs": inputs, "parameters": {}, "model": model}
        pairs = {"pairs": [{"a": QUERY, "b": text} for text in TEXTS], "model": model}
        expected = [result["score"] for result in (await answer(lasting, "/similarity", pairs))["results"]]
        assert await answer(lasting, "/similarity", body) == expected
        inside = {"inputs": inputs, "parameters": {"model": model, "truncate": True, "prompt_name": None}}
        assert await answer(lasting, "/similarity", inside) == expected


async def test_embed_gives_unit_embeddings_unless_told_otherwise(lasting: Client) -> None:
    own = (await answer(lasting, "/embed", {"sentences": TEXTS[:2]}))["embeddings"]
    plain = await answer(lasting, "/embed", {"inputs": TEXTS[:2], "normalize": False})
    unit = await answer(lasting, "/embed", {"inputs": TEXTS[:2], "dimensions": fakes.DIM})
    one = await answer(lasting, "/embed", {"inputs": TEXTS[0]})
    assert plain == own
    for row, unit_row in zip(own, unit, strict=True):
        length = math.hypot(*row)
        assert unit_row == pytest.approx([value / length for value in row], abs=1e-6)
    assert one == [pytest.approx(unit[0], abs=1e-6)]


async def test_an_embedding_of_nothing_but_zeros_stays_that(serve: Serve, tmp_path) -> None:
    rows = fakes.table()
    rows[1 + fakes.WORDS.index("not")] = 0
    fakes.cosine_model(tmp_path / "avg-paraphrase", rows=rows)
    fakes.graded_model(tmp_path / "avg-sick")
    async with serve(models_dir=tmp_path) as client:
        assert await answer(client, "/embed", {"inputs": "not"}) == [[0.0] * fakes.DIM]


async def test_predict_is_our_entailment_sorted(lasting: Client) -> None:
    pairs = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in PAIRS]
    own = (await answer(lasting, "/entailment", {"pairs": pairs}))["results"]
    many = await answer(lasting, "/predict", {"inputs": PAIRS})
    one = await answer(lasting, "/predict", {"inputs": PAIRS[0]})
    raw = await answer(lasting, "/predict", {"inputs": PAIRS[0], "raw_scores": True})
    for predictions, result in zip(many, own, strict=True):
        assert predictions[0]["label"] == result["label"]
        assert {p["label"]: p["score"] for p in predictions} == pytest.approx(result["probabilities"], abs=1e-6)
        scores = [p["score"] for p in predictions]
        assert scores == sorted(scores, reverse=True)
    assert one == many[0]
    assert [p["label"] for p in raw] == [p["label"] for p in one]
    assert [math.exp(p["score"]) for p in raw] == pytest.approx([p["score"] for p in one])


async def test_the_bare_url_answers_by_the_body(lasting: Client) -> None:
    for path, body in (
        ("/similarity", {"inputs": {"source_sentence": QUERY, "sentences": TEXTS}}),
        ("/embed", {"inputs": TEXTS}),
        ("/embed", {"inputs": QUERY}),
        ("/rerank", {"query": QUERY, "texts": TEXTS}),
    ):
        assert await answer(lasting, "/", body) == await answer(lasting, path, body)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/rerank", {"query": "a", "texts": []}, 422, "texts: "),
        ("/rerank", {"texts": ["a"]}, 422, "query: Field required"),
        ("/rerank", {"query": "a", "texts": ["a", "\u200b"]}, 400, "texts.1: "),
        ("/rerank", {"query": "a", "texts": ["a"] * 5}, 422, "5 texts, the limit is 4 (SEMBLANCE_MAX_CA"),
        ("/rerank", {"query": "x" * 71, "texts": ["a"]}, 422, "query: a text of 71 characters"),
        ("/rerank", {"query": "a", "texts": ["a"], "model": "m"}, 404, "no model 'm'"),
        ("/rerank", {"query": "a", "texts": ["a", "man " * 13], "truncate": False}, 422, "texts.1: a text"),
        ("/embed", {"inputs": []}, 422, "inputs: expected at least one text"),
        ("/embed", {"inputs": {"a": 1}}, 422, "inputs: expected a text or a list of texts"),
        ("/embed", {"inputs": ["a", None]}, 422, "inputs: item 1 is no text"),
        ("/embed", {"inputs": ["a"] * 3}, 422, "(SEMBLANCE_MAX_SENTENCES)"),
        ("/embed", {"inputs": "a", "dimensions": 9}, 422, "8 dimensions"),
        ("/embed", {"inputs": "a", "prompt_name": "q"}, 422, "prompt_name: "),
        ("/embed", {"inputs": "man " * 13, "truncation_direction": "Left"}, 422, "more than 12 tokens"),
        ("/embed", {"inputs": "a", "truncation_direction": "up"}, 422, "truncation_direction: "),
        ("/embed", {"inputs": "a", "model": "pair-sick"}, 422, "has no embedding"),
        ("/similarity", {"inputs": {"sentences": ["a"]}}, 422, "inputs.source_sentence: Field required"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 422, "inputs.sentences: "),
        ("/similarity", {"inputs": {"source_sentence": " ", "sentences": ["a"]}}, 400, "inputs.source_sentence"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["a", ""]}}, 400, "sentences.1: "),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["a"] * 4}}, 422, "(SEMBLANCE_MAX_PAIRS)"),
        (
            "/similarity",
            {"inputs": {"source_sentence": "a", "sentences": ["man " * 13]}, "parameters": {"truncate": False}},
            422,
            "inputs.sentences.0: ",
        ),
        (
            "/similarity",
            {"inputs": {"source_sentence": "a", "sentences": ["a"]}, "parameters": {"prompt_name": "q"}},
            422,
            "parameters.prompt_name: ",
        ),
        ("/predict", {"inputs": "a"}, 422, "no model here has labels of its own"),
        ("/predict", {"inputs": ["a"]}, 422, "no model here has labels of its own"),
        ("/predict", {"inputs": [["a", "b"], ["c"]]}, 422, "expected a text, a pair of texts"),
        ("/predict", {"inputs": []}, 422, "expected a text, a pair of texts"),
        ("/predict", {"inputs": [["a", "b"]] * 4}, 422, "(SEMBLANCE_MAX_PAIRS)"),
        ("/predict", {"inputs": ["a", " "]}, 400, "inputs.1: "),
        ("/predict", {"inputs": [["a", "b"], [" ", "b"]]}, 400, "inputs.1.0: "),
        ("/predict", {"inputs": ["a", "b"], "model": "avg-paraphrase"}, 422, "has no entailment"),
        ("/", {"inputs": 3}, 422, "inputs: "),
    ],
)
def test_what_does_not_fit_is_told_as_tei_does(limited: httpx.Client, path, body, status, words) -> None:
    response = limited.post(path, json=body)
    assert response.status_code == status
    error = response.json()
    assert set(error) == {"error", "error_type"}
    assert error["error_type"] == ("Empty" if status == 400 else "Validation")
    assert words in error["error"]


@pytest.mark.parametrize("text", ["man " * 13, "man"])
async def test_long_texts_are_cut_unless_that_is_refused(lasting: Client, text: str) -> None:
    for more in ({}, {"truncate": True}, {"truncate": None}, {"truncation_direction": "Right"}):
        assert await answer(lasting, "/embed", {"inputs": text, **more})
    left = await lasting.post("/embed", json={"inputs": text, "truncation_direction": "left"})
    whole = await lasting.post("/embed", json={"inputs": text, "truncate": False})
    assert left.status_code == whole.status_code == (200 if text == "man" else 422)


async def test_info_describes_the_default_or_the_named_model(serve: Serve) -> None:
    async with serve(max_sentences=7, worker_threads=2, model_aliases={"bge-reranker": "pair-sick"}) as client:
        info = (await client.get("/info")).json()
        graded = (await client.get("/info", params={"model": "avg-sick"})).json()
        pair = (await client.get("/info", params={"model": "bge-reranker"})).json()
        unknown = await client.get("/info", params={"model": "nope"})
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
        "max_concurrent_requests": 66,
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


async def test_text_classification_labels_a_pair(lasting: Client) -> None:
    """As `huggingface_hub` sends it: with `parameters`, which its feature_extraction does not send."""
    found = await answer(lasting, "/", {"inputs": PAIRS[0], "parameters": {}})
    assert found == [await answer(lasting, "/predict", {"inputs": PAIRS[0]})]
    best = await answer(lasting, "/", {"inputs": PAIRS[0], "parameters": {"top_k": 1}})
    assert best == [found[0][:1]]  # type: ignore[index]
    assert isinstance((await answer(lasting, "/", {"inputs": QUERY}))[0], list)  # type: ignore[index]


async def test_a_name_on_the_hub_is_ignored_as_tei_does_unless_it_is_an_alias(serve: Serve) -> None:
    asks = {
        "/rerank": {"query": "a man", "texts": ["a dog", "a man"]},
        "/embed": {"inputs": "a man"},
        "/similarity": {"inputs": {"source_sentence": "a man", "sentences": ["a dog"]}},
    }
    async with serve(model_aliases={"mine/reranker": "avg-sick"}) as client:
        for path, body in asks.items():
            usual = await client.post(path, json=body)
            hub = await client.post(path, json=body | {"model": "BAAI/bge-reranker-base"})
            assert (hub.status_code, hub.json()) == (200, usual.json())
            alias = await client.post(path, json=body | {"model": "mine/reranker"})
            assert alias.json() == (await client.post(path, json=body | {"model": "avg-sick"})).json()
            assert (await client.post(path, json=body | {"model": "bge-reranker-base"})).status_code == 404
