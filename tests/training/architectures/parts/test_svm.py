"""The support vector head: scikit-learn's decisions, as a module and as a graph."""

from pathlib import Path

import numpy as np
import torch

from training.architectures.parts.svm import SupportVectorHead, fit_svm, machine, pair_features
from training.publishing.export import export_head
from training.publishing.parity import TOLERANCE, check_head
from training.publishing.runtime import open_graph

DIM = 4


def pairs(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose label is how far apart they are, with some noise."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.9, 0.9, (2, n, DIM)).astype(np.float32)
    distance = np.abs(a - b).sum(1) + rng.normal(0, 0.1, n)
    return a, b, np.digitize(distance, np.quantile(distance, [1 / 3, 2 / 3]))


def test_the_module_decides_as_scikit_learn_does() -> None:
    a, b, label = pairs()
    features = pair_features(torch.from_numpy(a), torch.from_numpy(b)).double().numpy()
    fitted = machine(4.0, 0.3).fit(features, label)
    head = SupportVectorHead.fitted(fitted, temperature=0.5)
    rng = np.random.default_rng(2)
    new_a, new_b = (torch.from_numpy(rng.uniform(-1, 1, (200, DIM)).astype(np.float32)) for _ in "ab")
    new = pair_features(new_a, new_b).double().numpy()
    np.testing.assert_allclose(head.decisions(new_a, new_b), fitted.decision_function(new), atol=2e-6)
    probabilities = head(new_a, new_b).exp().numpy()
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(probabilities.argmax(1), fitted.predict(new))


def test_it_is_exported_saved_and_loaded(tmp_path: Path) -> None:
    a, b, label = pairs()
    head = fit_svm(a, b, label)
    assert (head(torch.from_numpy(a), torch.from_numpy(b)).argmax(1).numpy() == label).mean() > 0.7
    path = tmp_path / "entailment.onnx"
    export_head(head, DIM, path, "toy")
    assert check_head(path, head, DIM) <= TOLERANCE
    expected = head(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    found = open_graph(path, "head")({"embedding_a": a, "embedding_b": b})
    np.testing.assert_allclose(found, expected, atol=1e-5)
    torch.save(head.state_dict(), tmp_path / "entailment.pt")
    again = SupportVectorHead.from_state(torch.load(tmp_path / "entailment.pt", weights_only=True))
    assert torch.equal(again(torch.from_numpy(a), torch.from_numpy(b)), head(torch.from_numpy(a), torch.from_numpy(b)))
