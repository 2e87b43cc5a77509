"""For what text a model is: what its figures say, and what its manifest states."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contract.manifest import Figure, Manifest, TaskDomain, TrainingData
from tests.harness import fakes
from training.publishing.domain import domains_of


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return fakes.graded_model(tmp_path_factory.mktemp("models") / "avg-sick").model_copy(update={"domain": None})


def data(name: str, use: str) -> TrainingData:
    return TrainingData(name=name, use=use, rows=1, licence="CC0-1.0", source="made up")


def figure(corpus: str, value: float, task: Any = "entailment", metric: str = "accuracy") -> Figure:
    return Figure(task=task, corpus=corpus, split="test", metric=metric, value=value, rows=10)


def of(manifest: Manifest, task: str, **changes: Any) -> TaskDomain:
    return next(each for each in domains_of(manifest.model_copy(update=changes)) if each.task == task)


SICK = data("sick", "train: relatedness and entailment; trial: choice of the epoch")


def test_figures_on_its_own_corpus_say_nothing_of_others(graded: Manifest) -> None:
    found = of(graded, "entailment", training_data=(SICK,), figures=(figure("SICK", 0.9),))
    assert found == TaskDomain(task="entailment", learnt_from=("sick",), elsewhere="unmeasured")


@pytest.mark.parametrize(("values", "elsewhere"), [((0.35, 0.4), "chance"), ((0.74, 0.5), "good")])
def test_figures_on_other_corpora_say_it(graded: Manifest, values: tuple[float, ...], elsewhere: str) -> None:
    others = tuple(figure(name, value) for name, value in zip(("SNLI", "SciTail"), values, strict=True))
    found = of(graded, "entailment", training_data=(SICK,), figures=(figure("SICK", 0.9), *others))
    assert (found.elsewhere, found.measured_on) == (elsewhere, ("SNLI", "SciTail"))


@pytest.mark.parametrize(("corpus", "name"), [("SNLI", "snli-train"), ("MultiNLI", "mnli-train"), ("WikiQA", "wikiqa")])
def test_a_corpus_is_known_by_both_of_its_names(graded: Manifest, corpus: str, name: str) -> None:
    learnt = (data(name, "train: entailment"),)
    found = of(graded, "entailment", training_data=learnt, figures=(figure(corpus, 0.9),))
    assert (found.learnt_from, found.elsewhere) == ((name,), "unmeasured")


def test_only_labels_of_the_task_count(graded: Manifest) -> None:
    learnt = (
        data("snli", "sentences, without labels, regressed to the teacher's encodings"),
        data("sts-2016", "choice of the epoch"),
        data("qqp", "train: related"),
        data("mnli-train", "train: entailment"),
    )
    figures = (figure("SNLI", 0.8, "similarity", "pearson"), figure("transfer", 0.1, "similarity", "pearson"))
    found = of(graded, "similarity", training_data=learnt, figures=figures)
    assert found == TaskDomain(task="similarity", learnt_from=(), elsewhere="good", measured_on=("SNLI",))
    assert of(graded, "entailment", training_data=learnt, figures=figures).learnt_from == ("mnli-train",)


def test_a_mean_of_sets_is_one_corpus(graded: Manifest) -> None:
    sets = tuple(figure("STS 2012", value, "similarity", "pearson") for value in (0.7, 0.9, 0.8))
    other = figure("STS 2013", 0.1, "similarity", "pearson")
    found = of(graded, "similarity", training_data=(SICK,), figures=(*sets, other))
    assert (found.elsewhere, found.measured_on) == ("chance", ("STS 2012", "STS 2013"))  # (.8 + .1) / 2


def test_what_is_stated_comes_first_and_moves_no_score(graded: Manifest, tmp_path: Path) -> None:
    stated = TaskDomain(task="entailment", learnt_from=("sick",), elsewhere="chance", measured_on=("SNLI",))
    manifest = Manifest.model_validate({**graded.model_dump(), "domain": [stated]})
    assert of(manifest, "entailment") == stated
    assert of(manifest, "similarity") == of(graded, "similarity")
    assert manifest.expected_fingerprint() == graded.fingerprint
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest
    for wrong in ([stated, stated], [stated.model_copy(update={"task": "relevance"})]):
        with pytest.raises(ValidationError, match="domain states each task of the model once"):
            Manifest.model_validate({**graded.model_dump(), "domain": wrong})
