"""The published models against each other, and the records that are made of them."""

from itertools import combinations
from pathlib import Path

import pytest

from core.golden import TOLERANCE, GoldenPairs
from core.manifest import Manifest
from training.publish.figures import read_figures
from training.recipes import find, published_as

ROOT = Path(__file__).parent.parent
PAPERS = ROOT / "papers"
MANIFESTS = {path.parent: Manifest.load(path.parent) for path in sorted((ROOT / "models").glob("*/manifest.json"))}


def test_no_published_model_gives_the_answers_of_another() -> None:
    raw = {
        folder.name: {(pair.a, pair.b): pair.raw_score for pair in GoldenPairs.load(folder / "golden.json").pairs}
        for folder in MANIFESTS
    }
    for one, other in combinations(raw, 2):
        scores = [(raw[one][pair], raw[other][pair]) for pair in raw[one] if pair in raw[other]]
        if all(a is not None and b is not None for a, b in scores):
            assert max(abs(a - b) for a, b in scores) > TOLERANCE, f"{one} and {other} give the same answers"  # type: ignore[operator]


@pytest.mark.parametrize("folder", MANIFESTS, ids=lambda folder: folder.name)
def test_no_model_is_an_untrained_one(folder: Path) -> None:
    assert MANIFESTS[folder].provenance.epoch_kept != 0


@pytest.mark.parametrize("folder", MANIFESTS, ids=lambda folder: folder.name)
def test_a_model_and_its_card_say_that_it_is_for_english(folder: Path) -> None:
    assert MANIFESTS[folder].languages == ("en",)
    assert "\n- English only: " in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", MANIFESTS, ids=lambda folder: folder.name)
def test_the_recipe_of_a_published_model_is_found_by_its_name_and_by_its_id(folder: Path) -> None:
    made = MANIFESTS[folder].provenance
    if "name" in made.recipe:  # not a model of another library
        assert published_as(folder.name) is find(str(made.recipe["name"]))


def test_the_figures_of_a_published_run_are_those_of_its_manifest() -> None:
    measured = {run.key: run.figures for run in read_figures(PAPERS / "figures")}
    for manifest in MANIFESTS.values():
        made = manifest.provenance
        if "publication" in made.recipe:
            assert measured[str(made.recipe["name"]), made.seed, "int8"] == manifest.figures, manifest.id
