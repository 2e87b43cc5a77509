"""Names: the glossary is short and true, a class name stands in one file."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("core", "service", "semblance", "workbench", "training")
GLOSSARY = re.findall(r"^\| ([\w ,]+) \| (.+) \| `(.+)` \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
# The same error where the service raises it, and where its client does.
ERRORS = {"service/errors.py", "semblance/errors.py"}
SHARED = dict.fromkeys(("InvalidRequest", "Overloaded", "TooLarge", "Unauthorized"), ERRORS)

CLASS = re.compile(r"^ *class (\w+)(?:\[.*\])?[(:]", re.MULTILINE)


def shared_names(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """The names that classes of several modules have, with these modules, of the texts of modules by path."""
    files: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for name in CLASS.findall(text):
            files[name].add(path)
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_the_glossary_is_short_and_its_files_exist() -> None:
    terms = [term for row in GLOSSARY for term in row[0].split(", ")]
    assert 30 < len(terms) == len(set(terms)) <= 60
    assert [file for *_, file in GLOSSARY if not (ROOT / file).is_file()] == []
    assert [term for term, meaning, _ in GLOSSARY if not 1 <= len(re.findall(r"\.(?= |$)", meaning)) <= 2] == []


def test_a_class_name_stands_in_one_file_of_the_product() -> None:
    files = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]
    assert shared_names({str(path.relative_to(ROOT)): path.read_text() for path in files}) == SHARED


def test_a_class_name_that_stands_twice_is_noticed() -> None:
    """Guards the guard: only classes count, private ones and those inside a function too."""
    texts = {
        "a.py": "class Model: ...\nclass Model: ...",
        "b.py": "def f():\n    class Model: ...",
        "c.py": "Model = 1",
    }
    assert shared_names(texts) == {"Model": {"a.py", "b.py"}}
