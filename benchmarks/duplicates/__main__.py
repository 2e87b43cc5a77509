"""How well `semblance dedupe` finds the rows of a file that say the same, by F1 of pairs.

    python -m benchmarks.duplicates                    # development sets, then those kept back: some two minutes
    python -m benchmarks.duplicates --fit              # the weights of semblance/corpus/duplicates.py, from development

Titles of products, tickets and names of companies, written for this: of rows that say the same one is written as
another person would write it, and most rows have near-misses: another size, order number, direction, duty, town. The
rows of each kind are a file of their own, those of `mixed` are one. `development.csv` has the rows that the weights,
the table of attributes and the threshold were made by; `kept_back.csv` was written by another hand, with other
families of near-misses, and is measured once for each published figure.
"""

import csv
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import normalize
from typer.testing import CliRunner

from benchmarks.report import arguments, figures, machine, write
from semblance import Client
from semblance.cli import app
from semblance.corpus.duplicates import find_candidates
from semblance.corpus.guard import Guard
from semblance.corpus.neighbours import Neighbours
from semblance.corpus.pair_model import PairModel, empty_model, fit, log_odds
from semblance.corpus.wording import words_of

HERE = Path(__file__).parent
SETS = ("development", "kept_back")
WAYS: Mapping[str, Sequence[str]] = {
    "as it is": (),
    "without the guard": ("--no-guard",),
    "`--cosine 0.9`": ("--cosine", "0.9"),
    "`--cosine 0.8`": ("--cosine", "0.8"),
    "`--cosine 0.7 --rerank minilm-cross --score 0.9`": (
        *("--model", "minilm", "--cosine", "0.7"),
        *("--rerank", "minilm-cross", "--score", "0.9"),
    ),
}
STRENGTH = 0.3  # of the prior around weights of 0
ENCODER, READER = "minilm-small", "minilm-cross"


def main() -> None:
    """Measure, print, and write the dated result; or print the weights."""
    parser = arguments("python -m benchmarks.duplicates", __doc__)
    parser.add_argument("--fit", action="store_true", help="print the weights")
    parser.add_argument("--only", choices=SETS, action="append", help="this set [default: both]")
    options = parser.parse_args()
    if options.fit:
        print_weights()
        return
    lines: list[str] = []
    results: dict[str, object] = {}
    for name in options.only or SETS:
        files = files_of(name)
        rows: list[dict[str, object]] = []
        for way, flags in WAYS.items():
            found = [scored(texts, groups, flags) for texts, groups in files.values()]
            every = f1(*np.sum(found, axis=0).tolist())
            results[f"{name}, {way}"] = every
            by_kind = {kind: f1(*each) for kind, each in zip(files, found, strict=True)}
            rows.append({"options": way, **by_kind, "all": every})
        counts = ", ".join(f"{len(texts)} of {kind}" for kind, (texts, _) in files.items())
        lines += [f"## {name} ({counts})", "", figures(rows), ""]
    about = f"`python -m benchmarks.duplicates`. F1 of pairs. {machine('onnxruntime', 'numpy', 'scipy')}."
    write(options.out, "duplicates", "Rows that say the same", about, lines, results)


def scored(texts: Sequence[str], groups: Sequence[str], flags: Sequence[str]) -> tuple[int, int, int]:
    """Pairs that were joined rightly, pairs that were joined, and pairs that should be."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "rows.csv", Path(folder) / "clusters.csv"
        with source.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["sentence"], *([text] for text in texts)])
        ran = CliRunner().invoke(app, ["dedupe", str(source), str(output), "--local", *flags])
        assert ran.exit_code == 0, ran.output
        with output.open(encoding="utf-8", newline="") as file:
            clusters = [row["cluster"] for row in csv.DictReader(file)]
    found, truth = set(_pairs(clusters)), set(_pairs(groups))
    return len(found & truth), len(found), len(truth)


def f1(right: int, found: int, there: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * right / (found + there) if found + there else 0.0


def print_weights() -> None:
    """The weights for the default models from the development pairs, and the F1 of pairs that did not fit them."""
    features, read, labels, groups = [], [], [], []
    with Client.local() as client:
        for kind, (texts, truth) in files_of("development").items():
            vectors = normalize(np.array(client.embed(texts, model=ENCODER).embeddings, dtype=np.float32))
            found = find_candidates(vectors, Neighbours(vectors), Guard(texts), [words_of(text) for text in texts])
            pairs = list(zip(found.pairs.queries.tolist(), found.pairs.rows.tolist(), strict=True))
            both = [[(texts[a], texts[b]) for a, b in pairs], [(texts[b], texts[a]) for a, b in pairs]]
            entails = [
                [r.probabilities.entailment for r in client.entailment(way, model=READER).results] for way in both
            ]
            features.append(found.features)
            read.append(np.min(entails, axis=0))
            labels += [truth[a] == truth[b] for a, b in pairs]
            groups += [min(truth[a], truth[b]) for a, b in pairs]
            reached = sum(truth[a] == truth[b] for a, b in pairs)
            print(f"{kind}: {len(pairs)} candidates, {reached} of {len(list(_pairs(truth)))} right pairs among them")
    inputs, same = np.concatenate(features), np.array(labels)
    first = fit(inputs, same, empty_model(inputs), STRENGTH)
    with_read = np.column_stack([inputs, log_odds(np.concatenate(read))])
    second = fit(with_read, same, empty_model(with_read), STRENGTH)
    for name, model, used in (("FIRST", first, inputs), ("SECOND", second, with_read)):
        print(f"{name} = {_rounded(model)}")
        print("  F1 of pairs that did not fit it, by threshold:", _out_of_sample(used, same, groups))


def _out_of_sample(inputs: npt.NDArray[np.float64], same: npt.NDArray[np.bool_], groups: Sequence[str]) -> str:
    found = np.zeros(len(same))
    for learnt, left in GroupKFold(10).split(inputs, same, groups):
        part = fit(inputs[learnt], same[learnt], empty_model(inputs[learnt]), STRENGTH)
        found[left] = part.probabilities(inputs[left])
    return ", ".join(f"{at:g}: {f1_score(same, found >= at):.3f}" for at in (0.2, 0.25, 0.3, 0.35, 0.4))


def _rounded(model: PairModel) -> PairModel:
    def short(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(float(f"{value:.4g}") for value in values)

    return PairModel(short(model.weights), float(f"{model.intercept:.4g}"), short(model.scales))


def files_of(name: str) -> dict[str, tuple[list[str], list[str]]]:
    """Kind -> texts and their groups."""
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    with (HERE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["kind"]][0].append(row["text"])
            found[row["kind"]][1].append(row["group"])
    return dict(found)


def _pairs(groups: Sequence[str]) -> Iterator[tuple[int, int]]:
    members: dict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        members[group].append(row)
    for rows in members.values():
        yield from combinations(rows, 2)


if __name__ == "__main__":
    main()
