"""The development score of transfer training: mean Pearson r of the cosine."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

from contract.measures import cosine
from tests.harness import toys
from training.objectives.development import GradedSets, encode_all
from training.objectives.parts.batches import Sentences


def test_each_set_has_its_r_and_selection_is_their_mean() -> None:
    model = toys.model().eval()
    sets = {"all": toys.RATED, "some": toys.RATED[2:7]}
    with torch.no_grad():
        found = GradedSets(sets, toys.tokenizer(), toys.MAX_TOKENS).evaluate(model)
        expected = {}
        for name, pairs in sets.items():
            a, b = (
                encode_all(model, Sentences([getattr(p, s) for p in pairs], toys.tokenizer(), 12)).numpy() for s in "ab"
            )
            expected[name] = float(pearsonr(cosine(a, b), [p.target for p in pairs]).statistic)
    assert found == pytest.approx({**expected, "selection": np.mean(list(expected.values()))}, abs=1e-6)
    assert found["all"] != pytest.approx(found["some"], abs=1e-3)
