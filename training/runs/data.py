"""The objective of a recipe on its data: the one place that says which kind of data feeds which objective."""

from pathlib import Path

from contract.tokenizer import Tokenizer
from training.architectures.models import InteractionModel, SiameseModel
from training.objectives.development import GradedSets
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.objective import Objective
from training.objectives.pairwise import PairwiseConfig, PairwiseObjective, TargetPairs
from training.objectives.parts.batches import tokenised_pairs, tokenised_texts
from training.objectives.sentiment import LabelledSentences, SentimentConfig, SentimentObjective
from training.objectives.supervised import LabelledPairs, SupervisedConfig, SupervisedObjective
from training.objectives.tasks import TasksConfig
from training.objectives.teacher_cosine import TeacherCosineConfig, TeacherCosineObjective
from training.objectives.transfer import MarginConfig, MarginObjective
from training.recipes.recipe import Recipe


def build_objective(
    recipe: Recipe,
    model: SiameseModel | InteractionModel,
    tokenizer: Tokenizer,
    runs: Path,
    teacher: Path | None,
    seed: int,
) -> Objective:
    """The objective a recipe describes, on its corpora; training texts are cut at the recipe's `max_tokens`.

    Raises:
        TypeError: data of a kind that does not feed the objective, or those of several tasks (`training.runs.tasks`).
        RecipeError: the data need a teacher and none was given.
        CorpusError: a corpus is missing or malformed.
    """
    source, config = recipe.data, recipe.objective
    if isinstance(config, TasksConfig) or not isinstance(config, source.feeds):
        raise TypeError(f"{recipe.name}: {type(source).__name__} does not feed {type(config).__name__}")
    batch_size, limit = recipe.schedule.batch_size, recipe.max_tokens
    learnt, dev = source.train(teacher, runs / "teacher"), source.dev()
    if isinstance(config, PairwiseConfig):
        assert isinstance(model, InteractionModel)
        training, held_out = (TargetPairs(pairs, tokenizer, limit) for pairs in (learnt, dev))
        return PairwiseObjective(model, training, held_out, config, batch_size, seed)
    assert isinstance(model, SiameseModel)
    match config:
        case TeacherCosineConfig():
            texts, targets = learnt
            _, sentences = tokenised_texts(texts, tokenizer, limit)
            sets = GradedSets(dev, tokenizer, limit)
            return TeacherCosineObjective(model, sentences, targets, sets, config, batch_size, seed)
        case MarginConfig():
            a, b = tokenised_pairs(learnt, tokenizer, limit)
            return MarginObjective(model, a, b, GradedSets(dev, tokenizer, limit), config, batch_size, seed)
        case SentimentConfig():
            classes, gold = (LabelledSentences(part, tokenizer, limit) for part in (learnt, dev))
            return SentimentObjective(model, classes, gold, config, batch_size, seed)
        case SupervisedConfig():
            rated, held = (LabelledPairs(part, tokenizer, limit) for part in (learnt, dev))
            return SupervisedObjective(model, rated, held, config, batch_size, seed)
        case ManhattanConfig():
            rated, held = (LabelledPairs(part, tokenizer, limit) for part in (learnt, dev))
            return ManhattanObjective(model, rated, held, config, batch_size, seed)
