"""Every family that docs/own-model.md names: tiny random models of transformers, fetched from a small hub by name,
imported, served, and asked; the answers are those of transformers itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax

from core.sequences import pad
from tests.harness.hub import Hub
from tests.workbench import foreign
from workbench.imports.folder import import_model
from workbench.imports.model import ImportOptions
from workbench.tuning.read_back import read_start

pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore"),  # of the other libraries
    pytest.mark.extras,
]
A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog", "\U0001f600 zz the park, 123 n\u00e4ive \u732b")
B = ("a cat sleeps", "the woman plays the flute " * 30, "the big dog runs in the park", "the cat")
POOLING = {"qwen3": "lasttoken", "mpnet": "cls"}  # of the others the mean
# An export takes seconds: each family once. BERT is that of the prompts below, and of test_imports.py.
RERANKER, ENTAILMENT, CLASSIFIER = "xlm-roberta", "roberta", "distilbert"
ENCODERS = sorted(foreign.FAMILIES.keys() - {"bert", "t5", RERANKER, ENTAILMENT, CLASSIFIER})


@pytest.mark.parametrize("family", ENCODERS)
def test_an_encoder_answers_as_its_library(family: str, hub: Hub, tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / family, family, POOLING.get(family, "mean"))
    hub.add(f"people/{family}", folder)
    done = import_model(f"people/{family}", "taken", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.max_difference_float32 < 1e-4
    a, b = foreign.embedded(folder, A), foreign.embedded(folder, B)
    start = read_start(tmp_path / "models" / "taken")  # what was imported can be tuned
    limit = start.manifest.limits.max_tokens
    given = map(torch.from_numpy, pad([start.tokenizer.encode(text, limit).ids for text in (*A, *B)]))
    with torch.inference_mode():
        assert start.network(*given).numpy() == pytest.approx(np.concatenate([a, b]), abs=1e-4)
    cosines = (a * b).sum(axis=1)
    assert np.ptp(cosines) > 0.02  # there is something to agree on
    with foreign.served(tmp_path / "models") as client:
        found = client.post("/embed", json={"sentences": [*A, *B]}).json()
        assert np.array(found["embeddings"]) == pytest.approx(np.concatenate([a, b]), abs=1e-4)
        assert found["truncated"] == [False] * 5 + [True, False, False]
        for x, y, cosine in zip(A, B, cosines, strict=True):  # alone; above in a batch
            answer = client.post("/similarity", json={"pairs": [{"a": x, "b": y}]}).json()
            assert answer["results"][0]["raw_score"] == pytest.approx(cosine, abs=1e-4)
        answer = client.post("/rank", json={"query": A[0], "candidates": B}).json()
        assert [each["index"] for each in answer["results"]] == np.argsort(-(b @ a[0])).tolist()
        openai = client.post("/v1/embeddings", json={"input": list(A), "model": "taken"}).json()
        assert np.array([each["embedding"] for each in openai["data"]]) == pytest.approx(a, abs=1e-4)


def test_a_reranker_answers_as_transformers(hub: Hub, tmp_path: Path) -> None:
    folder = foreign.transformer(tmp_path / "mine", RERANKER, ["score"])
    hub.add("people/mine", folder)
    done = import_model("people/mine", "taken", tmp_path / "models")
    assert done.parity is not None
    expected = foreign.logits(folder, A, B)[:, 0]
    with foreign.served(tmp_path / "models") as client:
        for x, y, value in zip(A, B, expected, strict=True):
            (found,) = client.post("/rank", json={"query": x, "candidates": [y]}).json()["results"]
            assert found["raw_score"] == pytest.approx(value, abs=1e-4)
            assert found["score"] == pytest.approx(1 / (1 + np.exp(-value)), abs=1e-4)
        answer = client.post("/rank", json={"query": A[1], "candidates": B}).json()
        assert answer["truncated"]["candidates"] == [1]  # the longer of both texts is cut, as transformers does
        cohere = client.post("/v2/rerank", json={"query": A[1], "documents": list(B), "model": "taken"}).json()
        assert [each["index"] for each in cohere["results"]] == [each["index"] for each in answer["results"]]


def test_an_entailment_model_answers_as_transformers_in_its_own_order_of_labels(hub: Hub, tmp_path: Path) -> None:
    names = ["contradiction", "Entailment", "neutral"]
    folder = foreign.transformer(tmp_path / "mine", ENTAILMENT, names)
    hub.add("people/mine", folder)
    import_model("people/mine", "taken", tmp_path / "models")
    premises = [text.replace("Dog", "the dog") for text in A]  # from a text without a word it knows nothing follows
    expected = softmax(foreign.logits(folder, premises, B), axis=1)
    with foreign.served(tmp_path / "models") as client:
        pairs = [{"premise": a, "hypothesis": b} for a, b in zip(premises, B, strict=True)]
        found = client.post("/entailment", json={"pairs": pairs}).json()["results"]
    for each, row in zip(found, expected, strict=True):
        named = dict(zip(map(str.lower, names), row, strict=True))
        assert each["probabilities"] == pytest.approx(named, abs=1e-4)


def test_a_classifier_labels_as_transformers(tmp_path: Path) -> None:
    names = ["negative", "neutral", "positive"]  # as many as of entailment
    folder = foreign.transformer(tmp_path / "mine", CLASSIFIER, names)
    import_model(folder, "taken", tmp_path / "models", options=ImportOptions(pairs_head=False))
    expected = softmax(foreign.logits(folder, A + B), axis=1)
    with foreign.served(tmp_path / "models") as client:
        found = client.post("/classify", json={"text": list(A + B)}).json()["results"]
    for each, row in zip(found, expected.tolist(), strict=True):
        assert each["probabilities"] == pytest.approx(dict(zip(names, row, strict=True)), abs=1e-4)


def test_queries_and_candidates_get_their_own_prompts(tmp_path: Path) -> None:
    prompts = {"query": "the man: ", "document": "the park: "}
    folder = foreign.encoder(tmp_path / "mine", prompts=prompts)
    foreign.changed(folder / "config.json", matryoshka_dimensions=[8, 16, 24])
    import_model(folder, "taken", tmp_path / "models")
    texts = (*A[:3], B[0])
    plain, query, passages = (foreign.embedded(folder, texts, prompt) for prompt in ("", *prompts.values()))
    assert np.abs(plain - query).max() > 0.05
    with foreign.served(tmp_path / "models") as client:
        found = client.post("/rank", json={"query": texts[0], "candidates": texts}).json()["results"]
        by_place = {each["index"]: each["raw_score"] for each in found}
        assert [by_place[i] for i in range(4)] == pytest.approx(passages @ query[0], abs=1e-4)
        for role, expected in (("text", plain), ("query", query), ("passage", passages)):
            answer = client.post("/embed", json={"sentences": texts, "role": role}).json()
            assert np.array(answer["embeddings"]) == pytest.approx(expected, abs=1e-4)
        body = {"texts": texts, "model": "taken", "embedding_types": ["float"], "input_type": "search_query"}
        cohere = client.post("/v2/embed", json=body).json()
        assert np.array(cohere["embeddings"]["float"]) == pytest.approx(query, abs=1e-4)
        tasks = {"retrieval.query": query, "retrieval.passage": passages, "text-matching": plain}
        asked = [({"task": task}, wanted) for task, wanted in tasks.items()]
        asked += [({"input_type": "query"}, query), ({"input_type": "document"}, passages)]
        for field, wanted in asked:
            rows = client.post("/v1/embeddings", json={"input": list(texts), **field}).json()["data"]
            unit = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
            assert np.array([row["embedding"] for row in rows]) == pytest.approx(unit, abs=1e-4)
        tei = client.post("/tei/embed", json={"inputs": list(texts), "prompt_name": "document"}).json()
        assert np.array(tei) == pytest.approx(passages, abs=1e-4)
        short = client.post("/v1/embeddings", json={"input": list(texts), "model": "taken", "dimensions": 8}).json()
        cut = plain[:, :8] / np.linalg.norm(plain[:, :8], axis=1, keepdims=True)
        assert np.array([each["embedding"] for each in short["data"]]) == pytest.approx(cut, abs=1e-4)
        refused = client.post("/v1/embeddings", json={"input": "a", "model": "taken", "dimensions": 7})
        assert "24 dimensions, also 8, 16" in refused.text
        blank = client.post("/rank", json={"query": " \u200b", "candidates": ["a"]})
        assert blank.status_code == 422
