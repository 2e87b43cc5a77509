"""What a published model of several tasks says about training pairs, for a smaller model to learn from.

G. Hinton, O. Vinyals, J. Dean, "Distilling the Knowledge in a Neural Network", 2015. A folder for each model,
`runs/ratings/<model>/`, and in it a file for each corpus, written by `training.publishing.rate`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from training.objectives.tasks import Rated
from training.pairs import Pair
from training.records import replacing
from training.runs.folder import RunMissing


def ratings_file(runs: Path, model: str, corpus: str, pairs: Sequence[Pair]) -> Path:
    """Where a model's ratings of a corpus lie: other pairs of it have another file."""
    digest = hashlib.sha256(json.dumps([[pair.a, pair.b] for pair in pairs]).encode()).hexdigest()[:12]
    return runs / "ratings" / model / f"{corpus}-{digest}.npz"


def save_ratings(path: Path, rated: Rated) -> None:
    """Write them; a kill leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, rows=rated.rows, **rated.probabilities)  # type: ignore[arg-type]


def load_ratings(runs: Path, model: str, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, Rated]:
    """A model's ratings of every corpus.

    Raises:
        RunMissing: one was not rated; names the command.
    """
    found = {}
    for corpus, its in pairs.items():
        path = ratings_file(runs, model, corpus, its)
        if not path.is_file():
            raise RunMissing(f"{model} did not rate {corpus}: run `python -m training rate RECIPE` first")
        with np.load(path, allow_pickle=False) as arrays:
            found[corpus] = Rated(arrays["rows"], {name: arrays[name] for name in arrays.files if name != "rows"})
    return found
