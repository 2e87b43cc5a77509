"""The confidence of rankings, fitted on FAQs whose texts no model was trained on, and written into manifests.

Each question of an FAQ is ranked against the answers of that FAQ; of a third of the questions the right answer is taken
out before. The probability that the first answer is right is fitted on all FAQs; its calibration error is of fits on
the FAQs of two sources, measured on those of the third.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.manifest import Manifest
from core.ranking import ONE_STAGE, TWO_STAGES, ConfidenceFit
from semblance.client import Client
from semblance.faq.configurations import order_of
from semblance.faq.fitting import calibration_error, fit
from semblance.logistic import Flags, Floats
from training.corpora.files import read_rows

MODELS = ("avg-paraphrase", "minilm-small", "minilm", "minilm-cross")  # the main ones, the cheapest first
SIZES = (20, 40, 40, 60)  # entries of the FAQs that are drawn from each source
RERANK_TOP = 15  # as the service's
_USER_QUERY = "user query"  # of covid-faq: search queries that were matched to answers, one in ten wrongly
SOURCES: Mapping[str, tuple[str, str]] = {  # file, and its last column
    "bank": ("bank-faq/hdfc-bank-faq.tsv.gz", "topic"),
    "course": ("technical-course-faq/datatalks-faq.tsv.gz", "topic"),
    "covid": ("covid-faq/covid-faq.tsv.gz", "source"),
}

Pair = tuple[str, str]  # a question and its answer
Rows = tuple[Floats, Flags]  # features [n, k], and whether the first answer is right


class Drawn(NamedTuple):
    """One FAQ, and of each of its questions whether its answer is taken out."""

    pairs: Sequence[Pair]
    taken_out: Sequence[bool]


def draw(seed: int) -> dict[str, list[Drawn]]:
    """FAQs of each source.

    Raises:
        CorpusError: a file is missing or malformed.
    """
    found: dict[str, list[Drawn]] = {}
    for source, (file, last) in SOURCES.items():
        answered: dict[str, str] = {}
        for row in read_rows(source, file, ("question", "answer", "label", "group", last)):
            if row.raw("label") == "1" and row.raw(last) != _USER_QUERY:
                answered.setdefault(row.text("answer"), row.text("question"))
        pairs = [(question, answer) for answer, question in answered.items()]
        order = random.Random(f"{seed}/{source}")
        order.shuffle(pairs)
        found[source] = []
        for size in SIZES:
            part, pairs = pairs[:size], pairs[size:]
            found[source].append(Drawn(part, [order.random() < 1 / 3 for _ in part]))
    return found


def raw_scores(client: Client, model: str, faq: Drawn) -> Floats:
    """The model's raw score of each question with each answer of an FAQ, [n, n]."""
    answers = [answer for _, answer in faq.pairs]
    raw = np.empty((len(answers), len(answers)))
    for i, (question, _) in enumerate(faq.pairs):
        for result in client.rank(question, answers, model=model).results:
            raw[i, result.index] = result.raw_score
    return raw


def rows_of(faq: Drawn, coarse: Floats, fine: Floats | None) -> Rows:
    """What the rankings of all questions look like, and whether the first answer is right."""
    features, right = [], []
    for i, (question, _) in enumerate(faq.pairs):
        kept = [n for n in range(len(faq.pairs)) if n != i or not faq.taken_out[i]]
        order, found = order_of(
            question,
            [faq.pairs[n][1] for n in kept],
            coarse[i, kept].tolist(),
            None if fine is None else fine[i, kept].tolist(),
            RERANK_TOP,
        )
        features.append(found)
        right.append(kept[order[0]] == i)
    return np.array(features), np.array(right)


def fitted(by_source: Sequence[Rows]) -> tuple[float, Floats, int, float]:
    """Intercept and weights of all rows, how many these are, and the calibration error across sources."""
    chances, truths = [], []
    for left_out, (features, right) in enumerate(by_source):
        others = [rows for n, rows in enumerate(by_source) if n != left_out]
        chances.append(fit(*_joined(others)).probability(features))
        truths.append(right)
    features, right = _joined(by_source)
    line = fit(features, right)
    error = calibration_error(np.concatenate(chances), np.concatenate(truths))
    return line.intercept, line.weights, len(right), error


def _joined(rows: Sequence[Rows]) -> Rows:
    return np.concatenate([features for features, _ in rows]), np.concatenate([right for _, right in rows])


def fit_confidence(models: Path, seed: int, said: Callable[[str], object]) -> list[ConfidenceFit]:
    """Fit the confidence of each main model, alone and before each that costs more, and write it into its manifest.

    Args:
        models: the models folder.
        seed: of the draw of FAQs, and of the questions whose answer is taken out.
        said: called with a line about each model, and about each fit.

    Raises:
        CorpusError: a file is missing or malformed.
        ManifestError: a model is missing.
        SemblanceError: raised by the client.
    """
    manifests = {name: Manifest.load(models / name) for name in MODELS}
    drawn = draw(seed)
    raw: dict[str, dict[str, list[Floats]]] = {}
    with Client.local(models) as client:
        for name in MODELS:
            said(f"asking {name}")
            raw[name] = {source: [raw_scores(client, name, faq) for faq in faqs] for source, faqs in drawn.items()}
    return write_fits(models, manifests, drawn, raw, seed, said)


def write_fits(
    models: Path,
    manifests: Mapping[str, Manifest],
    drawn: Mapping[str, Sequence[Drawn]],
    raw: Mapping[str, Mapping[str, Sequence[Floats]]],
    seed: int,
    said: Callable[[str], object],
) -> list[ConfidenceFit]:
    """Fit from raw scores, by model, source and FAQ; other arguments as for `fit_confidence`."""
    fits: list[ConfidenceFit] = []
    names = list(manifests)
    for place, name in enumerate(names):
        own: list[ConfidenceFit] = []
        for second in (None, *names[place + 1 :]):
            by_source = [
                _joined(
                    [
                        rows_of(faq, raw[name][source][n], None if second is None else raw[second][source][n])
                        for n, faq in enumerate(faqs)
                    ]
                )
                for source, faqs in drawn.items()
            ]
            intercept, weights, rows, error = fitted(by_source)
            features = ONE_STAGE if second is None else TWO_STAGES
            own.append(
                ConfidenceFit(
                    model=name,
                    fingerprint=manifests[name].fingerprint,
                    rerank_model=second,
                    rerank_fingerprint=None if second is None else manifests[second].fingerprint,
                    rerank_top=None if second is None else RERANK_TOP,
                    intercept=round(intercept, 6),
                    weights={each: round(float(w), 6) for each, w in zip(features, weights, strict=True)},
                    rows=rows,
                    calibration_error=round(error, 4),
                    fitted_by=f"python -m workbench confidence --seed {seed}",
                )
            )
            share = _joined(by_source)[1].mean()
            pair = name if second is None else f"{name}, {second}"
            said(f"{pair}: {rows} questions, first right {share:.3f}, calibration error {error:.3f}")
        manifests[name].model_copy(update={"confidence": tuple(own)}).save(models / name)
        fits += own
    return fits
