"""Names: the glossary is short and true, a class name stands in one file."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("core", "service", "semblance", "workbench", "training")
GLOSSARY = re.findall(r"^\| ([\w ,]+) \| (.+) \| `(.+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
# The same error where the service raises it, and where its client does.
ERRORS = {"service/errors.py", "semblance/errors.py"}
SHARED = dict.fromkeys(("InvalidRequest", "Overloaded", "TooLarge", "Unauthorized"), ERRORS)

CLASS = re.compile(r"^ *class (\w+)(?:\[.*\])?[(:]", re.MULTILINE)


def test_the_glossary_is_short_and_its_files_exist() -> None:
    terms = [term for row in GLOSSARY for term in row[0].split(", ")]
    assert 30 < len(terms) == len(set(terms)) <= 60
    assert [file for *_, file in GLOSSARY if not (ROOT / file).is_file()] == []
    assert [term for term, meaning, _ in GLOSSARY if not 1 <= len(re.findall(r"\.(?= |$)", meaning)) <= 2] == []


def test_a_class_name_stands_in_one_file_of_the_product() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")):
        for name in CLASS.findall(path.read_text()):
            files[name].add(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == SHARED
