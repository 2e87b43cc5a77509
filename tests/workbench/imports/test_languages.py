"""The languages that a folder of another library states of itself."""

from pathlib import Path

import pytest

from workbench.imports.files import languages_of


@pytest.mark.parametrize(
    ("readme", "languages"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model", ("en",)),
        ("---\nlicense: mit\nlanguage:\n- en\n- de\ntags:\n- fr\n---\n", ("en", "de")),
        ("---\nlanguage:\n  - de\n  - en\n---\n", ("de", "en")),
        ('---\nlanguage: ["en", "nl"]\n---\n', ("en", "nl")),
        ("---\nlanguage: multilingual\n---\n", None),
        ("---\nlanguage:\n- en\n- code\n---\n", None),
        ("---\nlicense: mit\n---\nlanguage: en\n", None),
        ("# A model\n\nlanguage: en\n", None),
        ("", None),
        (None, None),
    ],
)
def test_they_are_those_of_the_readmes_head(
    tmp_path: Path, readme: str | None, languages: tuple[str, ...] | None
) -> None:
    if readme is not None:
        (tmp_path / "README.md").write_text(readme)
    assert languages_of(tmp_path) == languages
