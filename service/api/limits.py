"""Checks of lists and texts against the limits of the settings; our own routes and the dialects use the same ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from service.errors import Overloaded, TooLarge, TooSlow, amount
from service.scoring.scorer import Scorer
from service.settings import Settings

Limit = Literal["max_pairs", "max_candidates", "max_sentences", "max_claims"]


@contextmanager
def counted(field: str, count: int) -> Iterator[None]:
    """Work on the `count` items of a field: an error that it takes too long now says how many would not."""
    try:
        yield
    except (TooSlow, Overloaded) as error:
        raise error.of(field, count) from None


class RequestLimits:
    """The limits of one service."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counts: dict[Limit, int] = {
            "max_pairs": settings.max_pairs,
            "max_candidates": settings.max_candidates,
            "max_sentences": settings.max_sentences,
            "max_claims": settings.max_claims,
        }
        self.text_chars = settings.max_text_chars

    def check_count(self, field: str, count: int, limit: Limit) -> None:
        """Check the length of the list in `field`.

        Raises:
            TooLarge: it is longer than the setting allows.
        """
        most = self._counts[limit]
        if count > most:
            message = f"{count} {field}, the limit is {most} (SEMBLANCE_{limit.upper()})"
            raise TooLarge(message, field=field, limit=most)

    def check_product(self, field: str, some: tuple[int, str], others: tuple[int, str]) -> None:
        """Check the number of pairs that each of `some` makes with each of `others`: counts, and what they are.

        Raises:
            TooLarge: SEMBLANCE_MAX_PAIRS allows fewer.
        """
        (n, what), (m, other) = some, others
        most = self._settings.max_pairs
        if n * m > most:
            pairs = f"{amount(n, what)} with {amount(m, other)} are {n * m} pairs"
            message = f"{pairs}, the limit is {most} (SEMBLANCE_MAX_PAIRS)"
            raise TooLarge(message, field=field, limit=most)

    def check_documents(self, documents: Sequence[str]) -> None:
        """Check the length of all documents together.

        Raises:
            TooLarge: it is more than the setting allows.
        """
        chars, most = sum(map(len, documents)), self._settings.max_document_chars
        if chars > most:
            message = f"documents of {chars} characters, the limit is {most} (SEMBLANCE_MAX_DOCUMENT_CHARS)"
            raise TooLarge(message, field="documents", limit=most)

    def check_texts(self, texts: Sequence[str], field_of: Callable[[int], str]) -> None:
        """Check the length of each text.

        Args:
            texts: at least one.
            field_of: position in `texts` -> field of the request.

        Raises:
            TooLarge: one is longer than the setting allows; names the first such text.
        """
        if max(map(len, texts)) > self.text_chars:
            i = next(i for i, text in enumerate(texts) if len(text) > self.text_chars)
            raise self.text_too_large(field_of(i), len(texts[i]))

    def check_expanded(self, field: str, template: str, place: str, texts: Sequence[str]) -> None:
        """Check a template with each text in its places, and all of them together, before they are made.

        Raises:
            TooLarge: one would be longer than the setting allows, or all together than a body may be.
        """
        places = template.count(place)
        bare = len(template) - places * len(place)
        longest = bare + places * max(map(len, texts))
        if longest > self.text_chars:
            raise self.text_too_large(field, longest)
        together, most = bare * len(texts) + places * sum(map(len, texts)), self._settings.max_body_bytes
        if together > most:
            message = f"with all its labels {together} characters, the limit is {most} (SEMBLANCE_MAX_BODY_BYTES)"
            raise TooLarge(message, field=field, limit=most)

    def check_time(self, scorer: Scorer, field: str, count: int, most: float, *, at_least: float = 1.0) -> None:
        """Check how long `count` new pairs take, before they are read.

        Args:
            scorer: of the model.
            field: of the request, that has the pairs.
            count: of them.
            most: expected seconds of work that would end in time (`Pool.possible`).
            at_least: how much of what the measured pairs took these take certainly.

        Raises:
            TooSlow: they take longer.
        """
        seconds = count * scorer.seconds_per_new_pair
        if at_least * seconds > most:
            raise TooSlow(seconds, most).of(field, count)

    def text_too_large(self, field: str, chars: int) -> TooLarge:
        """The error for a text of `chars` characters."""
        message = f"a text of {chars} characters, the limit is {self.text_chars} (SEMBLANCE_MAX_TEXT_CHARS)"
        return TooLarge(message, field=field, limit=self.text_chars)
