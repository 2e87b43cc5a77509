"""The sections of the result: each measures the models on one kind of text and gives a table and its figures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.general import sets
from benchmarks.general.measures import (
    contrast_shares,
    entailment_figures,
    followed,
    near_misses,
    order,
    order_auc,
    overlap_entailment,
    overlap_order,
    ranking_figures,
    raw_scores,
)
from benchmarks.report import figures
from core.manifest import ScoreTask
from training.data.readers import labelled_pairs
from training.data.tasks import CALIBRATION_PAIRS, measured
from training.publish.runtime import PublishedModel

TASKS: tuple[ScoreTask, ...] = ("similarity", "paraphrase")
BASELINE = "overlap of words"
Models = Mapping[str, PublishedModel]
Rows = list[dict[str, Any]]
Section = Callable[[Models, int], Rows]


def faq(models: Models, most: int) -> Rows:
    """Questions about three FAQs (a shop, an IT helpdesk, a city), ten each, of 18 answers each.

    Ordered by relevance where the model has it, or else by similarity. One question is 3 points of 100; a
    difference of fewer than some five questions may be chance.
    """
    asked = sets.questions()
    rows: Rows = [{"model": BASELINE, **ranking_figures(asked, [overlap_order(each) for each in asked])}]
    able = {name: model for name, model in models.items() if model.manifest.similarity is not None}
    for name, model in able.items():
        raw = raw_scores(model, asked, model.manifest.ranking_task)
        rows.append({"model": name, **ranking_figures(asked, [order(each) for each in raw])})
    return rows


def contrast(models: Models, most: int) -> Rows:
    """How often, 0..1, a rewrite of a sentence scores above an edit of one thing in it that changes the meaning;
    .5 is chance. Captions: SugarCrepe and VALSE, whose edits no model was trained on; the rewrites are other
    people's captions of the same picture, which may leave out more than the edit changes. Antonyms: synonyms
    against antonyms and negations. PAWS: do pairs that say the same score above pairs of the same words that do
    not? `trained_on` names the sets among these that taught the model.
    """
    contrasts = {
        "written": sets.written_contrasts(),
        "captions": sets.caption_contrasts(most),
        "antonyms": sets.antonym_contrasts(most),
    }
    paws = sets.sample(labelled_pairs.read("paws-wiki"), most)
    rows: Rows = []
    for name, model in models.items():
        trained = {each.name for each in model.manifest.training_data}
        for task in (task for task in TASKS if task in model.manifest.tasks):
            row: dict[str, Any] = {"model": name, "task": task, "trained_on": sorted(trained & {"cannot", "paws-wiki"})}
            row |= {of: contrast_shares(model, each, task) for of, each in contrasts.items()}
            rows.append({**row, "paws_auc": order_auc(model, paws, task)})
    return rows


def requests(models: Models, most: int) -> Rows:
    """Thirty requests, half to develop by and half to test with, each with the same request in other words and
    with a near-miss in nearly its own words (raise and lower, from and to, before and after). AUC: how often a
    rewording scores above a near-miss of any request, .5 is chance; and how many rewordings are above the
    near-miss of the same request.
    """
    parts = {part: sets.requests(part) for part in sets.PARTS}
    return [
        {"model": name, "task": task, **{part: near_misses(model, pairs, task) for part, pairs in parts.items()}}
        for name, model in models.items()
        for task in TASKS
        if task in model.manifest.tasks
    ]


def statements(models: Models, most: int) -> Rows:
    """Thirty sentences of policies and manuals, half to develop by and half to test with, each with a statement
    that follows from it in other words and one that does not: how many are said to follow (the most likely label
    is entailment), and how often one that follows has the higher probability (AUC).
    """
    parts = {part: sets.statements(part) for part in sets.PARTS}
    both = {part: ([pair.a for pair in pairs], [pair.b for pair in pairs]) for part, pairs in parts.items()}
    return [
        {"model": name, **{part: followed(model.entailment(*both[part]), pairs) for part, pairs in parts.items()}}
        for name, model in models.items()
        if model.manifest.entailment is not None
    ]


def entailment(models: Models, most: int) -> Rows:
    """Entailment on development pairs, with the expected calibration error (ten bins).

    The overlap of words is a logistic regression of the share of the hypothesis' words in the premise, fitted on
    other pairs of SNLI and MultiNLI.
    """
    parts = {
        "SNLI": sets.sample(measured(labelled_pairs.read("snli-dev")), most),
        "MultiNLI": sets.sample(measured(labelled_pairs.read("multinli")), most),
        "SciTail": sets.sample(labelled_pairs.read("scitail-dev"), most),
    }
    fit = [*labelled_pairs.read("snli-dev")[:CALIBRATION_PAIRS], *labelled_pairs.read("multinli")[:CALIBRATION_PAIRS]]
    rows: Rows = []
    for of, pairs in parts.items():
        rows.append({"set": of, "model": BASELINE, **entailment_figures(overlap_entailment(fit, pairs), pairs)})
        a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
        rows += [
            {"set": of, "model": name, **entailment_figures(model.entailment(a, b), pairs)}
            for name, model in models.items()
            if model.manifest.entailment is not None
        ]
    return rows


SECTIONS: Mapping[str, Section] = {
    section.__name__: section for section in (faq, contrast, requests, statements, entailment)
}


def measure(models: Models, names: Sequence[str], most: int) -> tuple[list[str], dict[str, Rows]]:
    """The lines of all sections, each with what its function says of it, and their figures by name."""
    found = {name: SECTIONS[name](models, most) for name in names}
    lines: list[str] = []
    for name, rows in found.items():
        about = " ".join(str(SECTIONS[name].__doc__).split())
        lines += [f"## {name.capitalize() if name != 'faq' else 'FAQ'}", "", about, "", figures(rows), ""]
    return lines, found
