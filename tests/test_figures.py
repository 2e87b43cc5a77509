"""The tables of pages are those that the measured files give, and each page's lines can be read in an editor."""

import re

import pytest

from scripts.figures import PAGES, ROOT, filled


@pytest.mark.parametrize("page", PAGES)
def test_a_pages_tables_are_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "<!-- figures: " in text
    assert filled(text) == text, "`python -m scripts.figures` fills the tables anew"


def test_a_figure_that_differs_is_seen() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- figures: main -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert block is not None
    digit = re.search(r"\.\d", block[1])
    assert digit is not None
    at = block.start(1) + digit.end() - 1
    assert filled(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]) == text
