"""Runs of MGIM (Li et al. 2019): MSRP and SICK as printed, its ablations, and with our named departures.

As printed the model can hardly compare (docs/papers/mgim.md), so the shipped runs take h_N's backward state from the
first word, add |h - r| and h * r, and start the second Bi-LSTM as a copy of the first; then they are pre-trained on a
teacher's ratings. Words are the distilled table, frozen, six times as long: about the norm of GloVe's.
"""

from dataclasses import replace

from training.architectures import MGIMConfig
from training.corpora.pairwise import Corpus
from training.loop import Schedule
from training.objectives.pairwise import RATINGS_OF_SICK, YES_OR_NO, PairwiseConfig
from training.optimisers import OptimiserConfig
from training.recipe import CorpusPairs, Publication, Recipe, TeacherPairs
from training.recipes.word_averaging import MINILM

GLOVE_NORM = 6.0
TOKENS = 128  # that are served of a sentence: attention holds tokens x tokens x hidden values for each pair
PRINTED = MGIMConfig(hidden=100, dropout=0.1)
DEPARTED = replace(PRINTED, comparison=True, first_word=True, copied_start=True)
SICK = PairwiseConfig(RATINGS_OF_SICK, "pearson", both_orders=True, swap=True)
MSRP = PairwiseConfig(YES_OR_NO, "accuracy", both_orders=True, swap=True)


def _adam(rate: float) -> OptimiserConfig:
    return OptimiserConfig("adam", learning_rate=rate, embedding_learning_rate=None, clip=5.0)


def _run(
    name: str, corpus: Corpus, objective: PairwiseConfig, reaches: str, architecture: MGIMConfig, schedule: Schedule
) -> Recipe:
    return Recipe(
        name=name,
        reaches=reaches,
        table=MINILM,
        architecture=architecture,
        data=CorpusPairs(corpus),
        objective=objective,
        optimiser=_adam(2e-3),
        schedule=schedule,
        row_scale=GLOVE_NORM,
    )


LONG = Schedule(epochs=40, batch_size=25, patience=8)  # to convergence
SHORT = Schedule(epochs=6, batch_size=25, decay="linear")


def sick_printed() -> Recipe:
    """SICK, the model as printed, to convergence."""
    return _run("mgim-sick-printed", "sick", SICK, "the paper's r .8993; 6 s an epoch on one core", PRINTED, LONG)


def sick_alone() -> Recipe:
    """SICK from its labels alone, with the departures."""
    return replace(sick_printed(), name="mgim-sick-alone", architecture=DEPARTED)


def teacher() -> Recipe:
    """Pre-training on pairs that a tuned sentence-transformer rates."""
    return replace(
        sick_alone(),
        name="mgim-teacher",
        reaches="a start for the others; 5 minutes an epoch on one core",
        data=TeacherPairs(),
        schedule=Schedule(epochs=3, batch_size=64, decay="linear"),
    )


def teacher_words() -> Recipe:
    """Three epochs more of it, in which the words are trained too."""
    return replace(
        teacher(),
        name="mgim-teacher-words",
        reaches="a start for the shipped runs; 7 minutes an epoch on one core",
        start="mgim-teacher",
        start_seed=1,
        row_scale=1.0,  # the start has scaled its own
        optimiser=replace(_adam(1e-3), embedding_learning_rate=3e-3),
    )


def sick() -> Recipe:
    """SICK after the teacher's ratings."""
    return replace(
        sick_alone(),
        name="mgim-sick",
        reaches="r .87 on SICK test; 6 s an epoch on one core",
        start="mgim-teacher-words",
        start_seed=1,
        row_scale=1.0,  # the start has scaled its own
        optimiser=_adam(7e-4),
        schedule=SHORT,
        publication=Publication(
            "mgim-sick", "Multi-granularity interaction matching, SICK relatedness", max_tokens=TOKENS
        ),
    )


def msrp_printed() -> Recipe:
    """MSRP, the model as printed, to convergence (78.8 in the paper's ablation)."""
    return _run("mgim-msrp-printed", "msrp", MSRP, "the paper's accuracy 78.8, F1 84.8; 10 s an epoch", PRINTED, LONG)


def msrp_conditional() -> Recipe:
    """The same without attention (76.3)."""
    return replace(msrp_printed(), name="mgim-msrp-conditional", architecture=replace(PRINTED, attention=False))


def msrp_words() -> Recipe:
    """And without conditional encoding: two Bi-LSTMs over the table's words (75.1)."""
    architecture = replace(PRINTED, attention=False, conditional=False)
    return replace(msrp_printed(), name="mgim-msrp-words", architecture=architecture)


def msrp_random() -> Recipe:
    """And words drawn at random, trained with the rest (70.3)."""
    recipe = msrp_words()
    return replace(
        recipe,
        name="mgim-msrp-random",
        random_start=True,
        row_scale=1.0,
        optimiser=replace(recipe.optimiser, embedding_learning_rate=1e-3),
    )


def msrp_alone() -> Recipe:
    """MSRP from its labels alone, with the departures."""
    return replace(msrp_printed(), name="mgim-msrp-alone", architecture=DEPARTED)


def tweets() -> Recipe:
    """Pre-training on tweets that people labelled as paraphrases or not, after the teacher's ratings: news wording."""
    return replace(
        msrp_alone(),
        name="mgim-tweets",
        reaches="a start for mgim-msrp; 1 minute an epoch on one core",
        data=CorpusPairs("twitter-labelled"),
        start="mgim-teacher",
        start_seed=1,
        row_scale=1.0,
        optimiser=_adam(1e-3),
        schedule=Schedule(epochs=4, batch_size=64, decay="linear"),
    )


def tweets_words() -> Recipe:
    """The same after the longer pre-training, in which the words were trained too."""
    return replace(tweets(), name="mgim-tweets-words", start="mgim-teacher-words")


def msrp_tuned_words() -> Recipe:
    """MSRP after these."""
    return replace(msrp(), name="mgim-msrp-tuned-words", start="mgim-tweets-words", publication=None)


def msrp() -> Recipe:
    """MSRP after both."""
    return replace(
        msrp_alone(),
        name="mgim-msrp",
        reaches="accuracy 75, F1 83; 10 s an epoch on one core",
        start="mgim-tweets",
        start_seed=1,
        row_scale=1.0,
        architecture=replace(DEPARTED, dropout=0.3),
        optimiser=_adam(5e-4),
        schedule=replace(SHORT, epochs=8),
        publication=Publication(
            "mgim-msrp", "Multi-granularity interaction matching, paraphrase identification", max_tokens=TOKENS
        ),
    )
