import pytest

from training.corpora.readers import wikipedia


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("It rained. We left.", ["It rained.", "We left."]),
        ('He asked "why?" Nobody knew.', ['He asked "why?"', "Nobody knew."]),
        (
            "Dr. Smith met J. R. Jones at St. Mary's. They spoke.",
            ["Dr. Smith met J. R. Jones at St. Mary's.", "They spoke."],
        ),
        ("The U.S. Senate met. In 1990. 12 came!", ["The U.S. Senate met.", "In 1990.", "12 came!"]),
        ("It cost 3.5 dollars, e.g. Less than that.", ["It cost 3.5 dollars, e.g. Less than that."]),
        ("See no. 5 and vol. 7. end of it", ["See no. 5 and vol. 7. end of it"]),
        ("One line without an end", ["One line without an end"]),
        ("", []),
    ],
)
def test_splitting(paragraph, expected):
    assert wikipedia.split_sentences(paragraph) == expected
