"""What a folder says of itself: its languages, and whether its outputs are of pairs or single texts, in which order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from tests.workbench import foreign
from training.publishing.runtime import PublishedModel
from workbench.imports.described import pair_of
from workbench.imports.files import ImportRefused, languages_of
from workbench.imports.folder import import_model
from workbench.imports.model import ImportOptions

A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog")
B = ("a cat sleeps", "the woman plays the flute", "the big dog runs in the park")
THREE, TWO = ("entailment", "neutral", "contradiction"), ("entailment", "not_entailment")


@pytest.mark.parametrize(
    ("named", "task", "order", "labels"),
    [
        (("contradiction", "neutral", "entailment"), "entailment", (2, 1, 0), THREE),
        (("ENTAILMENT", "Neutral", "Contradiction"), "entailment", (0, 1, 2), THREE),
        (("e", "n", "c"), "entailment", (0, 1, 2), THREE),
        (("contradicts", "entails", "neutral"), "entailment", (1, 2, 0), THREE),
        (("not_entailment", "entailment"), "entailment", (1, 0), TWO),
        (("entailment", "not entailment"), "entailment", (0, 1), TWO),
        (("Non-Entailment", "Entailment"), "entailment", (1, 0), TWO),
        (("contradiction", "entailment"), "entailment", (1, 0), ("entailment", "contradiction")),
        (("irrelevant", "relevant"), "relevance", (1, 0), ()),
        (("relevant", "not_relevant"), "relevance", (0, 1), ()),
    ],
)
def test_labels_in_any_order_and_spelling_are_understood(
    named: Sequence[str], task: str, order: tuple[int, ...], labels: tuple[str, ...]
) -> None:
    assert pair_of(named) == (task, order, labels)


@pytest.mark.parametrize(
    "named",
    [
        ("LABEL_0", "LABEL_1"),
        ("negative", "positive"),
        ("entailment", "not_entailment", "neutral"),
        ("neutral", "contradiction"),
        ("relevant", "entailment"),
        ("e", "e", "c"),
        ("entailment", "neutral", "contradiction", "other"),
    ],
)
def test_other_labels_tell_nothing(named: Sequence[str]) -> None:
    assert pair_of(named) is None


def logits(folder: Path) -> np.ndarray:
    """Of the pairs by transformers."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    with torch.inference_mode():
        read = tokenizer(list(A), list(B), padding=True, return_tensors="pt")
        return np.asarray(model(**read).logits.numpy(), dtype=np.float64)


def softmax(found: np.ndarray) -> np.ndarray:
    shifted = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.filterwarnings("ignore")
class TestServed:
    def test_two_labels_of_entailment(self, tmp_path: Path) -> None:
        folder = foreign.with_graph(foreign.transformer(tmp_path / "two", "bert", ["not_entailment", "entailment"]))
        import_model(folder, "mine", tmp_path / "models")
        pairs = [{"premise": a, "hypothesis": b} for a, b in zip(A, B, strict=True)]
        with TestClient(create_app(Settings(models_dir=(tmp_path / "models",)))) as client:
            found = client.post("/entailment", json={"pairs": pairs}).json()["results"]
            predicted = client.post("/predict", json={"inputs": [[a, b] for a, b in zip(A, B, strict=True)]}).json()
        expected = softmax(logits(folder))
        for answer, prediction, (other, entailed) in zip(found, predicted, expected, strict=True):
            assert answer["probabilities"] == pytest.approx({"entailment": entailed, "not_entailment": other}, abs=1e-5)
            assert answer["label"] == ("entailment" if entailed > other else "not_entailment")
            assert {each["label"] for each in prediction} == {"entailment", "not_entailment"}

    def test_two_labels_of_relevance(self, tmp_path: Path) -> None:
        folder = foreign.with_graph(foreign.transformer(tmp_path / "two", "bert", ["irrelevant", "relevant"]))
        model = PublishedModel(import_model(folder, "mine", tmp_path / "models").folder)
        assert model.manifest.ranking_task == "relevance"
        assert model.similarity(A, B, "relevance").score == pytest.approx(softmax(logits(folder))[:, 1], abs=1e-5)

    def test_a_reranker_of_one_output_answers_predict(self, tmp_path: Path) -> None:
        folder = foreign.with_graph(foreign.transformer(tmp_path / "one", "bert", ["score"]))
        import_model(folder, "mine", tmp_path / "models")
        with TestClient(create_app(Settings(models_dir=(tmp_path / "models",)))) as client:
            asked = {"inputs": [[a, b] for a, b in zip(A, B, strict=True)], "model": "mine"}
            found = client.post("/predict", json=asked).json()
            raw = client.post("/predict", json=asked | {"raw_scores": True}).json()
        expected = logits(folder)[:, 0]
        assert [[each["label"] for each in answer] for answer in found] == [["LABEL_0"]] * len(A)
        assert [answer[0]["score"] for answer in found] == pytest.approx(1 / (1 + np.exp(-expected)), abs=1e-5)
        assert [answer[0]["score"] for answer in raw] == pytest.approx(expected, abs=1e-4)

    def test_where_nothing_tells_the_command_asks(self, tmp_path: Path) -> None:
        folder = foreign.with_graph(foreign.transformer(tmp_path / "two", "bert", ["duplicate", "other"]))
        with pytest.raises(
            ImportRefused, match=r"nothing says whether the model reads two texts .* --pairs-head yes or no"
        ):
            import_model(folder, "mine", tmp_path / "models")
        with pytest.raises(ImportRefused, match=r"of a model that reads two texts expected .* relevant, irrelevant"):
            import_model(folder, "mine", tmp_path / "models", options=ImportOptions(pairs_head=True))
        one = import_model(folder, "mine", tmp_path / "models", options=ImportOptions(pairs_head=False))
        assert PublishedModel(one.folder).manifest.classification is not None
        two = import_model(
            folder,
            "yours",
            tmp_path / "models",
            options=ImportOptions(labels=["relevant", "irrelevant"], pairs_head=True),
        )
        assert PublishedModel(two.folder).manifest.relevance is not None


@pytest.mark.parametrize(
    ("readme", "languages"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model", ("en",)),
        ("---\nlicense: mit\nlanguage:\n- en\n- de\ntags:\n- fr\n---\n", ("en", "de")),
        ("---\nlanguage:\n  - de\n  - en\n---\n", ("de", "en")),
        ('---\nlanguage: ["en", "nl"]\n---\n', ("en", "nl")),
        ("---\nlanguage: multilingual\n---\n", None),
        ("---\nlanguage:\n- en\n- code\n---\n", None),
        ("---\nlicense: mit\n---\nlanguage: en\n", None),
        ("# A model\n\nlanguage: en\n", None),
        ("", None),
        (None, None),
    ],
)
def test_they_are_those_of_the_readmes_head(
    tmp_path: Path, readme: str | None, languages: tuple[str, ...] | None
) -> None:
    if readme is not None:
        (tmp_path / "README.md").write_text(readme)
    assert languages_of(tmp_path) == languages
