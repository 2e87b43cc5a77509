"""What a folder says of itself: its languages, and whether its outputs are of pairs or single texts, in which order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from tests.workbench import foreign
from training.publish.runtime import PublishedModel
from workbench.imports.calibration import read_labelled
from workbench.imports.described import pair_of
from workbench.imports.files import ImportRefused, read_stated
from workbench.imports.folder import import_model
from workbench.imports.model import ImportOptions

A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog")
B = ("a cat sleeps", "the woman plays the flute", "the big dog runs in the park")
THREE, TWO = ("entailment", "neutral", "contradiction"), ("entailment", "not_entailment")


@pytest.mark.parametrize(
    ("named", "task", "meant"),
    [
        (("contradiction", "neutral", "entailment"), "entailment", THREE[::-1]),
        (("ENTAILMENT", "Neutral", "Contradiction"), "entailment", THREE),
        (("not_entailment", "entailment"), "entailment", TWO[::-1]),
        (("entailment", "not entailment"), "entailment", TWO),
        (("contradiction", "entailment"), "entailment", ("contradiction", "entailment")),
        (("irrelevant", "relevant"), "relevance", ("irrelevant", "relevant")),
        # Other labels tell nothing.
        (("LABEL_0", "LABEL_1"), None, ()),
        (("negative", "positive"), None, ()),
        (("entailment", "not_entailment", "neutral"), None, ()),
        (("neutral", "contradiction"), None, ()),
        (("relevant", "entailment"), None, ()),
        (("entailment", "Entailment", "neutral"), None, ()),
        (("entailment", "neutral", "contradiction", "other"), None, ()),
    ],
)
def test_labels_in_any_order_and_spelling_are_understood(
    named: Sequence[str], task: str | None, meant: tuple[str, ...]
) -> None:
    assert pair_of(named) == ((task, meant) if task else None)


def two(folder: Path, *labels: str) -> Path:
    return foreign.transformer(folder / "two", "bert", labels)


@pytest.mark.timeout(1500)
@pytest.mark.filterwarnings("ignore")
class TestServed:
    def test_two_labels_of_entailment(self, tmp_path: Path) -> None:
        folder = two(tmp_path, "not_entailment", "entailment")
        import_model(folder, "mine", tmp_path / "models")
        pairs = [{"premise": a, "hypothesis": b} for a, b in zip(A, B, strict=True)]
        with foreign.served(tmp_path / "models") as client:
            found = client.post("/entailment", json={"pairs": pairs}).json()["results"]
            predicted = client.post("/tei/predict", json={"inputs": list(zip(A, B, strict=True))}).json()
        expected = softmax(foreign.logits(folder, A, B), axis=1)
        for answer, prediction, (other, entailed) in zip(found, predicted, expected, strict=True):
            assert answer["probabilities"] == pytest.approx({"entailment": entailed, "not_entailment": other}, abs=1e-5)
            assert answer["label"] == ("entailment" if entailed > other else "not_entailment")
            assert {each["label"] for each in prediction} == {"entailment", "not_entailment"}

    def test_pairs_with_two_labels_of_entailment_give_a_temperature(self, tmp_path: Path) -> None:
        folder, path = two(tmp_path, "not_entailment", "entailment"), tmp_path / "pairs.csv"
        rows = [f"the cat {i},a dog,{('' if i % 3 else 'not_')}entailment" for i in range(24)]
        path.write_text("\n".join(["a,b,label", *rows]))
        done = import_model(
            folder, "mine", tmp_path / "models", labelled=lambda model: read_labelled(path, model.label)
        )
        task = PublishedModel(done.folder).manifest.entailment
        assert task is not None
        assert task.temperature != 1.0

    def test_two_labels_of_relevance(self, tmp_path: Path) -> None:
        folder = two(tmp_path, "irrelevant", "relevant")
        model = PublishedModel(import_model(folder, "mine", tmp_path / "models").folder)
        assert model.manifest.ranking_task == "relevance"
        expected = softmax(foreign.logits(folder, A, B), axis=1)[:, 1]
        assert model.similarity(A, B, "relevance").score == pytest.approx(expected, abs=1e-5)

    def test_a_reranker_of_one_output_answers_predict(self, tmp_path: Path) -> None:
        folder = two(tmp_path, "score")
        import_model(folder, "mine", tmp_path / "models")
        with foreign.served(tmp_path / "models") as client:
            asked = {"inputs": list(zip(A, B, strict=True)), "model": "mine"}
            found = client.post("/tei/predict", json=asked).json()
            raw = client.post("/tei/predict", json=asked | {"raw_scores": True}).json()
        expected = foreign.logits(folder, A, B)[:, 0]
        assert [[each["label"] for each in answer] for answer in found] == [["LABEL_0"]] * len(A)
        assert [answer[0]["score"] for answer in found] == pytest.approx(1 / (1 + np.exp(-expected)), abs=1e-5)
        assert [answer[0]["score"] for answer in raw] == pytest.approx(expected, abs=1e-4)

    def test_where_nothing_tells_the_command_asks(self, tmp_path: Path) -> None:
        folder, models = two(tmp_path, "duplicate", "other"), tmp_path / "models"
        said = r"nothing says whether the model reads two texts .* --pairs-head yes or no"
        with pytest.raises(ImportRefused, match=said):
            import_model(folder, "mine", models)
        with pytest.raises(ImportRefused, match=r"of a model that reads two texts expected .* relevant, irrelevant"):
            import_model(folder, "mine", models, options=ImportOptions(pairs_head=True))
        one = import_model(folder, "mine", models, options=ImportOptions(pairs_head=False))
        assert PublishedModel(one.folder).manifest.classification is not None
        named = ImportOptions(labels=["relevant", "irrelevant"], pairs_head=True)
        both = import_model(folder, "yours", models, options=named)
        assert PublishedModel(both.folder).manifest.relevance is not None


@pytest.mark.parametrize(
    ("readme", "languages"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model", ("en",)),
        ("---\nlicense: mit\nlanguage:\n- en\n- de\ntags:\n- fr\n---\n", ("en", "de")),
        ("---\nlanguage:\n  - de\n  - en\n---\n", ("de", "en")),
        ('---\nlanguage: ["en", "nl"]\n---\n', ("en", "nl")),
        ("---\nlanguage: multilingual\n---\n", None),
        ("---\nlanguage:\n- en\n- code\n- zh-Hant\n---\n", ("en", "zh")),
        ("---\nlanguage: no\n---\n", ("no",)),  # which YAML reads as false
        ("---\nlanguage: [\n---\n", None),
        ("---\na: &a [en, en]\nb: &b [*a, *a]\nlanguage: [*b, *b]\n---\n", None),  # which may grow without end
        ("\n---\na: &a en\nlanguage: *a\n---\n", None),
        ("---\ntags:\n- Q &A\nlanguage: en\n---\n", ("en",)),
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
    assert read_stated(tmp_path).languages == languages


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ("mit", "mit"),
        ("[mit, apache-2.0]", "mit, apache-2.0"),
        ('"a\\nb\\u2028c\\x1b[1m"', "a b c [1m"),
        ("x" * 300, "x" * 200),
        ("other\nlicense_name: mine", "mine"),
        ('""', None),
    ],
)
def test_its_licence_is_one_short_line(tmp_path: Path, stated: str, licence: str | None) -> None:
    (tmp_path / "README.md").write_text(f"---\nlicense: {stated}\n---\n")
    assert read_stated(tmp_path).licence == licence
