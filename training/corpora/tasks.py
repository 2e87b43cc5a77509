"""Labelled pairs of many corpora for one model of several tasks: entailment, similarity, paraphrase, relevance.

Leakage, by the rules of `training/corpora/leakage.py`: a pair with a sentence of an evaluation set is left out. The
training parts of SICK, MSRP, WikiQA and TrecQA may share sentences with their own development and test parts, never
pairs. A pair whose premise stands in SNLI's development or test part, or in MultiNLI's development part, is left out,
and so is every sentence of these parts where only a cosine is learnt (`without_entailment_texts`).
"""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from training.corpora import pairwise
from training.corpora.files import data_dir, one_of
from training.corpora.leakage import (
    normalise_for_overlap,
    without_evaluation_sentences,
    without_foreign_sentences,
    without_pairs,
)
from training.corpora.readers import faq, labelled_pairs, nli, paraphrase, sick, stsb
from training.corpora.readers.labelled_pairs import NOT_ENTAILMENT
from training.corpora.role_edits import role_edits
from training.corpora.surface_edits import surface_edits
from training.pairs import Pair

Task = Literal["entailment", "similarity", "paraphrase", "related", "relevance"]
TASKS: tuple[Task, ...] = get_args(Task)

COSINES = "cosines"  # pairs of sentences of many sources with a bi-encoder's cosine, made by `training.sources.tasks`

# The tasks that the pairs of a corpus teach. Similarity is a value from 0 to 1; `related` is what tweets, questions and
# definitions call the same, which is less than a paraphrase.
TEACHES: dict[str, tuple[Task, ...]] = {
    **dict.fromkeys(
        ("snli-train", "mnli-train", "litl", "san-wiki", "wanli", "fever-nli", "cad-nli", "breaking-nli", "cannot"),
        ("entailment",),
    ),
    "sick": ("entailment", "similarity"),
    "msrp": ("paraphrase",),
    **dict.fromkeys(
        ("paws-wiki", "paraphrase-ni", "role-edits", "swapped-captions", "negations", "surface-edits"), ("paraphrase",)
    ),
    "surface-entailment": ("entailment", "similarity"),
    "twitter-labelled": ("related",),
    "qqp-labelled": ("related",),
    "parade": ("related",),
    **dict.fromkeys(("wikiqa", "trecqa", "selqa", "qnli-dev"), ("relevance",)),
    "caption-contrast": ("similarity",),
    COSINES: ("similarity",),
}
# Pairs made of other corpora.
_TEXTS = ("snli-train", "mnli-train", "qqp-labelled")
MADE_OF = {
    "role-edits": ("snli-train",),
    "swapped-captions": ("caption-contrast",),
    "negations": ("cannot",),
    "surface-edits": _TEXTS,
    "surface-entailment": _TEXTS,
}
SURFACE_SENTENCES = 4000  # of each of them
# Similarity of two captions that differ in one thing. SICK's raters give a contradiction 3.6 of 1..5.
CONTRAST = 0.6
# Whose edits are kept for measuring: no edit of these two makers is trained on.
HELD_OUT_CONTRAST = ("sugarcrepe", "valse")


def read(name: str) -> Sequence[Pair]:
    """The training pairs of a corpus of `TEACHES` but the cosines, each with a `label` or `target` (similarity, 0..1).

    Raises:
        ValueError: no such corpus.
        CorpusError: a file is missing or malformed.
    """
    one_of("corpus", name, [corpus for corpus in TEACHES if corpus != COSINES])
    return _read(data_dir().resolve(), name)


@functools.lru_cache(maxsize=32)
def _read(folder: Path, name: str) -> Sequence[Pair]:
    match name:
        case "sick":
            held_out = [pair for split in ("dev", "test") for pair in sick.read(split)]
            rated = without_foreign_sentences(without_pairs(sick.read("train"), held_out), "sick")
            return tuple(Pair(p.a, p.b, (p.target - 1) / 4, p.label) for p in rated if p.target is not None)
        case "msrp" | "wikiqa" | "trecqa":
            return tuple(without_foreign_sentences(_labelled(pairwise.read(name).train), name))
        case "twitter-labelled":
            return tuple(without_evaluation_sentences(paraphrase.twitter_labelled()))
        case "caption-contrast":
            pairs = [p for p in labelled_pairs.read(name) if p.group not in HELD_OUT_CONTRAST]
            return tuple(Pair(p.a, p.b, CONTRAST) for p in without_evaluation_sentences(pairs))
        case "swapped-captions":
            return tuple(Pair(p.a, p.b, label="0") for p in _read(folder, "caption-contrast"))
        case "negations":
            return tuple(Pair(p.a, p.b, label=str(int(p.label == "entailment"))) for p in _read(folder, "cannot"))
        case "role-edits":
            sentences = dict.fromkeys(text for p in _read(folder, "snli-train") for text in (p.a, p.b))
            return tuple(without_evaluation_sentences(list(role_edits(sentences))))
        case "surface-edits":
            samples = [_sample(_read(folder, corpus), SURFACE_SENTENCES) for corpus in _TEXTS]
            sentences = dict.fromkeys((p.a, p.b)[i % 2] for half in samples for i, p in enumerate(half))
            return tuple(without_evaluation_sentences(list(surface_edits(sentences))))
        case "surface-entailment":
            return tuple(
                Pair(p.a, p.b, 1.0, "entailment") if p.label == "1" else Pair(p.a, p.b, CONTRAST, NOT_ENTAILMENT)
                for p in _read(folder, "surface-edits")
            )
    pairs = list(without_evaluation_sentences(labelled_pairs.read(name)))
    if name == "paws-wiki":
        kept_back = {(pair.a, pair.b) for pair in _paws_held_out()}
        pairs = [pair for pair in pairs if (pair.a, pair.b) not in kept_back]
    if "entailment" in TEACHES[name]:
        unseen = _evaluation_premises(folder)
        pairs = [pair for pair in pairs if normalise_for_overlap(pair.a) not in unseen]
    if name == "cannot":  # some pairs of "negations" differ in nothing but marks
        pairs = [
            p for p in pairs if p.label == "entailment" or normalise_for_overlap(p.a) != normalise_for_overlap(p.b)
        ]
    return tuple(pairs)


def _labelled(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs whose target is 1 or 0, with that as the label."""
    return [Pair(p.a, p.b, label=str(int(p.target or 0)), group=p.group) for p in pairs]


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
    return [*nli.snli("dev"), *nli.snli("test"), *nli.multinli()]


# Of the development parts of SNLI and MultiNLI the first pairs choose the epoch and fit the temperature of entailment,
# the next ones are measured.
CALIBRATION_PAIRS, MEASURED_PAIRS = 1500, 3000

# What an epoch is chosen by. The parts of SNLI, MultiNLI and STS-B are samples, for time's sake.
DEVELOPMENT: Mapping[str, tuple[Task, Callable[[], Sequence[Pair]]]] = {
    "snli": ("entailment", lambda: _sample(nli.snli("dev")[:CALIBRATION_PAIRS], 600)),
    "multinli": ("entailment", lambda: _sample(nli.multinli()[:CALIBRATION_PAIRS], 600)),
    "sick": ("entailment", lambda: sick.read("dev")),
    "sick-rating": ("similarity", lambda: sick.read("dev")),
    "stsb": ("similarity", lambda: _sample(stsb.read("dev"), 600)),
    "msrp": ("paraphrase", lambda: _labelled(pairwise.read("msrp").dev)),
    "paws": ("paraphrase", _paws_held_out),
    "wikiqa": ("relevance", lambda: _labelled(pairwise.read("wikiqa").dev)),
}


def answers_of_three_kinds() -> Mapping[str, Sequence[Pair]]:
    """Questions with right and wrong answers: about encyclopaedia text and news (development parts), and FAQs."""
    return {
        **{name: _labelled(pairwise.read(name).dev) for name in ("wikiqa", "trecqa")},
        "faq": faq.read(),
    }


def measured(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Those pairs of a development part of SNLI or MultiNLI that are measured."""
    return pairs[CALIBRATION_PAIRS : CALIBRATION_PAIRS + MEASURED_PAIRS]


def development(name: str) -> Sequence[Pair]:
    """The development pairs of that name in `DEVELOPMENT`; raises like `read`."""
    return DEVELOPMENT[one_of("development set", name, DEVELOPMENT)][1]()


def _sample(pairs: Sequence[Pair], size: int) -> list[Pair]:
    return random.Random(0).sample(pairs, min(size, len(pairs)))
