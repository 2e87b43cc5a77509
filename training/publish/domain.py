"""For what text a model is: what its manifest states, and what its figures say where that states nothing.

`publish` writes it into the manifest, so that nobody else has to derive it.
"""

import re
from collections.abc import Iterable, Mapping

from core.manifest import Elsewhere, Manifest, Task, TaskDomain

# The measure of each task, and the mean over other corpora from which on it counts as good there.
MEASURES: Mapping[Task, tuple[str, float]] = {
    "similarity": ("pearson", 0.5),
    "entailment": ("accuracy", 0.6),
    "paraphrase": ("accuracy", 0.7),
    "relevance": ("map", 0.6),
    "classification": ("accuracy", 0.7),
}
_WORDS: Mapping[str, Task] = {  # of `TrainingData.use`
    "similarity": "similarity",
    "relatedness": "similarity",
    "ratings": "similarity",
    "entailment": "entailment",
    "paraphrase": "paraphrase",
    "relevance": "relevance",
}
_UNSERVED = re.compile(r"\brelated\b")  # taught a head that only helped to train the others
_OTHER_NAMES = {"multinli": "mnli"}  # of a corpus in figures -> in training data
_MEANS = ("transfer",)  # of several corpora, which have figures of their own


def domains_of(manifest: Manifest) -> tuple[TaskDomain, ...]:
    """What the manifest states, and of other tasks what its figures say, in the order of its tasks.

    A figure counts where the model learnt no label of that corpus. The mean over such corpora (of sets within a corpus
    first) is held against `MEASURES`.
    """
    stated = {each.task: each for each in manifest.domain or ()}
    return tuple(stated.get(task) or _derived(manifest, task) for task in manifest.tasks)


def _derived(manifest: Manifest, task: Task) -> TaskDomain:
    learnt = tuple(dict.fromkeys(_learnt(manifest, task)))
    metric, least = MEASURES[task]
    found: dict[str, list[float]] = {}
    for figure in manifest.figures:
        foreign = not any(_same(figure.corpus, name) for name in learnt)
        if (figure.task, figure.metric) == (task, metric) and figure.corpus not in _MEANS and foreign:
            found.setdefault(figure.corpus, []).append(figure.value)
    means = [sum(values) / len(values) for values in found.values()]
    elsewhere: Elsewhere = "unmeasured"
    if means:
        elsewhere = "good" if sum(means) / len(means) >= least else "chance"
    return TaskDomain(task=task, learnt_from=learnt, elsewhere=elsewhere, measured_on=tuple(found))


def _learnt(manifest: Manifest, task: Task) -> Iterable[str]:
    """The training data whose labels taught a task; data that names none of the model's tasks taught all of them."""
    for data in manifest.training_data:
        if data.use.startswith("train") and not _UNSERVED.search(data.use):
            named = {of for word, of in _WORDS.items() if re.search(rf"\b{word}", data.use)} & set(manifest.tasks)
            if task in named or not named:
                yield data.name


def _same(corpus: str, name: str) -> bool:
    """Whether a figure's corpus is one that the training data names, as `SNLI` and `snli-train`."""
    plain = re.sub(r"[^a-z0-9]", "", corpus.lower())
    other = re.sub(r"[^a-z0-9]", "", name.lower())
    return other.startswith((plain, _OTHER_NAMES.get(plain, plain)))
