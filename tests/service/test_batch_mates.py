"""The published models of pairs on the texts where rounding could decide: a few words, again and again."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.manifest import MANIFEST_NAME, Manifest
from core.scoring import Floats, raw_scores
from core.sequences import Pair, pad
from core.tensors import load_tensors
from service.engine.graph import open_session
from tests.harness.effort import EFFORT

MODELS = Path(__file__).parents[2] / "models"
# One of each architecture; with `TEST_EFFORT`, all.
OF_PAIRS = [
    path.parent
    for path in sorted(MODELS.glob(f"*/{MANIFEST_NAME}"))
    if Manifest.load(path.parent).family == "interaction"
    and (EFFORT > 1 or path.parent.name in ("mgim-sick", "pwim-sick"))
    # Transformers are the same to the last bit: tests/service/models/test_published_integers.py.
    and Manifest.load(path.parent).architecture != "cross_encoder"
]


@pytest.mark.artifacts
@pytest.mark.parametrize("folder", OF_PAIRS, ids=lambda folder: folder.name)
def test_repeated_words_score_the_same_in_any_company(folder: Path) -> None:
    """In their contexts they are alike to the last digit, which is another one in another batch."""
    manifest = Manifest.load(folder)
    task = manifest.similarity
    assert task is not None
    assert task.graph is not None
    task = task.model_copy(update={"blend": None})  # the graph's own part
    tensors = load_tensors(folder, manifest, {})
    graph = manifest.path_of(folder, task.graph)
    run = open_session(graph, "pair", ["CPUExecutionProvider"], threads=1, must_use_cuda=False, tensors=tensors)
    rng = np.random.default_rng(0)
    words = rng.integers(1, 5000, 3)

    def text() -> tuple[int, ...]:
        return tuple(rng.choice(words, rng.integers(2, 20)).tolist())

    def score(pairs: Sequence[Pair]) -> Floats:
        (ids_a, lengths_a), (ids_b, lengths_b) = pad([a for a, _ in pairs]), pad([b for _, b in pairs])
        feeds = {"input_ids_a": ids_a, "lengths_a": lengths_a, "input_ids_b": ids_b, "lengths_b": lengths_b}
        return raw_scores(task, run(feeds))

    pairs = [(text(), text()) for _ in range(256)]
    alone = np.concatenate([score([pair]) for pair in pairs])
    together = np.concatenate([score(pairs[i : i + 32]) for i in range(0, len(pairs), 32)])
    assert np.abs(alone - together).max() <= 1e-6
