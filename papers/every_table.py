"""The list of every table and figure of the five papers, `papers/every_table.toml`: reached, departs or closed."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from training.markdown import table
from training.records import CheckedRecord

LIST = Path(__file__).with_name("every_table.toml")


class Entry(CheckedRecord):
    """A table or figure of a paper, or what its text claims without one.

    Raises:
        ValueError: it is closed and has a command.
    """

    paper: str
    item: str  # as the paper numbers it
    what: str
    state: Literal["reached", "departs", "closed"]
    how: str  # or why
    command: str = ""  # that makes it again

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.state == "closed" and self.command:
            raise ValueError(f"{self.paper}, {self.item}: it is closed, so no command makes it")
        return self


def entries(path: Path = LIST) -> list[Entry]:
    """The list, paper by paper."""
    return [Entry.model_validate(each) for each in tomllib.loads(path.read_text(encoding="utf-8"))["entries"]]


def every_table(path: Path = LIST) -> str:
    """The list as a section."""
    found = entries(path)
    count = Counter(each.state for each in found)
    rows = [
        (each.paper, each.item, each.what, f"**{each.state}**: {each.how}", f"`{each.command}`" if each.command else "")
        for each in found
    ]
    head = ("paper", "table or figure", "what", "", "made by")
    return (
        f"## Every table and figure of the five papers\n\n{count['reached']} are reached, {count['departs']} depart, "
        f"{count['closed']} are closed.\n\n{table(head, rows)}"
    )
