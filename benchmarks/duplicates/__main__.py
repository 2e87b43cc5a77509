"""How well `semblance dedupe` finds the rows of a file that say the same, by F1 of pairs.

    python -m benchmarks.duplicates                    # development sets, then those kept back: some four minutes
    python -m benchmarks.duplicates --fit              # the weights of core/duplicates.py, and what each is worth
    python -m benchmarks.duplicates --edits            # how often a row is joined with a trivially edited copy

Titles of products, tickets and names of companies, written for this: of rows that say the same one is written as
another person would write it, and most rows have near-misses: another size, order number, direction, duty, town. The
rows of each kind are a file of their own. `development.csv` has the rows that the weights were made by, of six hands,
with Quora's questions and MSRP's sentences (SEMBLANCE_DATA); `kept_back.csv` was written by two others when all was
chosen, and is measured once for each published figure.
"""

import csv
import gzip
import os
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from typer.testing import CliRunner

from benchmarks.duplicates.edits import EDITS
from benchmarks.report import arguments, command, figures, machine, write
from core.duplicates import (
    ENOUGH_MEAN,
    JOINED_FROM,
    MIN_MEAN,
    DuplicateDecision,
    PairReading,
    find_candidates,
    nearest_texts,
)
from core.facts import facts_of
from core.groups import KeptApart, group
from core.same_words import same_words, text_order
from semblance import Client
from semblance.cli.app import app

HERE = Path(__file__).parent
SETS = ("development", "kept_back")
TRIVIAL = 0.65  # mean of cosine and paraphrase, from which on the rule joins that everybody would write first
SIMPLE_RULE = f"mean of cosine and paraphrase, {TRIVIAL}"
WAYS: Mapping[str, Sequence[str] | None] = {
    SIMPLE_RULE: None,
    "as it is": (),
    "without the guard": ("--no-guard",),
    "`--cosine 0.8`": ("--cosine", "0.8"),
}
ENCODER, READER = "minilm-small", "minilm-cross"
TERMS = ("entailment", "nearest", "one place")
STRENGTH = 0.3  # of the prior around weights of 0, in standard deviations of a term
WEIGHT = 300.0  # of a file, whatever its pairs are
OF_A_CORPUS = 700, 400  # texts
ROWS_OF_AN_EDIT = 12  # of each corpus


def main() -> None:
    """Measure, print, and write the dated result; or print the weights, or how edited copies fare."""
    parser = arguments("python -m benchmarks.duplicates", __doc__)
    parser.add_argument("--fit", action="store_true", help="print the weights and an ablation")
    parser.add_argument("--edits", action="store_true", help="print how often a row joins its edited copy")
    parser.add_argument("--only", choices=SETS, action="append", help="this set [default: both]")
    options = parser.parse_args()
    if options.fit:
        print_weights()
        return
    if options.edits:
        print_edits()
        return
    lines: list[str] = []
    results: dict[str, object] = {}
    for name in options.only or SETS:
        files = files_of(name)
        rows: list[dict[str, object]] = []
        for way, flags in WAYS.items():
            if flags is None:
                with Client.local() as client:
                    found = [(each := measured(client, *file)).f1(each.means, TRIVIAL) for file in files.values()]
            else:
                found = [scored(texts, groups, flags) for texts, groups in files.values()]
            every = f1(*np.sum(found, axis=0).tolist())
            results[f"{name}, {way}"] = every
            by_kind = {kind: f1(*each) for kind, each in zip(files, found, strict=True)}
            rows.append({"options": way, **by_kind, "all": every})
        counts = ", ".join(f"{len(texts)} of {kind}" for kind, (texts, _) in files.items())
        lines += [f"## {name} ({counts})", "", figures(rows), ""]
    about = f"{command(parser)}. F1 of pairs. {machine('onnxruntime', 'numpy')}."
    write(options.out, "-".join(["duplicates", *(options.only or ())]), "Rows that say the same", about, lines, results)


def clusters_of(texts: Sequence[str], flags: Sequence[str]) -> list[str]:
    """What `semblance dedupe` says of each text."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "rows.csv", Path(folder) / "clusters.csv"
        with source.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["sentence"], *([text] for text in texts)])
        ran = CliRunner().invoke(app, ["dedupe", str(source), str(output), "--local", *flags])
        assert ran.exit_code == 0, ran.output
        with output.open(encoding="utf-8", newline="") as file:
            return [row["cluster"] for row in csv.DictReader(file)]


def scored(texts: Sequence[str], groups: Sequence[str], flags: Sequence[str]) -> tuple[int, int, int]:
    """Pairs that were joined rightly, pairs that were joined, and pairs that should be."""
    return compared(clusters_of(texts, flags), groups)


def compared(clusters: Sequence[object], groups: Sequence[object]) -> tuple[int, int, int]:
    """Likewise, of clusters that are known."""
    found, truth = set(_pairs(clusters)), set(_pairs(groups))
    return len(found & truth), len(found), len(truth)


def f1(right: int, found: int, there: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * right / (found + there) if found + there else 0.0


class Measured(NamedTuple):
    """A file of the development, measured.

    Attributes:
        truth: of each text its group.
        duplicates: what is to be decided.
        terms: of the pairs that are read, [n, 3]; see `TERMS`.
        means: of cosine and paraphrase of these.
        same: whether they say the same.
    """

    truth: Sequence[str]
    duplicates: DuplicateDecision
    kept_apart: KeptApart
    terms: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    same: npt.NDArray[np.float64]

    def f1(self, scores: npt.NDArray[np.float64], least: float) -> tuple[int, int, int]:
        """As `compared`, of groups made by scores of the pairs that are read."""
        pairs = [self.duplicates.candidates[i].pair for i in self.duplicates.to_read]
        of_pair = dict(zip(pairs, scores.tolist(), strict=True))
        parted = (self.duplicates.candidates[i].pair for i in self.duplicates.apart)
        return compared(group(len(self.truth), of_pair, least, self.kept_apart, {}, parted), self.truth)


def measured(client: Client, texts: Sequence[str], truth: Sequence[str]) -> Measured:
    """Ask the default models."""
    order = sorted(range(len(texts)), key=lambda i: text_order(texts[i]), reverse=True)
    read = list({same_words(texts[i]): i for i in order}.values())[::-1]
    texts, truth = [texts[i] for i in read], [truth[i] for i in read]
    vectors = np.concatenate(
        [np.array(client.embed(texts[i : i + 200], model=ENCODER).embeddings) for i in range(0, len(texts), 200)]
    ).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept_apart = KeptApart([facts_of(text) for text in texts])
    words = [same_words(text).split() for text in texts]
    duplicates = DuplicateDecision(words, find_candidates(nearest_texts(vectors, 20)), kept_apart)
    candidates = [duplicates.candidates[i] for i in duplicates.to_read]
    pairs = [(texts[a], texts[b]) for (a, b), _, _ in candidates]
    asked = [*pairs, *((b, a) for a, b in pairs)]
    paraphrase = [r.score for r in client.similarity(asked, model=READER, task="paraphrase").results]
    entailed = [r.probabilities.entailment for r in client.entailment(asked, model=READER).results]
    readings = [
        PairReading.of_both_orders((same, other), (forward, backward), False)
        for same, other, forward, backward in zip(
            *(each[way] for each in (paraphrase, entailed) for way in (slice(len(pairs)), slice(len(pairs), None))),
            strict=True,
        )
    ]
    entails = np.array([reading.entailed for reading in readings])
    bounded = np.clip(entails, 1e-3, 1 - 1e-3)
    places = [duplicates.place_of(i) is not None for i in duplicates.to_read]
    nearest = [duplicates.nearest[i] for i in duplicates.to_read]
    one_place = np.negative(places, dtype=np.float64)
    cosines = [each.cosine for each in candidates]
    terms = np.column_stack([np.log(bounded / (1 - bounded)), nearest, one_place])
    means = np.mean([cosines, [reading.paraphrase for reading in readings]], axis=0)
    same = np.array([truth[a] == truth[b] for (a, b), _, _ in candidates], dtype=np.float64)
    return Measured(truth, duplicates, kept_apart, terms, means, same)


def fit(files: Sequence[Measured], used: Sequence[int]) -> tuple[npt.NDArray[np.float64], float]:
    """The weights of some terms, none below 0, and the intercept, that the files' pairs make most likely."""
    inputs = np.concatenate([each.terms[:, used] for each in files])
    same = np.concatenate([each.same for each in files])
    weights = np.concatenate([np.full(len(each.same), WEIGHT / len(each.same)) for each in files])
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    scaled = (inputs - mean) / deviation

    def loss(at: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        odds = scaled @ at[:-1] + at[-1]
        slope = (1 / (1 + np.exp(-odds)) - same) * weights
        value = float((weights * (np.logaddexp(0, odds) - same * odds)).sum() + STRENGTH * (at[:-1] ** 2).sum() / 2)
        return value, np.append(scaled.T @ slope + STRENGTH * at[:-1], slope.sum())

    bounds = [*[(0.0, None)] * len(used), (None, None)]
    found = minimize(loss, np.zeros(len(used) + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    return found[:-1] / deviation, float(found[-1] - (found[:-1] * mean / deviation).sum())


def print_weights() -> None:
    """The weights for the default models; and the F1 of each file by weights of the others, with all terms and less."""
    with Client.local() as client:
        files = {name: measured(client, *each) for name, each in development().items()}
    weights, intercept = fit(list(files.values()), range(len(TERMS)))
    print(", ".join(f"{name} {value:.4g}" for name, value in zip(TERMS, weights, strict=True)), f"from {intercept:.4g}")
    rows: list[dict[str, object]] = []
    trivial = {name: f1(*each.f1(each.means, TRIVIAL)) for name, each in files.items()}
    rows.append({"terms": SIMPLE_RULE} | trivial | {"mean": np.mean(list(trivial.values()))})
    every = list(range(len(TERMS)))
    tries = {"as it is": every, "without the mean": every}
    tries |= {f"without {TERMS[i]}": [j for j in every if j != i] for i in every}
    for label, used in tries.items():
        found: dict[str, float] = {}
        for name, each in files.items():
            some, start = fit([other for key, other in files.items() if key != name], used)
            scores = 1 / (1 + np.exp(-(each.terms[:, used] @ some + start)))
            scores[each.means < MIN_MEAN] = 0.0
            if label != "without the mean":
                enough = (each.means >= ENOUGH_MEAN) & (each.terms[:, 1] > 0) & (each.terms[:, 2] == 0)
                scores[enough] = np.maximum(scores[enough], JOINED_FROM)
            found[name] = f1(*each.f1(scores, JOINED_FROM))
        rows.append({"terms": label} | found | {"mean": np.mean(list(found.values()))})
    print(figures(rows))


def print_edits() -> None:
    """The share of rows of each corpus that are joined with a copy edited so."""
    shares: dict[str, dict[str, object]] = {name: {"edit": name} for name in EDITS}
    for corpus, (texts, _) in development().items():
        chosen = random.Random(1)
        rows = chosen.sample(texts, min(len(texts), 5 * ROWS_OF_AN_EDIT))
        edited = [
            (name, text, edit(text, chosen))
            for name, edit in EDITS.items()
            for text in chosen.sample(rows, min(len(rows), ROWS_OF_AN_EDIT))
        ]
        asked = [*rows, *(copy for _, _, copy in edited)]
        clusters = clusters_of(asked, ())
        of_text = dict(zip(rows, clusters, strict=False))
        joined = [
            (name, of_text[text] == cluster)
            for (name, text, _), cluster in zip(edited, clusters[len(rows) :], strict=True)
        ]
        for name in EDITS:
            own = [same for other, same in joined if other == name]
            shares[name][corpus] = sum(own) / len(own)
        print(f"{corpus}: {sum(same for _, same in joined)} of {len(joined)}")
    print(figures(list(shares.values())))


def development() -> dict[str, tuple[list[str], list[str]]]:
    """Kind -> texts and their groups: those written for this, and those of Quora and MSRP, if SEMBLANCE_DATA is set."""
    found = files_of("development")
    if data := os.environ.get("SEMBLANCE_DATA"):
        with gzip.open(Path(data) / "qqp-part" / "qqp-labelled-part.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file][1:]
        found["question"] = _grouped([(a.strip('"'), b.strip('"'), same) for same, a, b in rows], OF_A_CORPUS[0])
        with (Path(data) / "msrp" / "msr_paraphrase_test.txt").open(encoding="utf-8-sig") as file:
            rows = [line.rstrip("\n").split("\t") for line in file][1:]
        found["news"] = _grouped([(row[3], row[4], row[0]) for row in rows], OF_A_CORPUS[1])
    return found


def _grouped(pairs: list[tuple[str, str, str]], most: int) -> tuple[list[str], list[str]]:
    """The texts of some pairs, and groups that their labels make."""
    random.Random(1).shuffle(pairs)
    numbers: dict[str, int] = {}
    same: dict[tuple[int, int], bool] = {}
    for a, b, label in pairs:
        if len(numbers) >= most:
            break
        i, j = (numbers.setdefault(text, len(numbers)) for text in (a, b))
        if label == "1" and i != j:
            same[min(i, j), max(i, j)] = True
    return list(numbers), [str(first) for first in group(len(numbers), {}, 1.0, None, same)]


def files_of(name: str) -> dict[str, tuple[list[str], list[str]]]:
    """Kind -> texts and their groups."""
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    with (HERE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["kind"]][0].append(row["text"])
            found[row["kind"]][1].append(row["group"])
    return dict(found)


def _pairs(groups: Sequence[object]) -> Iterator[tuple[int, int]]:
    members: dict[object, list[int]] = defaultdict(list)
    for row, name in enumerate(groups):
        members[name].append(row)
    for rows in members.values():
        yield from combinations(rows, 2)


if __name__ == "__main__":
    main()
