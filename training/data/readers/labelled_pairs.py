"""Rated and labelled pairs: relatedness, entailment, contrast edits, paraphrases, answers. One table, one reader.

Each file is tab separated with a header. What they have in common ends there, so that a table says how each is read:
its columns, and what its labels mean.

SICK: Marelli et al. 2014. MSRP: Dolan, Quirk & Brockett 2004; its train part contains STS 2012 MSRpar test. STS-B: Cer
et al. 2017, a selection of STS 2012-2017, so never train on it and test on those. SNLI: Bowman et al. 2015, tokenised,
as others redistribute it. MultiNLI: Williams et al. 2018, both development parts together. WikiQA: Yang, Yih & Meek
2015; the parts that are filtered keep the questions that have a right answer, as papers report. TrecQA: Wang, Smith &
Mitamura 2007; `clean` are the parts of Rao, He & Lin 2016. Both are tokenised and not cut. Twitter: Lan et al. 2017.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from training.data.files import FileRow, checked, one_of, read_rows
from training.data.pairs import Pair

NLI_LABELS = {label: label for label in ("entailment", "neutral", "contradiction")}
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
    # A text: that of every row, and "" for no label.
    labels: Mapping[str, str] | str | None = None
    group: str | None = None  # the column that becomes `Pair.group`
    where: tuple[str, str] | None = None  # only rows that have this in that column
    label: str = "label"  # the column of the label
    target: tuple[str, float, float] | None = None  # the column of the rating, its lowest and its highest
    corpus: str = ""  # what errors call it; nothing: its name in the table


_NLI = ("label", "premise", "hypothesis")
_CLAIM = ("premise", "hypothesis", "label")
_SENTENCES = ("sentence_a", "sentence_b")
_ANSWERS = ("question", "answer", "label", "group")


def _questions(file: str, last: str) -> PairFile:
    """Questions with candidates, those of a question under one group."""
    return PairFile(file, (*_ANSWERS, last), "question", "answer", YES_OR_NO, group="group")


def _selection(file: str, corpus: str) -> PairFile:
    """Questions with candidates: WikiQA and TrecQA."""
    header = ("qid", "label", "question", "answer")
    return PairFile(file, header, "question", "answer", YES_OR_NO, group="qid", corpus=corpus)


def _sick(part: str) -> PairFile:
    """Relatedness 1..5 and entailment for the same pairs."""
    header = ("pair_ID", *("sentence_A", "sentence_B"), "relatedness_score", "entailment_judgment")
    labels = {label.upper(): label for label in NLI_LABELS}
    rating = ("relatedness_score", 1, 5)
    return PairFile(
        f"sick/SICK_{part}.txt", header, *header[1:3], labels, label=header[4], target=rating, corpus="SICK"
    )


def _msrp(part: str) -> PairFile:
    header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    return PairFile(f"msrp/msr_paraphrase_{part}.txt", header, *header[3:], YES_OR_NO, label="Quality", corpus="MSRP")


def _tweets(part: str, score: str, rating: tuple[str, float, float] | None = None) -> PairFile:
    header = ("topic_id", "topic", score, "label", *_SENTENCES)
    labels = {**YES_OR_NO, "debatable": "debatable"}
    return PairFile(
        *(f"twitter-pit2015/{part}.tsv", header, *_SENTENCES, labels),
        group="topic_id",
        target=rating,
        corpus="PIT-2015",
    )


def _positives(corpus: str, file: str, *before: str, sides: tuple[str, str] = _SENTENCES) -> PairFile:
    """Pairs that all say the same."""
    return PairFile(file, (*before, *sides), *sides, "1", corpus=corpus)


FILES: dict[str, PairFile] = {
    "sick-train": _sick("train"),
    "sick-dev": _sick("trial"),
    "sick-test": _sick("test_annotated"),
    "stsb-dev": PairFile(
        "stsb/sts-dev.tsv",
        ("score", *_SENTENCES, "genre", "source", "year", "id"),
        *_SENTENCES,
        "",
        target=("score", 0, 5),
        corpus="STS Benchmark",
    ),
    # MaLSTM's released pre-training pairs (Mueller & Thyagarajan 2016), of STS 2012-2015, without the 741 that are
    # SICK's, 622 of its test set. Most STS evaluation sets are in here: fit nothing on them that is tested on STS.
    "malstm-extras": PairFile(
        "malstm-extras/sts-pretraining-pairs.tsv",
        ("score", *_SENTENCES, "also_in"),
        *_SENTENCES,
        "",
        where=("also_in", "-"),
        target=("score", 1, 5),
        corpus="MaLSTM extras",
    ),
    # Xu, Callison-Burch & Dolan 2015, SemEval-2015 task 1; its scorer leaves out what is debatable.
    "pit2015-dev": _tweets("dev", "votes"),
    "pit2015-test": _tweets("test", "score_0_5", ("score_0_5", 0, 5)),
    # Pavlick et al. 2015, on which Wieting et al. 2016 tuned.
    "ppdb-phrases": PairFile(
        "ppdb-human-ratings/ppdb-sample.tsv",
        ("mean_score", "syntactic_tag", "phrase_a", "phrase_b", "ratings"),
        *("phrase_a", "phrase_b"),
        "",
        target=("mean_score", 1, 5),
        corpus="PPDB ratings",
    ),
    "msrp-train": _msrp("train"),
    "msrp-test": _msrp("test"),
    "snli-dev": PairFile("snli/snli-dev-tokenised.tsv", _NLI, corpus="SNLI"),
    "snli-test": PairFile("snli/snli-test-tokenised.tsv", _NLI, corpus="SNLI"),
    "multinli": PairFile("multinli/multinli-dev.tsv.gz", _NLI, corpus="MultiNLI"),
    "wikiqa-train": _selection("wikiqa/WikiQA-train.tsv.gz", "WikiQA"),
    **{
        f"wikiqa-{part}": _selection(f"wikiqa/WikiQA-{part}.tsv", "WikiQA")
        for part in ("train-filtered", "dev", "dev-filtered", "test", "test-filtered")
    },
    "trecqa-train-all": _selection("trecqa/train-all.tsv.gz", "TrecQA"),
    **{f"trecqa-{part}": _selection(f"trecqa/{part}.tsv", "TrecQA") for part in ("dev-raw", "test-raw", "test-clean")},
    # Of these the train parts alone are read: the published test parts overlap them (Quora by 13,798 pairs). Quora's
    # and the tweets' are lower-cased, Quora's tokenised, and the tweets that share a URL noisy.
    "quora": _positives("Quora", "quora-paraphrase/train.tsv.gz"),
    "twitter-url": _positives("Twitter-URL", "twitter-url-paraphrase/train.tsv.gz"),
    # Complex and simple sentences: one complex sentence has up to ten simple sides. The second file is BiSECT and
    # OneStopEnglish; no pair is in both.
    "simplification": _positives(
        *("simplification", "simplification/complex-simple-pairs.tsv.gz", "source", "split"),
        sides=("complex", "simple"),
    ),
    "simplification-extra": _positives(
        *("simplification-extra", "simplification-extra/simplification-extra.tsv.gz", "source"),
        sides=("complex", "simple"),
    ),
    # The same verse in two of the versions ASV, BBE, KJV and YLT.
    "bible": PairFile(
        "bible-versions/bible-pairs.tsv.gz",
        ("version_a", "version_b", "split", *_SENTENCES),
        *_SENTENCES,
        "1",
        where=("split", "train"),
        corpus="Bible versions",
    ),
    "twitter-labelled": PairFile(
        "twitter-url-labelled/train.tsv.gz",
        ("label", *_SENTENCES),
        *_SENTENCES,
        YES_OR_NO,
        corpus="Twitter-URL labelled",
    ),
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
    "climate-fever": PairFile("climate-fever/climate-fever.tsv.gz", (*_CLAIM, "group", "agreement")),
    "fool-me-twice": PairFile("fool-me-twice/fool-me-twice.tsv.gz", (*_CLAIM, "group", "topic")),
    "entailment-bank": PairFile(
        "entailment-bank/entailment-bank.tsv.gz",
        (*_CLAIM, "group", "kind"),
        labels={"entailment": "entailment"},
        group="group",
    ),
    "cad-nli": PairFile(
        "counterfactual-nli/cad-nli-revised.tsv.gz", ("label", "kind", "split", *_NLI[1:]), where=("split", "train")
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
        where=("split", "train"),
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
    "natural-questions-passages": _questions("natural-questions-passages/nq-open-oracle.tsv.gz", "title"),
    "amazon-product-qa": _questions("amazon-product-qa/amazon-qa.tsv.gz", "kind"),
    "counsel-chat": _questions("counsel-chat/counsel-chat.tsv.gz", "topic"),
    "medquad": _questions("medquad/medquad.tsv.gz", "qtype"),
    "stackexchange": _questions("stackexchange-small/stackexchange-small.tsv.gz", "site"),
    "semeval-answers": PairFile(
        "semeval2016-answers/semeval2016-3A.tsv.gz", _ANSWERS, *_ANSWERS[:2], YES_OR_NO, group="group"
    ),
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
    """The pairs of one of `FILES`, with ``label``, ``target`` and ``group`` as its table says.

    Raises:
        ValueError: no such file in the table.
        CorpusError: it is missing or malformed.
    """
    known = FILES[one_of("name", name, FILES)]
    labels = NLI_LABELS if known.labels is None else known.labels

    def labelled(row: FileRow) -> str | None:
        return labels or None if isinstance(labels, str) else labels[row.choice(known.label, labels)]

    pairs = [
        Pair(
            row.text(known.a),
            row.text(known.b),
            row.number(*known.target) if known.target else None,
            labelled(row),
            row.raw(known.group) if known.group else "",
        )
        for row in read_rows(known.corpus or name, known.file, known.header)
        if (known.where is None or row.raw(known.where[0]) == known.where[1]) and labelled(row) != ""
    ]
    return pairs if known.where else checked(known.file, pairs)
