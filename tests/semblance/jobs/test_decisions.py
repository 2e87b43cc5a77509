"""Claims and edits on the development texts written for them; duplicates: test_dedupe.py, FAQs: test_faq.py.

The floors are a little under what is reached (`python -m benchmarks.decisions` prints it); a share of some forty
decisions moves by .02 or so from one CPU to another.
"""

import pytest

from benchmarks import decisions
from semblance import Client
from training.data.readers import written

pytestmark = pytest.mark.artifacts


def test_claims_are_labelled_and_their_evidence_is_found(published: str) -> None:
    with Client(published) as client:
        found = decisions.claims(client, written.policies("dev")[:1])
    assert len(found.answers) == 33
    assert found.right >= 0.45
    assert found.shown >= 0.6


@pytest.mark.parametrize(
    ("document", "claim", "label"),
    [
        ("Goods may be returned within 30 days of delivery.", "Goods may be returned within a month.", "entailed"),
        ("Goods may be returned within 30 days.", "Goods may not be returned within 30 days.", "contradicted"),
        ("The bridge was opened on 3 May 1921.", "The bridge was opened on 1921-05-03.", "entailed"),
        ("Turnout was 58 % in the last election.", "Turnout was at least 60 %.", "contradicted"),
        ("A ticket costs $12.", "A ticket costs \u20ac12.", "contradicted"),
        ("Paris sold 20 cars and London sold 30 cars.", "50 cars were sold.", "not_stated"),
    ],
)
def test_equal_amounts_do_not_contradict_and_other_units_do(
    published: str, document: str, claim: str, label: str
) -> None:
    with Client(published) as client:
        assert client.claims(document, [claim]).results[0].label == label


def test_edits_of_meaning_are_told_from_other_wordings(published: str) -> None:
    with Client(published) as client:
        found = decisions.edits(client, written.edits("dev")[::3], "minilm-cross")
    assert found["all"] >= 0.95
    assert found["numbers"] >= 0.95
