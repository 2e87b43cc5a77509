"""`faq.json`: the entries of an FAQ, with what `semblance choose --faq` chose for them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from semblance.errors import InvalidArgument
from semblance.tables.output_file import replacing
from semblance.types import Ranking

# The fields of a request to `POST /rank` but for the query and what is ranked.
_STAGES = ("model", "match", "rerank_model", "rerank_top", "top_k")
SETTINGS = frozenset({*_STAGES, "min_score", "min_confidence", "confidence_fit"})


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
        settings: other fields of a request to `POST /rank`, those of `SETTINGS`.

    Raises:
        InvalidArgument: there is another setting.
    """

    entries: tuple[FAQEntry, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "query" in self.settings:
            raise InvalidArgument("query is no field of an FAQ: each question brings its own")
        if unknown := sorted(name for name in self.settings if name not in SETTINGS):
            raise InvalidArgument(
                f"{unknown[0]!r} is no field of an FAQ; those are entries, {', '.join(sorted(SETTINGS))}"
            )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `semblance choose --faq` wrote.

        Raises:
            InvalidArgument: it cannot be read, is no such file, or has a field that an FAQ has not, such as `query`.
        """
        try:
            settings = json.loads(Path(path).read_text(encoding="utf-8"))
            entries = tuple(FAQEntry(each["id"], each["question"], each["answer"]) for each in settings.pop("entries"))
        except OSError as error:
            raise InvalidArgument(f"{path}: {error.strerror or error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidArgument(f"{path}: is no file that semblance choose --faq writes") from None
        try:
            return cls(entries, settings)
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}: {error}") from None

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
