"""The supervised rows: what makes one row differ from another, and the settings the papers fix."""

import pytest

from training.architectures import GRANConfig, LSTMConfig, ProjectionConfig, WordAveragingConfig
from training.objectives.sentiment import SentimentConfig
from training.objectives.supervised import SupervisedConfig
from training.recipes import find, gran_supervised, paragram_phrase
from training.recipes.recipe import Recipe
from training.recipes.rows import RATINGS_STS
from training.sources.labelled import SSTSentences
from training.sources.rated import SickPairs, STSSplitPairs
from training.sources.transfer import TeacherSentences


def supervised_objective(recipe: Recipe) -> SupervisedConfig:
    assert isinstance(recipe.objective, SupervisedConfig)
    return recipe.objective


def test_table_5_of_2017_has_every_row_on_both_tasks() -> None:
    for encoder, count in (("avg", 3), ("lstm", 5), ("lstm-avg", 5), ("gran", 5)):
        rows = [row for row in gran_supervised.TABLE_5 if row.label.startswith(encoder.upper() + ",")]
        assert len(rows) == count
        for row in rows:
            sts, sick = find(f"sts-{row.name}"), find(f"sick-{row.name}")
            assert isinstance(sts.data, STSSplitPairs)
            assert isinstance(sick.data, SickPairs)
            assert sts.architecture == sick.architecture == row.architecture
            assert supervised_objective(sts).classes == (0, 1, 2, 3, 4, 5)
            assert supervised_objective(sick).classes == (1, 2, 3, 4, 5)
            assert supervised_objective(sick).entailment_weight == 0


def test_names_say_what_regularises() -> None:
    both = find("sts-lstm-dropout-scrambling")
    assert both.architecture == LSTMConfig(dropout=0.2)
    assert supervised_objective(both).scramble == 0.5
    assert find("sick-gran-word-dropout").architecture == GRANConfig(word_dropout=0.2)
    assert supervised_objective(find("sick-gran-word-dropout")).scramble == 0.0
    assert find("sick-avg").architecture == WordAveragingConfig()
    paper = {row.name: row.paper for row in gran_supervised.TABLE_5}
    assert paper["gran-dropout-scrambling"] == (81.6, 85.1)
    assert paper["lstm-word-dropout"] == (68.0, 76.4)


@pytest.mark.parametrize("name", ["avg", "lstm-avg", "gran"])
def test_universal_runs_start_from_the_transfer_run_and_stay_near_it(name: str) -> None:
    recipe = find(f"sick-{name}-universal")
    assert recipe.start is not None
    start = find(recipe.start)
    assert type(start.architecture) is type(recipe.architecture)
    # The start has scaled its rows; gates that were trained on them must see them as they are.
    assert recipe.row_scale == (2.0 if name == "avg" else 1.0)
    regulariser = supervised_objective(recipe).regulariser
    assert regulariser.words > 0
    assert (regulariser.universal > 0, regulariser.composition) == (True, 0.0)


def test_2016_trains_both_answers_about_sick_together_and_sentiment_apart() -> None:
    for row in paragram_phrase.TABLE_5:
        sick, sst = find(f"pp-sick-{row.name}"), find(f"pp-sst-{row.name}")
        assert supervised_objective(sick).entailment_weight == 1.0
        assert not supervised_objective(sick).directed
        assert isinstance(sst.objective, SentimentConfig)
        assert isinstance(sst.data, SSTSentences)
        assert len(row.paper) == 3


def test_features_come_from_a_frozen_encoder_as_wide_as_their_start() -> None:
    for task in ("sick", "sst"):
        for width in (1200, 2400):
            recipe = find(f"features-{task}-{width}")
            assert recipe.start == f"pp-projection-{width}"
            assert recipe.architecture == find(recipe.start).architecture == ProjectionConfig(outputs=width)
            assert recipe.optimiser.heads_only
            assert recipe.schedule.epochs == 20
        assert find(f"features-{task}-256").start == "pp-avg"


@pytest.mark.parametrize("name", ["avg-sts", "gran-sts"])
def test_our_models_of_the_sts_split_start_from_a_run_that_saw_no_rating(name: str) -> None:
    recipe = find(name)
    assert recipe.start is not None
    start = find(recipe.start)
    assert isinstance(start.data, TeacherSentences)
    assert start.start is None
    assert isinstance(recipe.data, STSSplitPairs)
    assert supervised_objective(recipe).classes == RATINGS_STS
