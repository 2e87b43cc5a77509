"""The pair head against its equations, written out with plain numpy."""

import numpy as np
import pytest
import torch

from training.architectures.parts.heads import PairHead, SentenceHead


def by_hand(head: PairHead, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tai et al. (2015), eq. 15, one pair at a time."""
    w = {name: value.detach().numpy().astype(np.float64) for name, value in head.named_parameters()}
    rows = []
    for x, y in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        h_product, h_difference = x * y, np.abs(x - y)
        inside = w["product.weight"] @ h_product + w["difference.weight"] @ h_difference + w["product.bias"]
        if "direction.weight" in w:
            inside = inside + w["direction.weight"] @ (x - y)
        h_s = 1 / (1 + np.exp(-inside))
        logits = w["output.weight"] @ h_s + w["output.bias"]
        rows.append(logits - np.log(np.exp(logits).sum()))
    return np.array(rows)


def embeddings(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(seed))
    return a, b


@pytest.mark.parametrize("directed", [False, True])
def test_the_head_is_equation_15(directed: bool) -> None:
    torch.manual_seed(1)
    head = PairHead(4, 5, hidden=6, directed=directed)
    a, b = embeddings()
    found = head(a, b).detach().numpy()
    assert found == pytest.approx(by_hand(head, a.numpy(), b.numpy()), abs=1e-6)
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(7), abs=1e-6)


def test_the_head_of_one_sentence_is_sigmoid_then_softmax() -> None:
    torch.manual_seed(3)
    head = SentenceHead(4, 2, hidden=3)
    sentences, _ = embeddings()
    w = {name: value.detach().numpy().astype(np.float64) for name, value in head.named_parameters()}
    inside = sentences.numpy().astype(np.float64) @ w["hidden.weight"].T + w["hidden.bias"]
    logits = (1 / (1 + np.exp(-inside))) @ w["output.weight"].T + w["output.bias"]
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert head(sentences).detach().numpy() == pytest.approx(expected, abs=1e-6)
