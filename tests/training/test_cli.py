"""The command line and its recipes: faults told in one line, what every recipe must hold to."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import papers.recipes  # noqa: F401 (makes them known)
from tests.harness import toys
from training.__main__ import run_cli
from training.console import console
from training.data.tasks import TASKS
from training.families import family_of
from training.models import HeadsConfig
from training.models.layers import WordEmbedding
from training.publish.publish import commands_for
from training.recipes import RECIPES, TABLES, find, mgim, program_of, register
from training.recipes.sources.source import RecipeError
from training.recipes.sources.tables import PretrainedEncoder


@pytest.fixture
def training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`python -m training` in this process, for another one imports for seconds: its exit code and what it prints."""
    monkeypatch.setenv("SEMBLANCE_DATA", str(tmp_path))
    monkeypatch.setattr(console, "_width", 200)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["training", *arguments])
        with pytest.raises(SystemExit) as ended:
            run_cli()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "xyzzy"), "no recipe 'xyzzy'; `python -m training recipes` lists all"),
        (("train", "avg-paraphrases"), "no recipe 'avg-paraphrases'; did you mean avg-paraphrase"),
        (("train", "avg-sick", "--runs", "{tmp}"), "run `python -m training distill minilm-256`"),
        (("train", "pwim-sick-glove", "--runs", "{tmp}"), "run `python -m training vectors glove-sick-300`"),
        (
            ("distill", "glove-sick-300", "--teacher", "{tmp}"),
            "no table to distil 'glove-sick-300'; there are minilm-256",
        ),
        (("vectors", "minilm-256"), "no table of published word vectors 'minilm-256'; there are glove-sick-300"),
        (("vectors", "--runs", "{tmp}"), "glove-sick: {tmp}/vectors/glove840b-sick-vocab-300d.npz not found"),
        (("publish", "avg-sick", "--runs", "{tmp}"), "python -m training train avg-sick --seed 1"),
    ],
)
def test_a_fault_is_one_line_without_a_traceback(
    tmp_path: Path, training: Callable[..., tuple[int, str]], arguments: tuple[str, ...], expected: str
) -> None:
    code, shown = training(*(a.format(tmp=tmp_path) for a in arguments))
    assert code in (1, 2)
    assert expected.format(tmp=tmp_path) in shown.replace("\n", " ")


def test_recipes_are_listed_under_the_names_they_are_found_by(training: Callable[..., tuple[int, str]]) -> None:
    _, shown = training("recipes")
    for name in RECIPES:
        assert name in shown
        assert find(name).name == name


def test_the_commands_of_a_card_retrain_what_a_run_starts_from_first() -> None:
    assert commands_for(find("avg-sick"), 3) == (
        "python -m training distill minilm-256",
        "python -m training train avg-paraphrase --seed 3",
        "python -m training train avg-sick --seed 3",
        "python -m training publish avg-sick --seed 3",
    )
    assert commands_for(find("pwim-sick-glove"), 1)[:2] == (
        "python -m training vectors glove-sick-300",
        "python -m papers train pwim-sick-glove --seed 1",
    )
    # Its encoder is the teacher's: no command makes it. What rates its pairs is kept beside published weights.
    assert commands_for(find("minilm-cross"), 1) == (
        "python -m training weights all-mpnet-base-v2",
        "python -m training rate minilm-cross",
        "python -m training train minilm-cross --seed 1",
        "python -m training publish minilm-cross --seed 1",
    )


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_be_built_and_travels_as_json(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = find(name)
    if not isinstance(recipe.table, PretrainedEncoder):
        assert recipe.table in TABLES.values()
    monkeypatch.setattr("training.train.family.load_table", lambda *_: toys.table())
    model = family_of(recipe, tmp_path, 1).initial_model()
    if isinstance(recipe.architecture, HeadsConfig):
        assert set(model.heads) <= set(TASKS)
        assert recipe.publication is None or set(model.heads) == set(TASKS)
    else:
        assert isinstance(model.embedding, WordEmbedding)
    content = recipe.as_json()
    assert content["architecture"]["kind"] == type(recipe.architecture).__name__
    assert content["objective"]["kind"] == type(recipe.objective).__name__
    assert commands_for(recipe, 2)[-1] == f"{program_of(name)} publish {name} --seed 2"


def test_a_recipe_that_no_family_can_train_is_refused_by_its_parts(tmp_path: Path) -> None:
    odd = replace(find("avg-sick"), name="odd", objective=find("pwim-qa").objective)
    with pytest.raises(RecipeError, match=r"'odd': no family .* PairwiseConfig, WordAveragingConfig, SickPairs, "):
        family_of(odd, tmp_path, 1)


def test_no_name_is_given_twice_and_each_is_known_by_one_command_line() -> None:
    assert {program_of(name) for name in ("gran-1", "malstm-adam")} == {"python -m papers"}
    assert {program_of(name) for name in ("avg-sick", "pwim-qa", "served-gran")} == {"python -m training"}
    with pytest.raises(ValueError, match=r"two recipes are called '[\w-]+', the second in training\.recipes\.mgim"):
        register(mgim)
