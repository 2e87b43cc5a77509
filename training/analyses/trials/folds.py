"""Five-fold choice of epoch and threshold on MSRP. Not from a paper.

MSRP has no development part, and the accuracy on 407 pairs held out of its training part moves by several points from
one epoch to the next. Here every training pair is scored once by a network that was trained on the other four fifths;
the number of epochs and the threshold of the probability are those with the best accuracy over all of these scores.
The network is then trained on all pairs for so many epochs and measured once on the test part.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold

from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.architectures.models import InteractionModel
from training.corpora import pairwise
from training.corpora.leakage import without_pairs
from training.objectives.metrics import binary
from training.objectives.pairwise import PairwiseConfig, PairwiseObjective, TargetPairs, predict
from training.pairs import Pair
from training.recipes import find
from training.recipes.recipe import Recipe
from training.results.report.markdown import number, table
from training.runs.build import started
from training.runs.loop import train
from training.runs.tables import load_table
from training.words.tables import WordTable

FOLDS, EPOCHS = 5, 6
THRESHOLDS = np.round(np.arange(0.3, 0.701, 0.02), 2)
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """What the held-out scores chose, and their accuracy with it."""

    epoch: int  # epochs of training
    threshold: float
    accuracy: float


class Recorded(PairwiseObjective):
    """Keeps the scores of the held-out pairs after every epoch."""

    scores: list[Scores]

    def evaluate(self) -> dict[str, float]:
        """No figure: the last epoch is kept, whatever the held-out pairs say."""
        self.scores = [
            *getattr(self, "scores", []),
            predict(self.model, self.development, self.config.classes),
        ]
        return {"selection": 0.0}


def trained_on(
    recipe: Recipe, words: WordTable, learnt: Sequence[Pair], held_out: Sequence[Pair], options: Options
) -> Recorded:
    """The recipe's network trained on some pairs, with the scores of others before training and after every epoch."""
    assert isinstance(recipe.objective, PairwiseConfig)
    model = started(recipe, words, options.runs, options.seed)
    assert isinstance(model, InteractionModel)
    training, development = (TargetPairs(pairs, words.tokenizer, recipe.max_tokens) for pairs in (learnt, held_out))
    objective = Recorded(model, training, development, recipe.objective, recipe.schedule.batch_size, options.seed)
    with TemporaryDirectory() as folder:
        train(objective, recipe.optimiser, replace(recipe.schedule, keep="last"), Path(folder), seed=options.seed)
    return objective


def accuracies(scores_EN: Scores, right_N: npt.NDArray[np.bool_]) -> Scores:
    """Accuracy of every epoch at every threshold [E, `THRESHOLDS`], from scores [E, N] of the same pairs."""
    decided_ETN = scores_EN[:, None, :] > THRESHOLDS[None, :, None]
    return np.asarray((decided_ETN == right_N).mean(axis=2), dtype=np.float64)


def choose(scores_EN: Scores, right_N: npt.NDArray[np.bool_]) -> Choice:
    """The epoch (the first row is the untrained network) and the threshold with the best accuracy.

    Of equal ones the earlier epoch, then the threshold nearest to one half.
    """
    found = accuracies(scores_EN, right_N)
    best = max(
        ((e, t) for e in range(found.shape[0]) for t in range(found.shape[1])),
        key=lambda at: (found[at], -at[0], -abs(THRESHOLDS[at[1]] - 0.5)),
    )
    return Choice(best[0], float(THRESHOLDS[best[1]]), float(found[best]))


def compute(options: Options) -> Data:
    """Train the folds, choose, train on all pairs, measure."""
    return {"rows": {name: _measured(find(name), options) for name in options.recipes}, "epochs": EPOCHS}


def _measured(recipe: Recipe, options: Options) -> Data:
    if not isinstance(recipe.objective, PairwiseConfig) or recipe.objective.selection != "accuracy":
        raise AnalysisError(f"recipe {recipe.name!r} does not tell paraphrases from other pairs")
    parts, words = pairwise.read("msrp"), load_table(recipe.table, options.runs)
    test = parts.test["test"]
    pairs = [*parts.train, *without_pairs(parts.dev, test)]
    right = np.array([pair.target == 1.0 for pair in pairs])
    schedule = replace(recipe.schedule, epochs=EPOCHS, patience=None, decay="none", stop_after=None)
    recipe = replace(recipe, schedule=schedule)
    scores = np.zeros((EPOCHS + 1, len(pairs)))
    for learnt, held_out in KFold(FOLDS, shuffle=True, random_state=options.seed).split(np.arange(len(pairs))):
        training, development = ([pairs[i] for i in rows] for rows in (learnt, held_out))
        scores[:, held_out] = np.array(trained_on(recipe, words, training, development, options).scores)
    chosen = choose(scores, right)
    final = replace(recipe, schedule=replace(schedule, epochs=chosen.epoch))
    tested = trained_on(final, words, pairs, test, options).scores[-1]
    gold = [pair.target == 1.0 for pair in test]
    return {
        "pairs": len(pairs),
        "chosen": asdict(chosen),
        "at_half": accuracies(scores, right)[:, np.argmin(np.abs(THRESHOLDS - 0.5))].tolist(),
        "at_best": accuracies(scores, right).max(axis=1).tolist(),
        "test_at_half": binary((tested > 0.5).tolist(), gold),
        "test": binary((tested > chosen.threshold).tolist(), gold),
    }


def draw(data: Data, folder: Path) -> None:
    """Held-out accuracy by epoch, at one half and at the best threshold."""
    with drawing(folder / "by-epoch.png") as [axes]:
        for colour, (name, row) in zip(COLOURS, data["rows"].items(), strict=False):
            for key, style in (("at_best", "o-"), ("at_half", "o:")):
                label = f"{name}, threshold {'chosen' if key == 'at_best' else '.5'}"
                axes.plot(
                    range(1, data["epochs"] + 1), [100 * x for x in row[key][1:]], style, color=colour, label=label
                )
        axes.set(xlabel="epoch", ylabel="accuracy on held-out pairs, x 100")
        axes.set_title("MSRP: accuracy out of fold, by epoch")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2)


def page(data: Data) -> str:
    """What was chosen, and the test figures with and without the threshold."""
    rows = []
    for name, row in data["rows"].items():
        chosen, half, test = row["chosen"], row["test_at_half"], row["test"]
        measured = (number(100 * each[metric], 1) for each in (half, test) for metric in ("accuracy", "f1"))
        accuracy = number(100 * chosen["accuracy"], 1)
        rows.append((name, str(chosen["epoch"]), number(chosen["threshold"], 2), accuracy, *measured))
    head = ("recipe", "epochs", "threshold", "out of fold", "test at .5", "F1", "test at the threshold", "F1")
    return (
        "Five networks are trained on four fifths of MSRP's training pairs each; epoch and threshold are those with "
        "the best accuracy over all pairs, each scored by the network that did not see it. Then one is trained on all "
        "pairs. The test part (66.5 % paraphrases) was measured once, in torch. The paper: 78.8 / 84.8.\n\n"
        + table(head, rows)
    )


ANALYSIS = Analysis(
    name="msrp-folds",
    title="MSRP: epoch and threshold chosen by five folds",
    source="ours, for Li et al. 2019, section 4",
    recipes=("mgim-msrp-counts",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"by-epoch.png": "accuracy on held-out pairs over the epochs, at one half and at the best threshold"},
)
