"""The confidence of rankings, fitted on FAQs whose texts no model was trained on, and written into manifests.

Half of them are lists of questions with their answers: each question is ranked against all answers, and of a quarter of
the questions the right answer is taken out before. The others were written for this: what people ask an FAQ, of which a
quarter has no answer there, though it is near to one. They are ranked against the answers, and against the entries. The
calibration error and the area under the ROC curve are of fits on all sources but one, measured on that one.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from core.manifest import Manifest
from core.ranking import ConfidenceFit, texts_of
from semblance.client.clients import Client
from semblance.jobs.faq.configurations import order_of
from semblance.jobs.faq.decisions import Line, as_confidence_fit, best_threshold, calibration_error, fit
from semblance.jobs.faq.logistic import Flags, Floats
from training.data.files import read_rows
from training.data.readers import written

MODELS = ("avg-paraphrase", "minilm-small", "minilm", "minilm-cross")  # the main ones, the cheapest first
SIZES = (20, 40, 40, 60)  # entries of the FAQs that are drawn from each source
RERANK_TOP = 15  # as the service's
WRITTEN = "written"
TAKEN_OUT = 0.25  # as many of the written questions have no answer
NONE = -1  # in the place of the right text
_USER_QUERY = "user query"  # of covid-faq: search queries that were matched to answers, one in ten wrongly
SOURCES: Mapping[str, tuple[str, str]] = {  # file, and its last column
    "bank": ("bank-faq/hdfc-bank-faq.tsv.gz", "topic"),
    "course": ("technical-course-faq/datatalks-faq.tsv.gz", "topic"),
    "covid": ("covid-faq/covid-faq.tsv.gz", "source"),
}


class Drawn(NamedTuple):
    """One FAQ: n texts and m questions, of each the place of the right text, and whether that is taken out."""

    texts: Sequence[str]
    questions: Sequence[str]
    right: Sequence[int]
    taken_out: Sequence[bool]


class Rows(NamedTuple):
    """m rankings: features [m, k], whether the first text is right, and whether none is."""

    features: Floats
    right: Flags
    none: Flags


class Fit(NamedTuple):
    """The confidence of one way to rank, and how good it is on sources that it was not fitted on."""

    line: Line
    threshold: float
    rows: int
    calibration_error: float
    auc: float


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
            questions, answers = zip(*part, strict=True)
            taken_out = [order.random() < TAKEN_OUT for _ in part]
            found[source].append(Drawn(answers, questions, range(len(part)), taken_out))
    return found | {WRITTEN: _written()}


def _written() -> list[Drawn]:
    found = []
    for faq in written.faqs("dev"):
        places = {name: place for place, (name, _, _) in enumerate(faq.entries)}
        right = [places.get(name, NONE) for _, name in faq.questions]
        for match in ("both", "answer"):
            texts = [texts_of(question, answer, match)[0] for _, question, answer in faq.entries]
            found.append(Drawn(texts, [question for question, _ in faq.questions], right, [False] * len(right)))
    return found


def raw_scores(client: Client, model: str, faq: Drawn) -> Floats:
    """The model's raw score of each question with each text of an FAQ, [m, n]."""
    raw = np.empty((len(faq.questions), len(faq.texts)))
    for i, question in enumerate(faq.questions):
        for result in client.rank(question, faq.texts, model=model).results:
            raw[i, result.index] = result.raw_score
    return raw


def rows_of(faq: Drawn, coarse: Floats, fine: Floats | None) -> Rows:
    """What the rankings of all questions look like."""
    features, right = [], []
    for i, question in enumerate(faq.questions):
        kept = [n for n in range(len(faq.texts)) if n != faq.right[i] or not faq.taken_out[i]]
        order, found = order_of(
            question,
            [faq.texts[n] for n in kept],
            coarse[i, kept].tolist(),
            None if fine is None else fine[i, kept].tolist(),
            RERANK_TOP,
        )
        features.append(found)
        right.append(kept[order[0]] == faq.right[i])
    none = [out or place == NONE for out, place in zip(faq.taken_out, faq.right, strict=True)]
    return Rows(np.array(features), np.array(right), np.array(none))


def fitted(by_source: Sequence[Rows]) -> Fit:
    """The confidence fitted on all rows."""
    chances = []
    for left_out, rows in enumerate(by_source):
        others = joined([each for n, each in enumerate(by_source) if n != left_out])
        chances.append(fit(others.features, others.right).probability(rows.features))
    features, right, none = joined(by_source)
    found = np.concatenate(chances)
    auc = float(roc_auc_score(right, found)) if right.any() and not right.all() else 1.0
    line = fit(features, right)
    return Fit(line, best_threshold(right, none), len(right), calibration_error(found, right), auc)


def fit_of(
    first: Manifest, second: Manifest | None, by_source: Sequence[Rows], command: str
) -> tuple[ConfidenceFit, float]:
    """The fit of a ranking by one model, or two, for a manifest; and its AUC."""
    found = fitted(by_source)
    fit = as_confidence_fit(
        found.line,
        first,
        second,
        RERANK_TOP,
        threshold=round(found.threshold, 4),
        rows=found.rows,
        calibration_error=round(found.calibration_error, 4),
        fitted_by=command,
    )
    return fit, found.auc


def joined(rows: Sequence[Rows]) -> Rows:
    """The rows of several FAQs."""
    return Rows(*(np.concatenate(each) for each in zip(*rows, strict=True)))


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
                joined(
                    [
                        rows_of(faq, raw[name][source][n], None if second is None else raw[second][source][n])
                        for n, faq in enumerate(faqs)
                    ]
                )
                for source, faqs in drawn.items()
            ]
            fit_found, auc = fit_of(
                manifests[name],
                None if second is None else manifests[second],
                by_source,
                f"python -m workbench confidence --seed {seed}",
            )
            own.append(fit_found)
            share = joined(by_source).right.mean()
            pair = name if second is None else f"{name}, {second}"
            said(
                f"{pair}: {fit_found.rows} questions, first right {share:.3f}, AUC {auc:.3f}, calibration error "
                f"{fit_found.calibration_error:.3f}, answers from {fit_found.threshold:.3f} on"
            )
        manifests[name].model_copy(update={"confidence": tuple(own)}).save(models / name)
        fits += own
    return fits
