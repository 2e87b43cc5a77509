"""Labelled pairs of many corpora for one model of several tasks: entailment, similarity, paraphrase, relevance.

Leakage, by the rules of `training/data/leakage.py`: a pair with a sentence of an evaluation set is left out. The
training parts of SICK, MSRP, WikiQA and TrecQA may share sentences with their own development and test parts, never
pairs. A pair whose premise stands in SNLI's development or test part, or in MultiNLI's development part, is left out,
and so is every sentence of these parts where only a cosine is learnt (`without_entailment_texts`).
"""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args

from training.data import pairwise
from training.data.edits import edits
from training.data.files import data_dir, one_of
from training.data.leakage import (
    normalise_for_overlap,
    without_evaluation_sentences,
    without_foreign_sentences,
    without_kept_aside,
)
from training.data.pairs import Pair
from training.data.readers import faq, intents, labelled_pairs, written
from training.data.readers.labelled_pairs import NOT_ENTAILMENT

T = TypeVar("T")
Task = Literal["entailment", "similarity", "paraphrase", "related", "relevance"]
TASKS: tuple[Task, ...] = get_args(Task)

# Made with an encoder's help by `training.recipes.sources.tasks`: pairs of sentences of many sources with its cosine;
COSINES = "cosines"
# each right answer of a corpus with four wrong ones (`training.data.hard`);
HARD = {
    f"{name}-hard": name
    for name in (
        *("wikiqa", "trecqa-half", "selqa", "qnli-dev", "nq-sentences", "medquad", "stackexchange"),
        "written-answers",
    )
}
# and requests with others of the same and of a near intent.
INTENTS = {f"intents-{name}": name for name in intents.FILES}

# Texts of this project's own.
WRITTEN: Mapping[str, Callable[[written.Part], list[Pair]]] = {
    "written-edits": written.edits,
    "written-crossed-edits": written.crossed_edits,
    "written-rewordings": written.rewordings,
    "written-entailment": written.entailment,
    "written-claims": written.claims,
    "written-near-claims": written.near_claims,
    "written-answers": written.answers,
}

# The tasks that the pairs of a corpus teach. Similarity is a value from 0 to 1; `related` is what tweets, questions and
# definitions call the same, which is less than a paraphrase.
TEACHES: dict[str, tuple[Task, ...]] = {
    **dict.fromkeys(
        (
            *("snli-train", "mnli-train", "mnli-not", "litl", "san-wiki", "wanli", "fever-nli", "fever-dev"),
            *("fool-me-twice", "entailment-bank", "qnli-not", "cad-nli", "breaking-nli", "cannot"),
            *("written-entailment", "written-claims", "written-near-claims"),
        ),
        ("entailment",),
    ),
    "sick": ("entailment", "similarity"),
    **dict.fromkeys(("msrp", "msrp-whole"), ("paraphrase",)),
    **dict.fromkeys(
        (
            *("paws-wiki", "paraphrase-ni", "argument-keypoint", "role-edits", "swapped-captions", "negations"),
            *("surface-edits", "edited-surface-edits", "request-edits"),
            *("written-edits", "written-crossed-edits", "written-rewordings"),
        ),
        ("paraphrase",),
    ),
    # Two texts of a bank's customers with one intent mean the same; elsewhere they may name other times and places.
    "intents-banking77": ("paraphrase", "related"),
    **dict.fromkeys(("intents-clinc150", "intents-hwu64"), ("related",)),
    "surface-entailment": ("entailment", "similarity"),
    "twitter-labelled": ("related",),
    "qqp-labelled": ("related",),
    "parade": ("related",),
    **dict.fromkeys(("wikiqa", "trecqa", "selqa", "qnli-dev", *HARD.values(), *HARD), ("relevance",)),
    "caption-contrast": ("similarity",),
    COSINES: ("similarity",),
}
# Pairs made of other corpora.
_TEXTS = ("snli-train", "mnli-train", "qqp-labelled")
_EDITED = ("paws-wiki", "written-edits")  # in which nearly the same words seldom mean the same
MADE_OF = {
    "msrp-whole": ("msrp",),
    "qnli-not": ("qnli-dev",),
    "trecqa-half": ("trecqa",),
    **{hard: ("trecqa",) if name == "trecqa-half" else (name,) for hard, name in HARD.items()},
    "request-edits": ("qqp-labelled", *INTENTS),
    "role-edits": ("snli-train",),
    "swapped-captions": ("caption-contrast",),
    "negations": ("cannot",),
    "surface-edits": _TEXTS,
    "surface-entailment": _TEXTS,
    "edited-surface-edits": _EDITED,
}
SURFACE_SENTENCES = 4000  # of each of them
MEDQUAD_QUESTIONS = 3000  # of some 10,000, which are templates ("What are the treatments for ...?")
# Similarity of two captions that differ in one thing. SICK's raters give a contradiction 3.6 of 1..5.
CONTRAST = 0.6
# Corpora of the same texts as sets that are only measured.
_NEAR_KEPT_ASIDE = ("medquad", "stackexchange", "nq-sentences")
# Whose edits are kept for measuring: no edit of these two makers is trained on.
HELD_OUT_CONTRAST = ("sugarcrepe", "valse")


def read(name: str) -> Sequence[Pair]:
    """The training pairs of a corpus of `TEACHES`, each with a `label` or `target` (similarity, 0..1).

    Raises:
        ValueError: no such corpus, or one that is made with an encoder.
        CorpusError: a file is missing or malformed.
    """
    one_of("corpus", name, [corpus for corpus in TEACHES if corpus not in (COSINES, *HARD, *INTENTS)])
    return _read(data_dir().resolve(), name)


def requests(name: str) -> list[tuple[str, str]]:
    """(text, intent) of one of `INTENTS`, without evaluation sentences; raises like `read`."""
    found = intents.read(INTENTS[one_of("intents", name, INTENTS)])
    kept = set(without_evaluation_sentences(text for text, _ in found))
    return [(text, intent) for text, intent in found if text in kept]


@functools.lru_cache(maxsize=64)
def _read(folder: Path, name: str) -> Sequence[Pair]:
    match name:
        case "sick":
            rated = without_foreign_sentences(pairwise.read("sick").train, "sick")
            return tuple(Pair(p.a, p.b, (p.target - 1) / 4, p.label) for p in rated if p.target is not None)
        case "msrp-whole":  # 749 of its pairs are in MSRpar of STS 2012: figures of that set are marked
            return tuple(_labelled(pairwise.read("msrp").train))
        case "msrp" | "wikiqa" | "trecqa":
            return tuple(without_foreign_sentences(_labelled(pairwise.read(name).train), name))
        case "trecqa-half":
            return tuple(_some_groups(_read(folder, "trecqa"), lambda groups: groups[::2]))
        case "twitter-labelled":
            return tuple(without_evaluation_sentences(labelled_pairs.read("twitter-labelled")))
        case "caption-contrast":
            pairs = [p for p in labelled_pairs.read(name) if p.group not in HELD_OUT_CONTRAST]
            return tuple(Pair(p.a, p.b, CONTRAST) for p in without_evaluation_sentences(pairs))
        case "swapped-captions":
            return tuple(Pair(p.a, p.b, label="0") for p in _read(folder, "caption-contrast"))
        case "negations":
            return tuple(Pair(p.a, p.b, label=str(int(p.label == "entailment"))) for p in _read(folder, "cannot"))
        case "role-edits":
            sentences = dict.fromkeys(text for p in _read(folder, "snli-train") for text in (p.a, p.b))
            return tuple(without_evaluation_sentences(list(edits(name, sentences))))
        case "surface-edits" | "edited-surface-edits":
            samples = [_sample(_read(folder, corpus), SURFACE_SENTENCES) for corpus in MADE_OF[name]]
            sentences = dict.fromkeys((p.a, p.b)[i % 2] for half in samples for i, p in enumerate(half))
            return tuple(without_evaluation_sentences(list(edits("surface-edits", sentences))))
        case "request-edits":
            asked = dict.fromkeys(text for p in _read(folder, "qqp-labelled") for text in (p.a, p.b))
            said = dict.fromkeys(text for corpus in INTENTS for text, _ in requests(corpus))
            return tuple(without_evaluation_sentences(list(edits(name, [*asked, *said]))))
        case "qnli-not":
            return tuple(Pair(p.b, p.a, label=NOT_ENTAILMENT) for p in _read(folder, "qnli-dev") if p.label == "0")
        case "surface-entailment":
            return tuple(
                Pair(p.a, p.b, 1.0, "entailment") if p.label == "1" else Pair(p.a, p.b, CONTRAST, NOT_ENTAILMENT)
                for p in _read(folder, "surface-edits")
            )
    if name in WRITTEN:
        return tuple(without_evaluation_sentences(WRITTEN[name]("train")))
    pairs = list(without_evaluation_sentences(labelled_pairs.read(name)))
    if name in _NEAR_KEPT_ASIDE:
        pairs = without_kept_aside(pairs)
    if name == "paws-wiki":
        kept_back = {(pair.a, pair.b) for pair in _paws_held_out()}
        pairs = [pair for pair in pairs if (pair.a, pair.b) not in kept_back]
    if "entailment" in TEACHES[name]:
        unseen = _evaluation_premises(folder)
        pairs = [pair for pair in pairs if normalise_for_overlap(pair.a) not in unseen]
    if name == "entailment-bank":
        pairs += _neutral(pairs)
    if name == "medquad":
        pairs = _some_groups(pairs, lambda groups: _sample(groups, MEDQUAD_QUESTIONS))
    if name == "cannot":  # some pairs of "negations" differ in nothing but marks
        pairs = [
            p for p in pairs if p.label == "entailment" or normalise_for_overlap(p.a) != normalise_for_overlap(p.b)
        ]
    return tuple(pairs)


def _labelled(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs whose target is 1 or 0, with that as the label."""
    return [Pair(p.a, p.b, label=str(int(p.target or 0)), group=p.group) for p in pairs]


def _some_groups(pairs: Sequence[Pair], choose: Callable[[Sequence[str]], Sequence[str]]) -> list[Pair]:
    chosen = set(choose(list(dict.fromkeys(pair.group for pair in pairs))))
    return [pair for pair in pairs if pair.group in chosen]


def _neutral(pairs: Sequence[Pair]) -> list[Pair]:
    """Each premise with the hypothesis of another group that shares the most words with it, of some that are drawn."""
    draw = random.Random(0)
    found = []
    for pair in pairs:
        words = set(pair.a.lower().split())
        others = [other for other in draw.sample(list(pairs), min(50, len(pairs))) if other.group != pair.group]
        if others:
            nearest = max(others, key=lambda other: len(words & set(other.b.lower().split())))
            found.append(Pair(pair.a, nearest.b, label="neutral"))
    return found


def _paws_held_out() -> Sequence[Pair]:
    return _sample(labelled_pairs.read("paws-wiki"), 600)


def without_entailment_texts(texts: Sequence[str]) -> list[str]:
    """The texts that stand in no development or test part of SNLI or MultiNLI, neither as premise nor hypothesis."""
    unseen = {normalise_for_overlap(text) for pair in _evaluation_pairs() for text in (pair.a, pair.b)}
    return [text for text in texts if normalise_for_overlap(text) not in unseen]


@functools.lru_cache(maxsize=1)
def _evaluation_premises(folder: Path) -> frozenset[str]:
    return frozenset(normalise_for_overlap(pair.a) for pair in _evaluation_pairs())


def _evaluation_pairs() -> Sequence[Pair]:
    return [pair for name in ("snli-dev", "snli-test", "multinli") for pair in labelled_pairs.read(name)]


# Of the development parts of SNLI and MultiNLI the first pairs choose the epoch and fit the temperature of entailment,
# the next ones are measured.
CALIBRATION_PAIRS, MEASURED_PAIRS = 1500, 3000

# What an epoch is chosen by. The parts of SNLI, MultiNLI and STS-B are samples, for time's sake.
DEVELOPMENT: Mapping[str, tuple[Task, Callable[[], Sequence[Pair]]]] = {
    "snli": ("entailment", lambda: _sample(labelled_pairs.read("snli-dev")[:CALIBRATION_PAIRS], 600)),
    "multinli": ("entailment", lambda: _sample(labelled_pairs.read("multinli")[:CALIBRATION_PAIRS], 600)),
    "sick": ("entailment", lambda: labelled_pairs.read("sick-dev")),
    "sick-rating": ("similarity", lambda: labelled_pairs.read("sick-dev")),
    "stsb": ("similarity", lambda: _sample(labelled_pairs.read("stsb-dev"), 600)),
    "msrp": ("paraphrase", lambda: _labelled(pairwise.read("msrp").dev)),
    "paws": ("paraphrase", _paws_held_out),
    "wikiqa": ("relevance", lambda: _labelled(pairwise.read("wikiqa").dev)),
    # Of what teaches on the same corpus alone.
    **{
        name: (TEACHES[name][0], functools.partial(part, "dev"))
        for name, part in WRITTEN.items()
        if name != "written-answers"
    },
}


def answers_of_three_kinds() -> Mapping[str, Sequence[Pair]]:
    """Questions with right and wrong answers: about encyclopaedia text and news (development parts), and FAQs."""
    faqs = [*faq.read(), *written.answers("dev")]
    return {**{name: _labelled(pairwise.read(name).dev) for name in ("wikiqa", "trecqa")}, "faq": faqs}


def measured(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Those pairs of a development part of SNLI or MultiNLI that are measured."""
    return pairs[CALIBRATION_PAIRS : CALIBRATION_PAIRS + MEASURED_PAIRS]


def development(name: str) -> Sequence[Pair]:
    """The development pairs of that name in `DEVELOPMENT`; raises like `read`."""
    return DEVELOPMENT[one_of("development set", name, DEVELOPMENT)][1]()


def _sample(found: Sequence[T], size: int) -> list[T]:
    return random.Random(0).sample(found, min(size, len(found)))
