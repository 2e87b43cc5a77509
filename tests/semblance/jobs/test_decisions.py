"""FAQs, claims and edits on the development texts written for them, as hard as people's; duplicates: test_dedupe.py.

The floors are a little under what is reached (`python -m benchmarks.decisions` prints it); a share of some forty
decisions moves by .02 or so from one CPU to another.
"""

from pathlib import Path

import pytest

from benchmarks import decisions
from semblance import FAQ, Client
from tests.harness.commands import Run
from tests.harness.tables import write
from training.corpora.readers import written

pytestmark = pytest.mark.artifacts


def test_an_faq_is_answered_or_not_more_often_rightly_than_by_refusing_all(
    published: str, semblance: Run, tmp_path: Path
) -> None:
    faq = written.faqs("dev")[0]
    columns = {"faq": (("id", "question", "answer"), faq.entries), "questions": (("question", "id"), faq.questions)}
    for name, (head, rows) in columns.items():
        write(tmp_path / f"{name}.csv", [dict(zip(head, row, strict=True)) for row in rows])
    files = [tmp_path / name for name in ("faq.csv", "questions.csv", "faq.json")]
    ran = semblance("choose", "--faq", *files[:2], "--output", files[2], "--model", "minilm-small", "--url", published)
    assert ran.code == 0, ran.err
    saved = FAQ.load(files[2])
    with Client(published) as client:
        answered = [client.answer(question, saved).entry for question, _ in faq.questions]
    right = [
        ("" if entry is None else entry.id) == wanted
        for entry, (_, wanted) in zip(answered, faq.questions, strict=True)
    ]
    assert sum(right) / len(right) >= 0.34
    assert sum(right) > sum(not wanted for _, wanted in faq.questions)  # refusing everything


def test_claims_are_labelled_and_their_evidence_is_found(published: str) -> None:
    with Client(published) as client:
        found = decisions.claims(client, written.policies("dev")[:1])
    assert len(found.answers) == 33
    assert found.right >= 0.45
    assert found.shown >= 0.6


def test_edits_of_meaning_are_told_from_other_wordings(published: str) -> None:
    with Client(published) as client:
        found = decisions.edits(client, written.edits("dev")[::3], "minilm-cross")
    assert found["all"] >= 0.95
    assert found["numbers"] >= 0.95
