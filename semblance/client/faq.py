"""`faq.json`: the entries of an FAQ, with what `semblance choose --faq` chose for them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from semblance.errors import InvalidArgument
from semblance.tables.output_file import replacing
from semblance.types import Ranking


class FAQEntry(NamedTuple):
    """One entry of an FAQ."""

    id: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class FAQ:
    """An FAQ that can be asked.

    Attributes:
        entries: at least one.
        settings: other fields of a request to `POST /rank`, which the service checks.
    """

    entries: tuple[FAQEntry, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `semblance choose --faq` wrote.

        Raises:
            InvalidArgument: it cannot be read, or is no such file.
        """
        try:
            settings = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            entries = tuple(FAQEntry(each["id"], each["question"], each["answer"]) for each in settings.pop("entries"))
            if "query" in settings or not all(isinstance(part, str) for entry in entries for part in entry):
                raise ValueError("a request to POST /rank, which has its question, or entries of no texts")
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror or error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidArgument(f"{path}: is no file that semblance choose --faq writes") from None
        return cls(entries, settings)

    def save(self, path: str | Path) -> None:
        """Write it as JSON: with a query, the body of a request to `POST /rank`.

        Raises:
            BatchError: there is a folder, a link or no plain file, or another process is writing it.
            OSError: the disk is full; an earlier file stays.
        """
        with replacing(Path(path)) as file:
            file.write((json.dumps(self.body(), ensure_ascii=False, indent=1) + "\n").encode())

    def body(self) -> dict[str, Any]:
        """The fields of a request, but for the query."""
        return {**self.settings, "entries": [entry._asdict() for entry in self.entries]}


@dataclass(frozen=True, slots=True)
class Reply:
    """What an FAQ answers to a question.

    Attributes:
        entry: the one that answers it; None: the FAQ has no answer.
        confidence: the probability that the first entry is right; None: it is not known.
        ranking: the service's answer; without results where there is no entry.
    """

    entry: FAQEntry | None
    confidence: float | None
    ranking: Ranking
