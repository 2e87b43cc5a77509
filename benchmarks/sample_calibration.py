"""How near the calibration of an import without pairs is to people's ratings: every fifth of STS-B's development pairs.

`python -m benchmarks.sample_calibration models/avg-paraphrase models/minilm` prints the mean absolute error, of 1.
"""

import sys
from pathlib import Path

import numpy as np

from training.corpora.readers import stsb
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.runtime import PublishedModel
from workbench.imports.calibration import sample

EVERY, COSINES = 5, (-1.0, 1.0)


def main(folders: list[str]) -> None:
    """Print a line for each model whose similarity is a cosine."""
    pairs, few = stsb.read("dev")[::EVERY], sample().pairs
    gold = np.array([pair.target for pair in pairs], dtype=np.float64) / 5
    for folder in folders:
        model = PublishedModel(Path(folder))
        raw, of_few = (
            model.similarity([pair.a for pair in each], [pair.b for pair in each]).raw_score for each in (pairs, few)
        )
        rated = np.array([pair.target for pair in few], dtype=np.float64)
        ours = fit_centred_isotonic(of_few, rated, raw_range=COSINES, target_range=(0.0, 1.0)).apply(raw)
        half = fit_centred_isotonic(raw[::2], gold[::2], raw_range=COSINES, target_range=(0.0, 1.0)).apply(raw[1::2])
        errors = [np.abs(found - gold).mean() for found in ((raw + 1) / 2, ours)]
        print(
            f"{folder}: {len(pairs)} pairs, (c + 1) / 2 {errors[0]:.3f}, the pairs that come with semblance "
            f"{errors[1]:.3f}, every second of these pairs, on the others {np.abs(half - gold[1::2]).mean():.3f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
