"""Where an interaction model's numbers come from: its corpora, those of its starts, and their licences."""

from dataclasses import replace

import numpy as np
import pytest

from contract.manifest import TrainingData
from training.corpora import catalogue, pairwise
from training.corpora.pairwise import Corpus, CorpusParts
from training.pairs import Pair
from training.publishing.publish import commands_for, training_data_for
from training.recipes import RECIPES, find
from training.recipes.recipe import Recipe
from training.sources.credits import MPNET, TEACHER
from training.sources.labelled import CorpusPairs
from training.sources.tables import PublishedTable
from training.sources.tasks import TaskPairs
from training.words.published import WordVectors


def pairs(count: int, group: str) -> tuple[Pair, ...]:
    return tuple(Pair(f"{group} {i}", "b", 1.0, group=group) for i in range(count))


PARTS = {
    "sts2014": CorpusParts(
        pairs(3, "2012-train/MSRpar") + pairs(4, "2012-test/SMT") + pairs(5, "2013-test/FNWN"), (), {}
    ),
    "answers": CorpusParts(pairs(6, "wikiqa:q1") + pairs(7, "trecqa:q1"), (), {}),
    "wikiqa": CorpusParts(pairs(6, "q1"), (), {}),
    "trecqa": CorpusParts(pairs(7, "q1"), (), {}),
    "msrp": CorpusParts(pairs(8, "1-2"), (), {}),
}


@pytest.fixture(autouse=True)
def corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "read", PARTS.__getitem__)


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


@pytest.mark.parametrize(
    ("corpus", "rows"),
    [
        ("sts2014", {"sts-2012": 7, "sts-2013": 5}),
        ("answers", {"wikiqa": 6, "trecqa": 7}),
        ("trecqa", {"trecqa": 7}),
        ("msrp", {"msrp": 8}),
    ],
)
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


def test_the_data_of_a_teacher_that_is_kept_come_last() -> None:
    """A published model that rates pairs names its own data in its manifest; a kept one has none."""
    taught = replace(find("minilm-cross"), start=None, data=TaskPairs(("written-edits",), rated_by="mpnet-pairs"))
    teacher = replace(find("mpnet-pairs"), data=TaskPairs(("written-claims",)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "mpnet-pairs", teacher)
        found = training_data_for(taught)
        assert found[-2].name == MPNET.name
        assert "entailment" in found[-1].use
        published = training_data_for(replace(taught, data=replace(taught.data, rated_by="minilm-cross")))
    assert MPNET.name not in {entry.name for entry in published}
    assert commands_for(taught, 1)[0] == "python -m training weights all-mpnet-base-v2"
