"""Texts and lists of a request and their limits, the same for our own routes and the dialects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from core.tokenizer import Encoded
from service.errors import RequestError, TooLarge, UnsupportedField, amount

# No settings: the time limit mostly refuses earlier, and who has more asks again.
MAX_DOCUMENTS = 1000  # of one request
MAX_CLAIMS = 100  # of one request, each read beside several passages
MAX_DOCUMENT_CHARS = 200_000  # of all documents of one request: some seventy pages
MAX_TOLD_TOKENS = 100_000  # of all texts of one request, each an object of 60 bytes of its answer
MAX_TEMPLATE_CHARS = 1000  # of labels: each label is put into it
MAX_EXPLAINED_TOKENS = 128  # of each sentence: the pair is scored again without each of them


@dataclass(frozen=True, slots=True)
class Truncation:
    """What to do with a text that is longer than the model's limit.

    Attributes:
        allowed: cut it; otherwise refuse it.
        keep_end: cut its beginning, which is not supported: such a text is refused.
        tokens: cut to this number of tokens, if that is less than the model's limit.
        chunks: how many parts of it to read; more than one is not supported: such a text is refused.
    """

    allowed: bool = True
    keep_end: bool = False
    tokens: int | None = None
    chunks: int = 1

    @classmethod
    def to(cls, *limits: int | None, keep_end: bool, allowed: bool = True, chunks: int | None = None) -> Self:
        """Cut to the least of these limits; None, 0 and -1 stand for the model's."""
        least = min((limit for limit in limits if limit is not None and limit > 0), default=None)
        return cls(allowed, keep_end, least, chunks or 1)

    def refusal(self, tokens: int, field: str) -> RequestError | None:
        """Why a text of more than `tokens` tokens, which stands in `field`, may not be cut; None if it may."""
        long = f"a text of more than {amount(tokens, 'tokens')}"
        if not self.allowed:
            return TooLarge(long, field=field, limit=tokens)
        if self.keep_end or self.chunks > 1:
            why = "only its end can be cut off" if self.keep_end else "only its first chunk would be read"
            return UnsupportedField(f"{long}, and {why}", field=field, limit=tokens)
        return None


_AS_THE_MODEL = Truncation()


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """Texts of a request, their fields (by position), and how they may be cut."""

    texts: Sequence[str]
    where: Callable[[int], str]
    cutting: Truncation = _AS_THE_MODEL

    @classmethod
    def of(cls, field: str, value: str | Sequence[str], cutting: Truncation = _AS_THE_MODEL) -> Self:
        """The text or texts of one field."""
        if isinstance(value, str):
            return cls([value], lambda _: field, cutting)
        return cls(value, lambda i: f"{field}.{i}", cutting)

    def __add__(self, others: Self) -> Self:
        """These, then the others, which are cut likewise."""
        count = len(self.texts)

        def where(i: int) -> str:
            return self.where(i) if i < count else others.where(i - count)

        return replace(self, texts=[*self.texts, *others.texts], where=where)

    @property
    def field(self) -> str:
        """The field that has them."""
        return self.where(0).partition(".0")[0]

    def cut(self, sentence: Encoded, prompt: int) -> Encoded:
        """A text as short as the client wants it, behind the model's prompt of so many tokens."""
        tokens = self.cutting.tokens
        return sentence if tokens is None else sentence.cut(prompt + tokens)


def check_fixed(field: str, count: int, limit: int, what: str) -> None:
    """Check a number against a limit that is no setting; `what` is counted.

    Raises:
        TooLarge: there are more.
    """
    if count > limit:
        raise TooLarge(f"{count} {what}, the limit is {limit}", field=field, limit=limit)
