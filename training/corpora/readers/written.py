"""Texts written for this project, in people's everyday words: minimal edits, entailment, FAQs, policies with claims.

The licence is that of the code. Nothing was made by rule. Whole subjects, FAQs and policies are kept for development
and for tests, so that no part knows the situations of another.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from training.corpora.files import FileRow, one_of, read_table
from training.pairs import Pair

FOLDER = Path(__file__).parents[1] / "written"
Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = ("train", "dev", "test")
_SUBJECTS: dict[str, Part] = {"insurance": "dev", "sport clubs": "dev", "energy": "test", "offices": "test"}
_NUMBERS: dict[str, Part] = {"10": "dev", "11": "test", "12": "test"}  # of FAQs and of policies
_SENTENCES = {"entailed": "entailment", "contradicted": "contradiction", "not_stated": "neutral"}


def edits(part: Part) -> list[Pair]:
    """A sentence with a far paraphrase, label 1, and with an edit of its meaning, label 0; group: the kind of edit."""
    pairs: list[Pair] = []
    for row in _rows("edits.tsv", ("kind", "subject", "sentence", "edit", "paraphrase"), "subject", part):
        sentence, kind = row.text("sentence"), row.text("kind")
        pairs.append(Pair(sentence, row.text("paraphrase"), label="1", group=kind))
        pairs.append(Pair(sentence, row.text("edit"), label="0", group=kind))
    return pairs


def entailment(part: Part) -> list[Pair]:
    """Premise and hypothesis, label entailment, neutral or contradiction; group: the premise."""
    labels = ("entailment", "neutral", "contradiction")
    return [
        Pair(row.text("premise"), row.text("hypothesis"), label=row.choice("label", labels), group=row.text("premise"))
        for row in _rows("entailment.tsv", ("subject", "premise", "hypothesis", "label"), "subject", part)
    ]


def answers(part: Part) -> list[Pair]:
    """A question with every answer of its FAQ, label 1 for the right one; none is right for a quarter of them.

    The group is the question.
    """
    entries: dict[str, list[FileRow]] = {}
    for row in _rows("faq-entries.tsv", ("faq", "id", "question", "answer"), "faq", part):
        entries.setdefault(row.text("faq"), []).append(row)
    return [
        Pair(
            row.text("question"),
            entry.text("answer"),
            label=str(int(entry.text("id") == row.raw("id"))),
            group=row.text("question"),
        )
        for row in _rows("faq-questions.tsv", ("faq", "question", "id", "manner"), "faq", part)
        for entry in entries[row.text("faq")]
    ]


def claims(part: Part) -> list[Pair]:
    """The sentences of a policy that decide a claim, and the claim; label entailment, neutral or contradiction.

    Of a claim that the policy leaves open the premise is the sentence that shares most words with it. The group is the
    policy.
    """
    sentences: dict[str, dict[str, str]] = {}
    for row in _rows("policies.tsv", ("policy", "id", "heading", "sentence"), "policy", part):
        said = f"{row.text('heading')}: {row.text('sentence')}"
        sentences.setdefault(row.text("policy"), {})[row.text("id")] = said
    pairs: list[Pair] = []
    for row in _rows("policy-claims.tsv", ("policy", "claim", "label", "evidence", "how"), "policy", part):
        of_policy, claim = sentences[row.text("policy")], row.text("claim")
        words = set(claim.lower().split())
        nearest = max(of_policy.values(), key=lambda sentence: len(words & set(sentence.lower().split())))
        deciding = [of_policy[each.strip()] for each in row.raw("evidence").split(",") if each.strip()]
        label = _SENTENCES[row.choice("label", tuple(_SENTENCES))]
        pairs.append(Pair(" ".join(deciding) or nearest, claim, label=label, group=row.text("policy")))
    return pairs


def _rows(file: str, columns: tuple[str, ...], by: str, part: Part) -> Iterator[FileRow]:
    """The rows of a part, which is chosen by the value of a column."""
    one_of("part", part, PARTS)
    parts = _SUBJECTS if by == "subject" else _NUMBERS
    return (row for row in read_table(FOLDER / file, file, columns) if parts.get(row.text(by), "train") == part)
