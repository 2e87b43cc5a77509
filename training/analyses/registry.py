"""Every analysis by name."""

from training.analyses import (
    curves,
    data_amount,
    disagreements,
    ensembles,
    gate,
    interactions,
    length,
    malstm_space,
    negatives,
    neighbours,
    norms,
)
from training.analyses.analysis import Analysis

ANALYSES: dict[str, Analysis] = {
    module.ANALYSIS.name: module.ANALYSIS
    for module in (
        malstm_space,
        gate,
        length,
        data_amount,
        norms,
        neighbours,
        disagreements,
        negatives,
        curves,
        interactions,
        ensembles,
    )
}


def find_analysis(name: str) -> Analysis:
    """An analysis by name.

    Raises:
        KeyError: with the names there are.
    """
    if name not in ANALYSES:
        raise KeyError(f"no analysis {name!r}; there are {', '.join(sorted(ANALYSES))}")
    return ANALYSES[name]
