"""Labelled pairs of many small releases: entailment, contrast edits, paraphrases, answers. One table, one reader.

Each file is tab separated with a header. What they have in common ends there, so that a table says how each is read:
its columns, and what its labels mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from training.corpora.files import checked, one_of, read_rows
from training.corpora.readers.nli import LABELS
from training.pairs import Pair

NLI_LABELS = {label: label for label in LABELS}
# Of data with two classes: neutral or contradiction.
NOT_ENTAILMENT = "not_entailment"
TWO_WAY = {"entailment": "entailment", NOT_ENTAILMENT: NOT_ENTAILMENT}
YES_OR_NO = {"1": "1", "0": "0"}


@dataclass(frozen=True, slots=True)
class PairFile:
    """One file: where it lies, its columns, and what its labels are called here."""

    file: str
    header: tuple[str, ...]
    a: str = "premise"
    b: str = "hypothesis"
    # As in the file -> ours; rows of a label that is "" here are left out. None: the file's own, three-way entailment.
    labels: Mapping[str, str] | None = None
    group: str | None = None  # the column that becomes `Pair.group`
    split: str | None = None  # only rows whose column `split` holds this
    label: str = "label"  # the column of the label


_NLI = ("label", "premise", "hypothesis")
_CLAIM = ("premise", "hypothesis", "label")
_SENTENCES = ("sentence_a", "sentence_b")
_ANSWERS = ("question", "answer", "label", "group")


def _questions(file: str, last: str) -> "PairFile":
    """Questions with candidates, those of a question under one group."""
    return PairFile(file, (*_ANSWERS, last), "question", "answer", YES_OR_NO, group="group")


FILES: dict[str, PairFile] = {
    "snli-train": PairFile("snli-train-part/snli-train-part.tsv.gz", ("label", "source", *_NLI[1:])),
    "mnli-train": PairFile("mnli-train-part/mnli-train-part.tsv.gz", ("label", "source", *_NLI[1:])),
    "mnli-not": PairFile(
        "mnli-train-part/mnli-train-part-not-x.tsv.gz",
        _NLI,
        labels={NOT_ENTAILMENT: NOT_ENTAILMENT, "not_neutral": "", "not_contradiction": ""},
    ),
    "litl": PairFile("ling-in-the-loop/litl-train.tsv.gz", ("label", "protocol_round", *_NLI[1:])),
    "san-wiki": PairFile("semi-automatic-nli/san-wiki-train.tsv.gz", ("label", "set", *_NLI[1:])),
    "wanli": PairFile("wanli-part/wanli-train-part.tsv.gz", _NLI),
    "fever-nli": PairFile(
        "fever-nli-part/fever-nli-part.tsv.gz", ("source", *_NLI), labels={**NLI_LABELS, **TWO_WAY}, group="source"
    ),
    "fever-dev": PairFile("fever-dev/fever-dev.tsv.gz", (*_CLAIM, "group")),
    "fool-me-twice": PairFile("fool-me-twice/fool-me-twice.tsv.gz", (*_CLAIM, "group", "topic")),
    "entailment-bank": PairFile(
        "entailment-bank/entailment-bank.tsv.gz",
        (*_CLAIM, "group", "kind"),
        labels={"entailment": "entailment"},
        group="group",
    ),
    "cad-nli": PairFile(
        "counterfactual-nli/cad-nli-revised.tsv.gz", ("label", "kind", "split", *_NLI[1:]), split="train"
    ),
    "breaking-nli": PairFile("breaking-nli/breaking-nli.tsv.gz", ("label", "category", *_NLI[1:])),
    "cannot": PairFile(
        "negation-cannot/cannot-sources.tsv.gz",
        ("source", "label", *_SENTENCES),
        *_SENTENCES,
        labels={**NLI_LABELS, "paraphrase": "entailment"},
        group="source",
    ),
    "scitail-dev": PairFile("nli-small/scitail-real-dev.tsv", _NLI, labels=TWO_WAY),
    "paws-wiki": PairFile(
        "paws-wiki-part/paws-wiki-part.tsv.gz", ("label", *_SENTENCES), *_SENTENCES, labels=YES_OR_NO
    ),
    "qqp-labelled": PairFile(
        "qqp-part/qqp-labelled-part.tsv.gz",
        ("label", "question_a", "question_b"),
        "question_a",
        "question_b",
        YES_OR_NO,
    ),
    "parade": PairFile(
        "parade/parade.tsv.gz",
        ("split", "label", "label4", "entity", *_SENTENCES),
        *_SENTENCES,
        labels=YES_OR_NO,
        split="train",
    ),
    "paraphrase-ni": PairFile(
        "paraphrase-ni/paraphrase-ni.tsv.gz",
        ("source", *_SENTENCES),
        *_SENTENCES,
        label="source",
        labels={"paranmt": "1", "comqa": "1"},
    ),
    "caption-contrast": PairFile(
        "caption-contrast/caption-contrast.tsv.gz",
        ("source", "type", "label", *_SENTENCES),
        *_SENTENCES,
        labels={"0": "0"},
        group="source",
    ),
    "argument-keypoint": PairFile(
        "argument-keypoint/argkp2021.tsv.gz", ("a", "b", "label", "topic"), "a", "b", YES_OR_NO
    ),
    "nq-sentences": _questions("natural-questions-sentences/nq-qed-sentences.tsv.gz", "title"),
    "medquad": _questions("medquad/medquad.tsv.gz", "qtype"),
    "stackexchange": _questions("stackexchange-small/stackexchange-small.tsv.gz", "site"),
    "selqa": PairFile(
        "selqa-part/selqa-dev-test.tsv.gz",
        ("split", "qid", "label", "question", "answer"),
        "question",
        "answer",
        YES_OR_NO,
        group="question",
    ),
    "qnli-dev": PairFile(
        "qnli-dev/qnli-dev.tsv.gz",
        ("label", "question", "sentence"),
        "question",
        "sentence",
        {"entailment": "1", NOT_ENTAILMENT: "0"},
        group="question",
    ),
}


def read(name: str) -> list[Pair]:
    """The pairs of one of `FILES`, with ``label`` as its table says.

    Raises:
        ValueError: no such file in the table.
        CorpusError: it is missing or malformed.
    """
    known = FILES[one_of("name", name, FILES)]
    labels = known.labels or NLI_LABELS
    pairs = [
        Pair(
            row.text(known.a),
            row.text(known.b),
            label=labels[row.choice(known.label, labels)],
            group=row.raw(known.group) if known.group else "",
        )
        for row in read_rows(name, known.file, known.header)
        if (known.split is None or row.raw("split") == known.split) and labels[row.choice(known.label, labels)]
    ]
    return pairs if known.split else checked(known.file, pairs)
