"""Labels of texts: a model's own, or any, by what an entailment model says."""

from pathlib import Path

import numpy as np
import pytest

from core.labels import classification, classify
from core.manifest import Manifest
from core.sequences import WordFeeds
from service.scoring.classifying import judged
from tests.harness import fakes
from tests.harness.requests import refused
from tests.harness.service import Client, Serve

pytestmark = pytest.mark.anyio
TEXTS = ["a man plays the guitar", "a dog runs in the park", "not"]
LABELS = ["guitar", "dog", "sofa"]


@pytest.fixture
def labelling(tmp_path: Path) -> Path:
    """A model with labels of its own beside one with entailment and the default of /similarity."""
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    fakes.graded_model(tmp_path / "avg-sick")
    fakes.labelling_model(tmp_path / "sentiment")
    return tmp_path


async def test_a_model_answers_with_its_own_labels(serve: Serve, labelling: Path) -> None:
    manifest, runs = Manifest.load(labelling / "sentiment"), fakes.runs_of(labelling / "sentiment")
    task = manifest.classification
    assert task is not None
    ids = [fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids for text in TEXTS]
    expected = [
        classification(task, classify(runs[task.graph], WordFeeds().rows(runs["encoder.onnx"], [[each]])))[0]
        for each in ids
    ]
    async with serve(models_dir=labelling) as client:
        found = await client.answer("/classify", text=TEXTS)
        one = await client.answer("/classify", text=TEXTS[0], model="sentiment")
        listed = (await client.get("/models")).json()
    assert found["model"] == "sentiment"
    assert [list(each["probabilities"]) for each in found["results"]] == [["negative", "positive"]] * 3
    for result, probabilities in zip(found["results"], expected, strict=True):
        assert result["probabilities"] == pytest.approx(probabilities, abs=1e-6)
        assert result["label"] == max(probabilities, key=probabilities.get)  # type: ignore[arg-type]
        assert (result["truncated"], set(result)) == (False, {"label", "probabilities", "truncated"})
    assert one["results"] == found["results"][:1]
    described = {model["id"]: model for model in listed["models"]}
    assert described["sentiment"]["labels"] == ["negative", "positive"]
    assert described["sentiment"]["tasks"] == ["classification", "embedding"]
    assert described["sentiment"]["default_for"] == ["/classify"]
    assert described["avg-sick"]["labels"] is None
    assert listed["defaults"]["/classify"] == "sentiment"


async def test_what_was_cut_is_said(serve: Serve, labelling: Path) -> None:
    async with serve(models_dir=labelling) as client:
        for labels in ({}, {"labels": LABELS}):
            found = await client.answer("/classify", text=[TEXTS[0], "man " * 13], **labels)
            assert [each["truncated"] for each in found["results"]] == [False, True]
        long = await client.answer("/classify", text="a", labels=["dog " * 13])
    assert long["results"][0]["truncated"]


async def test_without_labels_the_default_model_with_labels_of_its_own_answers(serve: Serve, labelling: Path) -> None:
    fakes.labelling_model(labelling / "topics", "topics", labels=("sport", "art", "trade"))
    async with serve(models_dir=labelling) as client:
        default = await client.answer("/classify", text="a")
        named = await client.answer("/classify", text="a", model="topics")
        assert (await client.get("/models")).json()["defaults"]["/classify"] == "sentiment"
    assert default["model"] == "sentiment"  # a second one does not take its place
    assert list(named["results"][0]["probabilities"]) == ["sport", "art", "trade"]
    async with serve() as client:
        nobody = (await client.post("/classify", json={"text": "a"})).json()["error"]
    assert (nobody["field"], "no model here has labels of its own" in nobody["message"]) == ("labels", True)


@pytest.mark.parametrize("model", [None, "pair-sick"])
async def test_given_labels_are_judged_by_entailment(lasting: Client, model: str | None) -> None:
    pairs = [{"premise": text, "hypothesis": f"the {label} ."} for text in TEXTS for label in LABELS]
    said = (await lasting.answer("/entailment", pairs=pairs, model=model))["results"]
    body = {"text": TEXTS, "labels": LABELS, "template": "the {} .", "model": model}
    one_of = await lasting.answer("/classify", **body)
    each = await lasting.answer("/classify", **body, multi_label=True)
    alone = await lasting.answer("/classify", **body | {"labels": LABELS[:1]})
    assert one_of["model"] == (model or "avg-sick")
    for i, (single, several) in enumerate(zip(one_of["results"], each["results"], strict=True)):
        of_text = [result["probabilities"] for result in said[3 * i : 3 * i + 3]]
        entailed = np.array([p["entailment"] for p in of_text])
        against = np.array([p["contradiction"] for p in of_text])
        # The softmax of logarithms is the share of what they are logarithms of.
        softmax = np.exp(np.log(entailed)) / np.exp(np.log(entailed)).sum()
        assert single["probabilities"] == pytest.approx(dict(zip(LABELS, softmax, strict=True)), abs=1e-6)
        expected = entailed / (entailed + against)
        assert several["probabilities"] == pytest.approx(dict(zip(LABELS, expected, strict=True)), abs=1e-6)
        assert single["label"] == LABELS[int(softmax.argmax())]
        assert alone["results"][i]["probabilities"]["guitar"] == pytest.approx(expected[0], abs=1e-6)


async def test_the_template_has_a_default(lasting: Client) -> None:
    default = await lasting.answer("/classify", text=TEXTS[0], labels=LABELS)
    same = await lasting.answer("/classify", text=TEXTS[0], labels=LABELS, template="This text is about {}.")
    other = await lasting.answer("/classify", text=TEXTS[0], labels=LABELS, template="the {}")
    assert default == same != other


def test_probabilities_beyond_the_range_of_floats_say_nothing() -> None:
    nothing = [{"entailment": 0.0, "neutral": 1.0, "contradiction": 0.0}] * 4
    assert judged(nothing, multi_label=False) == [0.25] * 4
    assert judged(nothing, multi_label=True) == [0.5] * 4


@pytest.mark.parametrize(
    ("texts", "labels", "field"), [(300, 1, "text"), (1, 300, "labels"), (200, 2, "text"), (300, 300, "text")]
)
async def test_the_number_that_is_named_is_less_than_what_was_sent(client: Client, texts, labels, field) -> None:
    body = {"text": [f"a {i}" for i in range(texts)], "labels": [f"b {i}" for i in range(labels)]}
    status, error = await refused(client, "/classify", json=body)
    assert (status, error["code"], error["field"]) == (413, "too_large", field)
    assert 0 < error["limit"] < len(body[field])
    fewer = {**body, field: body[field][: error["limit"]]}
    assert (await client.post("/classify", json=fewer)).status_code == (413 if texts == labels else 200)


async def test_a_template_is_short_and_has_one_place(client: Client) -> None:
    body = {"text": "a", "labels": ["b"], "template": "{}" + "b" * 1000}
    status, error = await refused(client, "/classify", json=body)
    assert (status, error["code"], error["field"], error["limit"]) == (413, "too_large", "template", 1000)
    for template in ("{} {}", "no place"):
        status, error = await refused(client, "/classify", json=body | {"template": template})
        assert (status, error["field"]) == (422, "template")
