"""Deletion test of explanations: the effect of removing important tokens, against that of removing random ones.

    python benchmarks/deletion_test.py                     # every model with an explanation; about a minute
    python benchmarks/deletion_test.py avg-paraphrase      # these models

For a seeded sample of SICK test pairs, for each sentence that the explanation covers: the k most important tokens are
removed, the pair is scored again, and the change of the score is compared with the mean change over random sets of k
tokens of the same sentence. Importance is computed from the model's explanation:

- shares of a cosine (additive models): their absolute values;
- matrices `cosine` and `focus` (PWIM): for each word its highest cosine weighted by the focus;
- matrix `attention` (MGIM): for each word of the first sentence its attention, summed over the second.

The vector `deletion` of `POST /explain` is not tested, because it is this measurement itself.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402 - the repository is not installed
from contract.explaining import contributions  # noqa: E402
from contract.tokenizer import Encoded  # noqa: E402
from service.app import create_app  # noqa: E402
from service.scoring.interaction import InteractionScorer  # noqa: E402
from service.scoring.scorer import Scorer  # noqa: E402
from service.scoring.siamese import SiameseScorer  # noqa: E402
from service.settings import Settings  # noqa: E402
from training.corpora.readers import sick  # noqa: E402
from training.pairs import Pair  # noqa: E402

Values = npt.NDArray[np.floating]
DROPPED = (1, 2)
RANDOM_SETS = 20  # of tokens, for each sentence; all of them where there are fewer
RESAMPLES = 2000


@dataclass(frozen=True)
class Row:
    """Effect of removing k tokens on one model's raw score, over all sentences of the sample."""

    model: str
    importance: str
    k: int
    sentences: int
    important: float  # mean absolute change of the raw score without the k most important tokens
    random: float  # likewise without k random ones
    ratio: float
    difference_low: float  # of important - random: 95 % interval, pairs resampled
    difference_high: float
    larger: float  # share of sentences where the important tokens change the score more than the mean of random ones


def kind_of_importance(scorer: Scorer) -> str | None:
    """The kind of importance of a model, or None without an explanation."""
    manifest = scorer.manifest
    if manifest.similarity is None:
        return None
    if manifest.additive and manifest.similarity.comparison == "cosine":
        return "absolute contributions"
    names = {matrix.name for matrix in manifest.explanation.matrices} if manifest.explanation else set()
    if {"cosine", "focus"} <= names:
        return "highest cosine x focus"
    return "summed attention" if "attention" in names else None


async def importances(scorer: Scorer, a: Encoded, b: Encoded) -> list[Values | None]:
    """The importance of each token of a, and of each token of b, or None where the explanation does not cover b."""
    if isinstance(scorer, SiameseScorer):
        shares = contributions(await scorer.embed_tokens(a), await scorer.embed_tokens(b))
        return [np.abs(shares.a), np.abs(shares.b)]
    assert isinstance(scorer, InteractionScorer)
    assert scorer.manifest.explanation is not None
    names = [matrix.name for matrix in scorer.manifest.explanation.matrices]
    matrices = dict(zip(names, await scorer.matrices(a, b), strict=True))
    if "focus" in matrices:
        weighted = matrices["cosine"] * matrices["focus"]
        return [weighted.max(axis=1), weighted.max(axis=0)]
    return [matrices["attention"].sum(axis=1), None]


def drawn(tokens: int, k: int, rng: random.Random) -> list[tuple[int, ...]]:
    """Distinct random sets of k positions; all sets if there are few."""
    every = list(combinations(range(tokens), k))
    return every if len(every) <= RANDOM_SETS else rng.sample(every, RANDOM_SETS)


async def moves(scorer: Scorer, a: Encoded, b: Encoded, rng: random.Random) -> dict[int, list[tuple[float, float]]]:
    """For each k and explained sentence: changes without the important tokens, and mean ones without random tokens."""
    variants: list[tuple[Encoded, Encoded]] = [(a, b)]
    places: list[tuple[int, int]] = []  # k, and how many random sets follow the important one
    for side, importance in enumerate(await importances(scorer, a, b)):
        if importance is None:
            continue
        sentence = (a, b)[side]
        order = np.argsort(-importance, kind="stable").tolist()
        for k in DROPPED:
            if len(sentence.ids) <= k:
                continue
            sets = drawn(len(sentence.ids), k, rng)
            for dropped in (tuple(order[:k]), *sets):
                kept = tuple(token for i, token in enumerate(sentence.ids) if i not in dropped)
                shorter = sentence._replace(ids=kept)
                variants.append((shorter, b) if side == 0 else (a, shorter))
            places.append((k, len(sets)))
    answer = await scorer.similarity([x for x, _ in variants], [y for _, y in variants], cached=False)
    raw = np.array(answer.raw)
    moved = np.abs(raw[1:] - raw[0])
    found: dict[int, list[tuple[float, float]]] = {k: [] for k in DROPPED}
    at = 0
    for k, count in places:
        found[k].append((float(moved[at]), float(moved[at + 1 : at + 1 + count].mean())))
        at += 1 + count
    return found


async def measure(scorer: Scorer, pairs: Sequence[Pair], seed: int) -> list[Row]:
    """A row for each k."""
    rng = random.Random(seed)
    of_pairs = []
    for pair in pairs:
        a, b = await scorer.read([pair.a, pair.b], lambda i: "ab"[i])
        of_pairs.append(await moves(scorer, a, b, rng))
    return [summary(scorer, k, [found[k] for found in of_pairs if found[k]], seed) for k in DROPPED]


def summary(scorer: Scorer, k: int, by_pair: Sequence[Sequence[tuple[float, float]]], seed: int) -> Row:
    """Means over sentences, and an interval from resampled pairs: the two sentences of one are not independent."""
    both = np.array([moved for pair in by_pair for moved in pair])
    important, at_random = both.mean(axis=0).tolist()
    sums = np.array([np.subtract(*np.sum(pair, axis=0)) for pair in by_pair])
    counts = np.array([len(pair) for pair in by_pair])
    picks = np.random.default_rng(seed).integers(len(by_pair), size=(RESAMPLES, len(by_pair)))
    low, high = np.percentile(sums[picks].sum(axis=1) / counts[picks].sum(axis=1), [2.5, 97.5]).tolist()
    kind = kind_of_importance(scorer)
    assert kind is not None
    return Row(
        model=scorer.id,
        importance=kind,
        k=k,
        sentences=len(both),
        important=important,
        random=at_random,
        ratio=important / at_random,
        difference_low=low,
        difference_high=high,
        larger=float((both[:, 0] > both[:, 1]).mean()),
    )


def scorers(models: Path) -> dict[str, Scorer]:
    """Every model of a folder, as the service opens it."""
    settings = Settings(models_dir=models, providers="cpu")
    return {name: model.scorer for name, model in create_app(settings).service.registry.items()}


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="all that have an explanation, without any")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    opened = scorers(options.models)
    able = [name for name, scorer in opened.items() if kind_of_importance(scorer)]
    chosen = options.names or able
    if wrong := sorted(set(chosen) - set(able)):
        sys.exit(f"no explanation to test in {', '.join(wrong)}; models with one: {', '.join(able) or 'none'}")
    pairs = random.Random(options.seed).sample(sick.read("test"), options.pairs)
    rows = [row for name in chosen for row in asyncio.run(measure(opened[name], pairs, options.seed))]
    command = f"python benchmarks/deletion_test.py {' '.join(chosen)} --pairs {options.pairs} --seed {options.seed}"
    about = (
        f"`{command}`: {options.pairs} pairs of SICK test. Mean absolute move of the raw score when the k tokens that "
        "the explanation calls most important are left out of a sentence, and when k random ones are (up to "
        f"{RANDOM_SETS} sets a sentence); the 95 % interval of the difference is from resampled pairs. Without an "
        f"explanation, and so left out: {', '.join(sorted(set(opened) - set(able))) or 'none'}. "
        f"{machine('onnxruntime', 'numpy')}."
    )
    lines = table(
        ["model", "importance", "k", "sentences", "important", "random", "ratio", "difference, 95 %", "moved more"],
        [
            [
                *(row.model, row.importance, str(row.k), str(row.sentences)),
                *(f"{row.important:.4f}", f"{row.random:.4f}", f"{row.ratio:.2f}"),
                *(f"{row.difference_low:.4f} .. {row.difference_high:.4f}", f"{row.larger:.0%}"),
            ]
            for row in rows
        ],
    )
    result = {"command": command, "rows": [asdict(row) for row in rows]}
    write(options.out, "deletion-test", "Deletion test of the explanations", about, lines, result)


if __name__ == "__main__":
    main()
