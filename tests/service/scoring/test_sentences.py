"""Where a sentence ends."""

import pytest

from service.scoring.documents import sentences_of


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "He said \u201cStop!\u201d Then (he ran.) 3 dogs followed\u2026 Really?!",
            ["He said \u201cStop!\u201d", "Then (he ran.)", "3 dogs followed\u2026", "Really?!"],
        ),
        (
            "Dr. J. Smith of the U.S. Army came at 5 p.m. Monday.",
            ["Dr. J. Smith of the U.S. Army came at 5 p.m. Monday."],
        ),
        ("So do I. They too.", ["So do I.", "They too."]),
        ("It cost 3.5 dollars. See example.com. for more", ["It cost 3.5 dollars.", "See example.com. for more"]),
        ("A title\n\nA line\nand its end.\n \nMore", ["A title", "A line and its end.", "More"]),
        ("  spaces \t here.  Next  ", ["spaces here.", "Next"]),
        ("\u201cQuoted.\u201d \u201cAgain.\u201d", ["\u201cQuoted.\u201d", "\u201cAgain.\u201d"]),
        ("", []),
        (" \n\n\t ", []),
    ],
)
def test_sentences_end_by_the_rule(text: str, sentences: list[str]) -> None:
    assert list(sentences_of(text)) == sentences


@pytest.mark.timeout(60)  # milliseconds; a rule that looked back at each place would take minutes for some of these
@pytest.mark.parametrize("text", ["." * 100_000, "\n" * 100_000, "\n \t" * 33_000, ". A" * 33_000, "a." * 50_000])
def test_no_text_takes_long(text: str) -> None:
    assert " ".join(sentences_of(text)).split() == text.split()
