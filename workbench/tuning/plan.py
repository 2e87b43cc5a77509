"""How each kind of published model is tuned: how fast, and for how long."""

from dataclasses import dataclass, replace

from training.recipes.recipe import OptimiserConfig, Schedule
from workbench.tuning.read_back import Start

TRAINED_TOKENS = 128  # of a sentence in training; more are cut
ENOUGH_PAIRS, FEWEST_EPOCHS = 64_000, 2  # seen by averages in all


@dataclass(frozen=True)
class TuningPlan:
    """Settings of a run."""

    optimiser: OptimiserConfig
    schedule: Schedule


AVERAGING = TuningPlan(OptimiserConfig("adam", 1e-3, 1e-3), Schedule(10, 64, patience=3, decay="linear"))
TRANSFORMER = TuningPlan(OptimiserConfig("adamw", 2e-5, None, clip=1.0), Schedule(3, 32, decay="linear"))


def plan_for(start: Start, pairs: int, epochs: int | None, rate: float | None) -> TuningPlan:
    """The settings of a kind of model for that many pairs, or with other epochs or another learning rate if given.

    Averages learn in their first thousand steps what they can: more epochs of many pairs fit words to single pairs.
    """
    plan = AVERAGING if start.averages else TRANSFORMER
    most = plan.schedule.epochs
    if start.averages:
        most = min(most, max(FEWEST_EPOCHS, ENOUGH_PAIRS // pairs))
    schedule = replace(plan.schedule, epochs=epochs or most)
    optimiser = plan.optimiser
    if rate is not None:
        words = None if optimiser.embedding_learning_rate is None else rate
        optimiser = replace(optimiser, learning_rate=rate, embedding_learning_rate=words)
    return TuningPlan(optimiser, schedule)
