"""Every corpus the project can use, from `catalogue.toml`: description, licence, source, files and their counts."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from training.names import by_name


@dataclass(frozen=True, slots=True)
class Published:
    """Expected counts of one file. ``groups`` counts distinct `Pair.group` values, i.e. questions."""

    rows: int  # the header not counted
    labels: dict[str, int] = field(default_factory=dict)
    groups: int | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus. ``source`` is the official page or, where there is none, the publication."""

    what: str
    licence: str
    source: str
    files: dict[str, Published]


CATALOGUE: dict[str, Corpus] = {
    name: Corpus(**{**entry, "files": {file: Published(**counts) for file, counts in entry["files"].items()}})
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
PUBLISHED: dict[str, Published] = {
    file: counts for corpus in CATALOGUE.values() for file, counts in corpus.files.items()
}


def find(name: str) -> Corpus:
    """The corpus of that id.

    Raises:
        KeyError: with the nearest ids.
    """
    return by_name(CATALOGUE, name, "corpus")
