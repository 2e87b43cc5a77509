"""Runs tasks of the unmodified library `mteb` on our models, from the local corpora, beside our own measures.

    python -m benchmarks.mteb_models avg-paraphrase                      # SICK-R and STSBenchmark
    python -m benchmarks.mteb_models minilm --tasks SICK-R STS15 WikiQA

Needs `mteb` (extra `frameworks`) and the corpora (SEMBLANCE_DATA); nothing is fetched. SICK-R, STSBenchmark and STS12
to STS16 are mteb's own tasks; WikiQA, which mteb has not, is a task of one of its kinds (reranking). Their rows are
those that our figures are of: of SICK the test part (the hub's SICK-R has all three parts), of STS Benchmark the
development part (`validation`), of a year of STS all sets together. So the figures of SICK-R are not those of mteb's
leaderboard.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.report import RESULTS, machine, table, write
from training.corpora.readers import answers, sick, sts, stsb
from training.objectives.metrics import graded, ranked
from training.pairs import Pair
from training.publishing.runtime import PublishedModel

NAME = "mteb"
USUAL = ("SICK-R", "STSBenchmark")
STS_YEARS = {f"STS{year}": f"20{year}-test" for year in range(12, 17)}
TASKS = ("SICK-R", "STSBenchmark", *STS_YEARS, "WikiQA")
_BATCH = 256

Array = npt.NDArray[np.floating]
Embed = Callable[[list[str]], Array]
Compare = Callable[[list[str], list[str]], Array]


class Model(NamedTuple):
    """A model by what it answers: embeddings [n, dim], where it has any, and raw scores of n pairs.

    The scores are those that it ranks by: relevance, where it has that, or similarity.
    """

    name: str
    embed: Embed | None
    compare: Compare


def local_model(folder: Path) -> Model:
    """A published model, opened here.

    Raises:
        ValueError: its scores are not cosines, which are what mteb takes of embeddings.
    """
    model = PublishedModel(folder)
    task = model.manifest.similarity
    if task is None or (model.manifest.dim is not None and task.comparison != "cosine"):
        raise ValueError(f"{folder.name} has no similarity, or one of embeddings that is not their cosine")
    embed = model.embed if model.manifest.dim is not None else None
    ranks_by = model.manifest.ranking_task
    return Model(folder.name, embed, lambda a, b: model.similarity(a, b, ranks_by).raw_score)


def _texts(batches: Iterable[Any]) -> list[list[str]]:
    return [list(batch["text"]) for batch in batches]


class _Named:
    """What mteb asks of any model."""

    def __init__(self, model: Model) -> None:
        from mteb.models import ModelMeta

        self.model = model
        kind = "dense" if model.embed is not None else "cross-encoder"
        about = {
            "name": f"semblance/{model.name}",
            "revision": "local",
            "similarity_fn_name": "cosine",
            "model_type": [kind],
        }
        self.mteb_model_meta = ModelMeta.create_empty(about)


class Encoder(_Named):
    """mteb's `EncoderProtocol`: embeddings, compared by their cosine."""

    def encode(self, inputs: Iterable[Any], **_: object) -> Array:
        """Embeddings [n, dim] of batches of texts; the models have no prompts."""
        assert self.model.embed is not None
        return np.concatenate([self.model.embed(texts) for texts in _texts(inputs)])

    def similarity(self, a: Any, b: Any) -> Any:
        """Cosines [n, m]."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(a, b)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        """Cosines [n]."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(a, b)


class CrossEncoder(_Named):
    """mteb's `CrossEncoderProtocol`: raw scores of pairs; mteb runs only reranking with one."""

    def predict(self, inputs1: Iterable[Any], inputs2: Iterable[Any], **_: object) -> Array:
        """Scores [n] of batches of pairs."""
        pairs = zip(_texts(inputs1), _texts(inputs2), strict=True)
        return np.concatenate([self.model.compare(a, b) for a, b in pairs])


class Row(NamedTuple):
    """One figure: mteb's, and ours."""

    task: str
    split: str
    measure: str
    mteb: float
    ours: float
    rows: int


class Set(NamedTuple):
    """A task with its data, and our measures of the same rows by mteb's names."""

    task: Any
    split: str
    pairs: Sequence[Pair]
    ours: Callable[[Array], dict[str, float]]


def ratings(name: str, split: str, pairs: Sequence[Pair]) -> Set:
    """One of mteb's own STS tasks, over these pairs; `target` is the rating."""
    import mteb
    from datasets import Dataset, DatasetDict

    gold = [float(pair.target) for pair in pairs if pair.target is not None]
    columns = {"sentence1": [p.a for p in pairs], "sentence2": [p.b for p in pairs], "score": gold}
    task = mteb.get_task(name, eval_splits=[split])
    task.dataset, task.data_loaded = DatasetDict({split: Dataset.from_dict(columns)}), True

    def ours(raw: Array) -> dict[str, float]:
        found = graded(raw, gold)
        return {"cosine_pearson": found["pearson"], "cosine_spearman": found["spearman"]}

    return Set(task, split, pairs, ours)


def ranking(name: str, pairs: Sequence[Pair]) -> Set:
    """A reranking over these pairs; `a` is the question, `group` its id, and `label` is "1" for an answer."""
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    groups = [str(pair.group) for pair in pairs]
    relevant = [pair.label == "1" for pair in pairs]
    queries = {group: pair.a for group, pair in zip(groups, pairs, strict=True)}
    # mteb leaves a question out where no candidate is named as right; one whose candidates are all named as wrong
    # counts as 0 there. So only the right ones are named, and both measure the questions that have an answer.
    judged: dict[str, dict[str, int]] = {}
    candidates: dict[str, list[str]] = {}
    for i, (group, right) in enumerate(zip(groups, relevant, strict=True)):
        candidates.setdefault(group, []).append(str(i))  # equal scores are ordered by these names, there and here
        if right:
            judged.setdefault(group, {})[str(i)] = 1
    corpus = {"id": [str(i) for i in range(len(pairs))], "title": [""] * len(pairs), "text": [p.b for p in pairs]}
    metadata = TaskMetadata(
        name=name,
        dataset={"path": f"local/{name}", "revision": "local"},
        description=f"{name}, from a local copy",
        type="Reranking",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="map_at_1000",
    )
    task: Any = type(name, (AbsTaskRetrieval,), {"metadata": metadata})()
    task.dataset = {
        "default": {
            "test": {
                "corpus": Dataset.from_dict(corpus),
                "queries": Dataset.from_dict({"id": list(queries), "text": list(queries.values())}),
                "relevant_docs": judged,
                "top_ranked": candidates,
            }
        }
    }
    task.data_loaded = True

    def ours(raw: Array) -> dict[str, float]:
        found = ranked(raw, relevant, groups)
        return {"map_at_1000": found["map"], "mrr_at_1000": found["mrr"]}

    return Set(task, "test", pairs, ours)


def read(name: str) -> Set:
    """A task with the rows of its local corpus; raises `CorpusError`."""
    if name == "SICK-R":
        return ratings(name, "test", sick.read("test"))
    if name == "STSBenchmark":
        return ratings(name, "validation", stsb.read("dev"))
    if name in STS_YEARS:
        sets = sts.read_year(STS_YEARS[name]).values()
        return ratings(name, "test", [pair for pairs in sets for pair in pairs])
    return ranking(name, answers.wikiqa("test-filtered"))


def measure(model: Model, data: Set) -> list[Row]:
    """Each measure by mteb and by us.

    Raises:
        ValueError: the model embeds nothing, and the task is not a reranking.
    """
    import mteb

    if model.embed is None and data.task.metadata.type != "Reranking":
        raise ValueError(f"{model.name} reads pairs: mteb runs only reranking with it, not {data.task.metadata.name}")
    wrapped = Encoder(model) if model.embed is not None else CrossEncoder(model)
    result = mteb.evaluate(
        wrapped,
        data.task,
        cache=None,
        co2_tracker=False,
        encode_kwargs={"batch_size": _BATCH},
        show_progress_bar=False,
    )
    (scores,) = result.task_results[0].scores[data.split]
    ours = data.ours(model.compare([pair.a for pair in data.pairs], [pair.b for pair in data.pairs]))
    return [
        Row(data.task.metadata.name, data.split, name, float(scores[name]), value, len(data.pairs))
        for name, value in ours.items()
    ]


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="id of a published model")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=USUAL)
    parser.add_argument("--models", type=Path, default=Path("models"), help="folder of published models")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    model = local_model(options.models / options.model)
    rows = [row for name in options.tasks for row in measure(model, read(name))]
    about = (
        f"`python -m benchmarks.mteb_models {options.model} --tasks {' '.join(options.tasks)}`: "
        f"figures of mteb beside ours, of the same rows. {machine('mteb', 'onnxruntime')}."
    )
    lines = table(
        ["task", "split", "measure", "mteb", "ours", "rows"],
        [[r.task, r.split, r.measure, f"{r.mteb:.5f}", f"{r.ours:.5f}", str(r.rows)] for r in rows],
    )
    write(
        options.out, f"{NAME}-{options.model}", f"{options.model} by mteb", about, lines, {"rows": [*map(list, rows)]}
    )


if __name__ == "__main__":
    main()
