"""Texts written for this project, in people's everyday words: minimal edits, entailment, FAQs, policies with claims.

The licence is that of the code. Nothing was made by rule. Whole subjects, FAQs and policies are kept for development
and for tests, so that no part knows the situations of another.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from training.data.files import FileRow, one_of, read_table
from training.data.pairs import Pair

FOLDER = Path(__file__).parents[1] / "written"
Part = Literal["train", "dev", "test", "fresh"]  # fresh: written after all models, and measured once
PARTS: tuple[Part, ...] = ("train", "dev", "test", "fresh")
_SUBJECTS: dict[str, Part] = {
    **dict.fromkeys(("insurance", "sport clubs", "libraries", "hairdressers"), "dev"),
    **dict.fromkeys(("energy", "offices", "hotels", "museums", "weather and outdoors"), "test"),
}
_NUMBERS: dict[str, Part] = {  # of FAQs and of policies
    **dict.fromkeys(("10", "13", "14", "37", "38"), "dev"),
    **dict.fromkeys(("11", "12", "15", "16", "39", "40", "41"), "test"),
    **dict.fromkeys(("61", "62", "63", "64"), "fresh"),
}
_EDIT = ("kind", "subject", "sentence", "edit", "paraphrase")
_SENTENCES = {"entailed": "entailment", "contradicted": "contradiction", "not_stated": "neutral"}


def edits(part: Part) -> list[Pair]:
    """A sentence with a far paraphrase, label 1, and with an edit of its meaning, label 0; group: the kind of edit."""
    pairs: list[Pair] = []
    for row in _rows("edits.tsv", _EDIT, "subject", part):
        sentence, kind = row.text("sentence"), row.text("kind")
        pairs.append(Pair(sentence, row.text("paraphrase"), label="1", group=kind))
        pairs.append(Pair(sentence, row.text("edit"), label="0", group=kind))
    return pairs


def crossed_edits(part: Part) -> list[Pair]:
    """An edit with the far paraphrase of the sentence that it was made of, label 0; group: the kind of edit.

    Without these a model learns from `edits` that near wordings differ in meaning and far ones do not, and looks at
    nothing else.
    """
    return [
        Pair(row.text("edit"), row.text("paraphrase"), label="0", group=row.text("kind"))
        for row in _rows("edits.tsv", _EDIT, "subject", part)
    ]


def rewordings(part: Part) -> list[Pair]:
    """A sentence of `edits` in nearly the same words: label 1; with the edit of its meaning: label 0.

    Without these a model learns from `edits` that what differs in one word never means the same.
    """
    edit_of = {row.text("sentence"): row.text("edit") for row in _rows("edits.tsv", _EDIT, "subject", part)}
    pairs: list[Pair] = []
    for row in _rows("rewordings.tsv", ("subject", "sentence", "rewording"), "subject", part):
        sentence, rewording = row.text("sentence"), row.text("rewording")
        pairs.append(Pair(sentence, rewording, label="1", group=row.text("subject")))
        pairs.append(Pair(edit_of[sentence], rewording, label="0", group=row.text("subject")))
    return pairs


def entailment(part: Part) -> list[Pair]:
    """Premise and hypothesis, label entailment, neutral or contradiction; group: the premise."""
    labels = ("entailment", "neutral", "contradiction")
    return [
        Pair(row.text("premise"), row.text("hypothesis"), label=row.choice("label", labels), group=row.text("premise"))
        for row in _rows("entailment.tsv", ("subject", "premise", "hypothesis", "label"), "subject", part)
    ]


class WrittenFAQ(NamedTuple):
    """An invented FAQ with questions of people.

    Attributes:
        name: its number.
        entries: (id, question, answer) each.
        questions: (question, id of the right entry or nothing) each.
    """

    name: str
    entries: list[tuple[str, str, str]]
    questions: list[tuple[str, str]]


def faqs(part: Part) -> list[WrittenFAQ]:
    """The FAQs of a part; a quarter of their questions has no answer there."""
    found: dict[str, WrittenFAQ] = {}
    for row in _rows("faq-entries.tsv", ("faq", "id", "question", "answer"), "faq", part):
        faq = found.setdefault(row.text("faq"), WrittenFAQ(row.text("faq"), [], []))
        faq.entries.append((row.text("id"), row.text("question"), row.text("answer")))
    for row in _rows("faq-questions.tsv", ("faq", "question", "id", "manner"), "faq", part):
        found[row.text("faq")].questions.append((row.text("question"), row.raw("id")))
    return list(found.values())


def answers(part: Part) -> list[Pair]:
    """A question with every answer of its FAQ, label 1 for the right one; none is right for a quarter of them.

    The group is the question.
    """
    return [
        Pair(question, answer, label=str(int(entry == right)), group=question)
        for faq in faqs(part)
        for question, right in faq.questions
        for entry, _, answer in faq.entries
    ]


class PolicyClaim(NamedTuple):
    """A claim about a policy.

    Attributes:
        text: the claim.
        label: entailed, contradicted or not_stated.
        deciding: the sentences that decide it; none where it is not stated.
    """

    text: str
    label: str
    deciding: list[str]


class Policy(NamedTuple):
    """An invented policy: (heading, sentence) each, in its order, and the claims about it."""

    name: str
    sentences: list[tuple[str, str]]
    claims: list[PolicyClaim]

    @property
    def document(self) -> str:
        """The policy in Markdown, each heading once."""
        parts: list[str] = []
        for heading, own in groupby(self.sentences, key=lambda each: each[0]):
            parts += [f"## {heading}", " ".join(sentence for _, sentence in own)]
        return "\n\n".join(parts)


def policies(part: Part) -> list[Policy]:
    """The policies of a part."""
    found: dict[str, Policy] = {}
    by_id: dict[tuple[str, str], str] = {}
    for row in _rows("policies.tsv", ("policy", "id", "heading", "sentence"), "policy", part):
        policy = found.setdefault(row.text("policy"), Policy(row.text("policy"), [], []))
        policy.sentences.append((row.text("heading"), row.text("sentence")))
        by_id[policy.name, row.text("id")] = row.text("sentence")
    for row in _rows("policy-claims.tsv", ("policy", "claim", "label", "evidence", "how"), "policy", part):
        policy = found[row.text("policy")]
        deciding = [by_id[policy.name, each.strip()] for each in row.raw("evidence").split(",") if each.strip()]
        policy.claims.append(PolicyClaim(row.text("claim"), row.choice("label", tuple(_SENTENCES)), deciding))
    return list(found.values())


def claims(part: Part) -> list[Pair]:
    """The sentences of a policy that decide a claim, and the claim; label entailment, neutral or contradiction.

    Of a claim that the policy leaves open the premise is the sentence that shares most words with it. The group is the
    policy.
    """
    pairs: list[Pair] = []
    for policy in policies(part):
        heading_of = {sentence: heading for heading, sentence in policy.sentences}
        for claim in policy.claims:
            words = set(claim.text.lower().split())
            sentences = [f"{heading}: {sentence}" for heading, sentence in policy.sentences]
            nearest = max(sentences, key=lambda sentence: len(words & set(sentence.lower().split())))
            deciding = [f"{heading_of[sentence]}: {sentence}" for sentence in claim.deciding]
            label = _SENTENCES[claim.label]
            pairs.append(Pair(" ".join(deciding) or nearest, claim.text, label=label, group=policy.name))
    return pairs


def near_claims(part: Part) -> list[Pair]:
    """The sentence of a policy that shares most words with a claim of those that do not decide it, and the claim.

    What decides it is said elsewhere, so the label is neutral: of a policy `/claims` reads such sentences too.
    """
    pairs: list[Pair] = []
    for policy in policies(part):
        for claim in policy.claims:
            if claim.deciding:
                words = set(claim.text.lower().split())
                others = [f"{heading}: {each}" for heading, each in policy.sentences if each not in claim.deciding]
                nearest = max(others, key=lambda sentence: len(words & set(sentence.lower().split())))
                pairs.append(Pair(nearest, claim.text, label="neutral", group=policy.name))
    return pairs


def _rows(file: str, columns: tuple[str, ...], by: str, part: Part) -> Iterator[FileRow]:
    """The rows of a part, which is chosen by the value of a column."""
    one_of("part", part, PARTS)
    parts = _SUBJECTS if by == "subject" else _NUMBERS
    return (row for row in read_table(FOLDER / file, file, columns) if parts.get(row.text(by), "train") == part)
