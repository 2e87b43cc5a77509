"""Names and docstrings: the glossary is short and true, a docstring is a sentence, a class name stands once."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = re.findall(r"^\| ([\w ,]+) \| (.+) \| `(.+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)


def test_the_glossary_is_short_and_its_files_exist() -> None:
    terms = [term for row in GLOSSARY for term in row[0].split(", ")]
    assert 30 < len(terms) == len(set(terms)) <= 60
    assert [file for *_, file in GLOSSARY if not (ROOT / file).is_file()] == []
    assert [term for term, meaning, _ in GLOSSARY if not 1 <= len(re.findall(r"\.(?= |$)", meaning)) <= 2] == []
