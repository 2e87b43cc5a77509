"""The objective of a recipe on its data: the one place that says which kind of data feeds which objective."""

from pathlib import Path

from contract.text import split_words
from contract.tokenizer import Tokenizer
from training.architectures.models import InteractionModel, SiameseModel
from training.objectives.development import GradedSets
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.objective import Objective
from training.objectives.pairwise import PairwiseConfig, PairwiseObjective, TargetPairs
from training.objectives.parts.batches import Sentences
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
        TypeError: the objective is of several tasks (`training.runs.tasks`).
        RecipeError: the data need a teacher and none was given.
        CorpusError: a corpus is missing or malformed.
    """
    source, config = recipe.data, recipe.objective
    if isinstance(config, TasksConfig):
        raise TypeError(f"{recipe.name} is of several tasks")
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
            sentences, sets = Sentences(texts, tokenizer, limit), GradedSets(dev, tokenizer, limit)
            return TeacherCosineObjective(model, sentences, targets, sets, config, batch_size, seed)
        case MarginConfig():
            readable = [pair for pair in learnt if split_words(pair.a) and split_words(pair.b)]
            a, b = (Sentences([getattr(pair, side) for pair in readable], tokenizer, limit) for side in "ab")
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
