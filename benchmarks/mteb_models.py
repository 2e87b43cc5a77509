"""Runs tasks of the unmodified library `mteb` on our models, from the local corpora, beside our own measures.

    python -m benchmarks.mteb_models avg-paraphrase                      # SICK-R and STSBenchmark
    python -m benchmarks.mteb_models minilm --tasks SICK-R STS15

Needs `mteb` (extra `frameworks`) and the corpora (SEMBLANCE_DATA); nothing is fetched. The rows are those that our
figures are of: of SICK the test part (the hub's SICK-R has all three parts), of STS Benchmark the development part
(`validation`), of a year of STS all sets together. So the figures of SICK-R are not those of mteb's leaderboard.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.report import arguments, machine, table, write
from training.corpora.readers import sick, sts, stsb
from training.objectives.metrics import graded
from training.pairs import Pair
from training.publishing.runtime import PublishedModel

USUAL = ("SICK-R", "STSBenchmark")
STS_YEARS = {f"STS{year}": f"20{year}-test" for year in range(12, 17)}
TASKS = ("SICK-R", "STSBenchmark", *STS_YEARS)

Array = npt.NDArray[np.floating]


class Encoder:
    """mteb's `EncoderProtocol` of a published model: embeddings, compared by their cosine."""

    def __init__(self, folder: Path) -> None:
        """Open the model for mteb.

        Raises:
            ValueError: it embeds nothing, or its scores are not cosines, which are what mteb takes of embeddings.
        """
        from mteb.models import ModelMeta

        self.model = PublishedModel(folder)
        task = self.model.manifest.similarity
        if task is None or self.model.manifest.dim is None or task.comparison != "cosine":
            raise ValueError(f"{folder.name} has no similarity that is the cosine of embeddings")
        about = {"name": f"semblance/{folder.name}", "revision": "local", "similarity_fn_name": "cosine"}
        self.mteb_model_meta = ModelMeta.create_empty({**about, "model_type": ["dense"]})

    def encode(self, inputs: Iterable[Any], **_: object) -> Array:
        """Embeddings [n, dim] of batches of texts; the models have no prompts."""
        return np.concatenate([self.model.embed(list(batch["text"])) for batch in inputs])

    def similarity(self, a: Any, b: Any) -> Any:
        """Cosines of all pairs of rows, [n, m]."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(a, b)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        """Cosines of the i-th rows, [n]."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(a, b)


class Row(NamedTuple):
    """One figure: mteb's, and ours."""

    task: str
    split: str
    measure: str
    mteb: float
    ours: float
    rows: int


def read(name: str) -> tuple[str, Sequence[Pair]]:
    """The split of a task, and its rows in the local corpus; raises `CorpusError`."""
    if name == "SICK-R":
        return "test", sick.read("test")
    if name == "STSBenchmark":
        return "validation", stsb.read("dev")
    return "test", [pair for pairs in sts.read_year(STS_YEARS[name]).values() for pair in pairs]


def measure(encoder: Encoder, name: str, split: str, pairs: Sequence[Pair]) -> list[Row]:
    """Each measure by mteb and by us, over these pairs; `target` is the rating."""
    import mteb
    from datasets import Dataset, DatasetDict

    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    gold = [float(pair.target) for pair in pairs if pair.target is not None]
    task = mteb.get_task(name, eval_splits=[split])
    columns = {"sentence1": a, "sentence2": b, "score": gold}
    task.dataset, task.data_loaded = DatasetDict({split: Dataset.from_dict(columns)}), True
    options = {"cache": None, "co2_tracker": False, "encode_kwargs": {"batch_size": 256}, "show_progress_bar": False}
    result = mteb.evaluate(encoder, task, **options)
    (scores,) = result.task_results[0].scores[split]
    ours = graded(encoder.model.similarity(a, b).raw_score, gold)
    return [
        Row(name, split, f"cosine_{measure}", float(scores[f"cosine_{measure}"]), ours[measure], len(pairs))
        for measure in ("pearson", "spearman")
    ]


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = arguments("python -m benchmarks.mteb_models", __doc__)
    parser.add_argument("model", help="id of a published model")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=USUAL)
    parser.add_argument("--models", type=Path, default=Path("models"), help="folder of published models")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    encoder = Encoder(options.models / options.model)
    rows = [row for name in options.tasks for row in measure(encoder, name, *read(name))]
    about = (
        f"`python -m benchmarks.mteb_models {options.model} --tasks {' '.join(options.tasks)}`: "
        f"figures of mteb beside ours, of the same rows. {machine('mteb', 'onnxruntime')}."
    )
    lines = table(
        ["task", "split", "measure", "mteb", "ours", "rows"],
        [[r.task, r.split, r.measure, f"{r.mteb:.5f}", f"{r.ours:.5f}", str(r.rows)] for r in rows],
    )
    result = {"rows": [*map(list, rows)]}
    write(options.out, f"mteb-{options.model}", f"{options.model} by mteb", about, lines, result)


if __name__ == "__main__":
    main()
