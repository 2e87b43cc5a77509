"""Where a model's numbers come from, and for what text it is: its corpora, those of its starts, and its figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import papers.recipes  # noqa: F401 (makes them known)
from core.manifest import Figure, Manifest, TaskDomain, TrainingData
from tests.harness import fakes
from training.data import catalogue, pairwise
from training.data.pairs import Pair
from training.data.pairwise import Corpus, CorpusParts
from training.data.words.published import WordVectors
from training.publish.card import write_card
from training.publish.domain import domains_of
from training.publish.publish import commands_for, training_data_for
from training.recipes import RECIPES, find
from training.recipes.recipe import Recipe
from training.recipes.sources.credits import MPNET, TEACHER
from training.recipes.sources.labelled import CorpusPairs
from training.recipes.sources.tables import PublishedTable
from training.recipes.sources.tasks import TaskPairs


def pairs(count: int, group: str) -> tuple[Pair, ...]:
    return tuple(Pair(f"{group} {i}", "b", 1.0, group=group) for i in range(count))


PARTS = {
    "sts2014": (pairs(3, "2012-train/MSRpar") + pairs(4, "2012-test/SMT") + pairs(5, "2013-test/FNWN")),
    "answers": pairs(6, "wikiqa:q1") + pairs(7, "trecqa:q1"),
    "wikiqa": pairs(6, "q1"),
    "trecqa": pairs(7, "q1"),
    "msrp": pairs(8, "1-2"),
}


@pytest.fixture(autouse=True)
def corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "read", lambda corpus: CorpusParts(PARTS[corpus], (), {}))


def used(recipe: Recipe) -> list[TrainingData]:
    """What a recipe without a start adds to the teacher and the corpus of the word counts."""
    teacher, counts, *rest = training_data_for(replace(recipe, start=None))
    assert (teacher, counts.name) == (TEACHER, "wikipedia")
    return rest


def test_published_word_vectors_take_the_place_of_the_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    read = WordVectors(["a", "cat"], np.ones((2, 3), np.float32))
    monkeypatch.setattr(PublishedTable, "vectors", lambda table: read)
    words, *rest = training_data_for(replace(find("pwim-sick-glove"), data=CorpusPairs("msrp")))
    assert [entry.name for entry in rest] == ["msrp"]
    assert (words.name, words.rows, words.licence) == ("glove-sick", 2, "PDDL 1.0")
    assert words.source == "https://nlp.stanford.edu/projects/glove/"
    assert "word vectors" in words.use


ROWS = {
    "sts2014": {"sts-2012": 7, "sts-2013": 5}, "answers": {"wikiqa": 6, "trecqa": 7}, "trecqa": {"trecqa": 7},
    "msrp": {"msrp": 8},
}  # fmt: skip


@pytest.mark.parametrize(("corpus", "rows"), ROWS.items(), ids=ROWS)
def test_every_corpus_behind_the_pairs_is_named_with_its_licence(corpus: Corpus, rows: dict[str, int]) -> None:
    found = used(replace(find("pwim-sick-alone"), data=CorpusPairs(corpus)))
    assert {entry.name: entry.rows for entry in found} == rows
    for entry in found:
        assert (entry.licence, entry.source) == (catalogue.find(entry.name).licence, catalogue.find(entry.name).source)
        assert entry.use.startswith("train: ")
        assert "choice of the epoch" in entry.use


def test_the_data_of_the_starts_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    start = replace(find("pwim-answers"), start=None)
    monkeypatch.setitem(RECIPES, "pwim-answers", start)
    recipe = replace(find("pwim-qa"), data=CorpusPairs("answers"), start="pwim-answers")
    assert training_data_for(recipe) == (*training_data_for(start), *used(recipe))


def test_the_data_of_a_teacher_that_is_kept_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A published model that rates pairs names its own data in its manifest; a kept one has none."""
    taught = replace(find("minilm-cross"), start=None, data=TaskPairs(("written-edits",), rated_by="mpnet-pairs"))
    monkeypatch.setitem(RECIPES, "mpnet-pairs", replace(find("mpnet-pairs"), data=TaskPairs(("written-claims",))))
    found = training_data_for(taught)
    assert found[-2].name == MPNET.name
    assert "entailment" in found[-1].use
    published = training_data_for(replace(taught, data=replace(taught.data, rated_by="minilm-cross")))
    assert MPNET.name not in {entry.name for entry in published}
    assert commands_for(taught, 1)[0] == "python -m training weights all-mpnet-base-v2"


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
    # Those on others do.
    for values, elsewhere in (((0.35, 0.4), "chance"), ((0.74, 0.5), "good")):
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

    # A mean of sets is one corpus.
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


PUBLISHED = sorted(path.parent for path in (Path(__file__).parents[3] / "models").glob("*/manifest.json"))
# What recipes state: measured apart from the manifest's figures, or learnt by the run that it starts from.
STATED = {
    ("avg-sick", "entailment"),
    ("avg-sick-tuned", "entailment"),
    ("malstm-sick", "entailment"),
}


@pytest.mark.artifacts
@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_card_and_domain_of_a_published_model_follow_from_its_manifest(folder: Path, tmp_path: Path) -> None:
    manifest = Manifest.load(folder)
    write_card(manifest, tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text() == (folder / "README.md").read_text()
    derived = domains_of(manifest.model_copy(update={"domain": None}))
    differ = {each.task for each, said in zip(derived, manifest.domain or (), strict=True) if each != said}
    assert {(manifest.id, task) for task in differ} == {each for each in STATED if each[0] == manifest.id}


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        (["Apache-2.0", "MIT"], None),
        (["Apache-2.0", "CC BY-NC 4.0"], "One of these allows research"),
        (["unstated", "research use"], "Several of these allow research"),
    ],
)
def test_a_card_speaks_of_research_where_a_licence_does(tmp_path: Path, licences: list[str], said: str | None) -> None:
    manifest = Manifest.load(PUBLISHED[0])
    data = [manifest.training_data[0].model_copy(update={"licence": each}) for each in licences]
    write_card(manifest.model_copy(update={"training_data": tuple(data)}), tmp_path / "card.md")
    assert ("research or" in (card := (tmp_path / "card.md").read_text())) == (said is not None)
    assert said is None or said in card
