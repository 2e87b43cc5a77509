"""What every family asks of the models: names resolved, limits checked, texts read, scores with real counts.

The same registry, scorers, limits and metrics as behind our own routes; a family only words the question
and the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from contract.scoring import Embeddings
from contract.tokenizer import Encoded
from service.errors import InvalidRequest, ModelError, TooLarge
from service.registry import Model
from service.scorer import Scorer
from service.state import Service

Route = Literal["/similarity", "/rank", "/entailment", "/embed"]  # of ours, whose default model answers
Limit = Literal["max_pairs", "max_candidates", "max_sentences"]


@dataclass(frozen=True, slots=True)
class Cutting:
    """What a client wants done with a text that is longer than the model reads.

    Attributes:
        allowed: cut it; otherwise refuse it.
        keep_end: cut its beginning, which nothing here can do: such a text is refused.
        tokens: cut to so many, where that is less than the model reads.
    """

    allowed: bool = True
    keep_end: bool = False
    tokens: int | None = None

    @classmethod
    def to(cls, *limits: int | None, keep_end: bool) -> Self:
        """Cut to the least of these; None, 0 and -1 leave it to the model."""
        return cls(keep_end=keep_end, tokens=min((limit for limit in limits if limit and limit > 0), default=None))


_AS_THE_MODEL = Cutting()


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a request, where in it they stand, and how they may be cut."""

    texts: Sequence[str]
    where: Callable[[int], str]
    cutting: Cutting

    @classmethod
    def of(cls, field: str, value: str | Sequence[str], cutting: Cutting = _AS_THE_MODEL) -> Self:
        """The text, or the texts, of one field."""
        if isinstance(value, str):
            return cls([value], lambda _: field, cutting)
        return cls(value, lambda i: f"{field}.{i}", cutting)

    def cut(self, sentence: Encoded, i: int) -> Encoded:
        """The i-th text as the client wants it read.

        Raises:
            TooLarge: it would have to be cut, and may not be.
            InvalidRequest: it would have to lose its beginning.
        """
        tokens = self.cutting.tokens
        if tokens is not None and len(sentence.ids) > tokens:
            sentence = sentence._replace(ids=sentence.ids[:tokens], truncated=True)
        if sentence.truncated and not self.cutting.allowed:
            limit = len(sentence.ids)
            raise TooLarge(f"a text of more than {limit} tokens", field=self.where(i), limit=limit)
        if sentence.truncated and self.cutting.keep_end:
            raise InvalidRequest(
                f"a text of more than {len(sentence.ids)} tokens, and only its end can be cut off",
                field=self.where(i),
                limit=len(sentence.ids),
            )
        return sentence


class Reading(NamedTuple):
    """Texts as a model reads them."""

    groups: list[list[Encoded]]
    tokens: int  # of all texts, as cut
    warnings: list[str]  # one for each text that was cut


class Comparison(NamedTuple):
    """Pairs, scored."""

    model: str
    name: str  # of the model, with its version where it has one
    scores: list[float]  # of each pair
    order: list[int]  # positions of the pairs, best first; of equal ones the earlier first
    tokens: int
    warnings: list[str]


class Embedded(NamedTuple):
    """Texts, embedded."""

    model: str
    name: str  # of the model, with its version where it has one
    embeddings: Embeddings
    tokens: int
    warnings: list[str]


class Scoring:
    """The models, as every family asks them."""

    def __init__(self, service: Service) -> None:
        """Stand before a service's models.

        Raises:
            ModelError: an alias that is a model's own name, or names no model.
        """
        self.service = service
        self.aliases = service.settings.model_aliases
        for alias, name in self.aliases.items():
            if alias in service.registry:
                raise ModelError(f"SEMBLANCE_MODEL_ALIASES: {alias!r} is a model's own name")
            if name not in service.registry:
                known = ", ".join(service.registry)
                raise ModelError(f"SEMBLANCE_MODEL_ALIASES: {alias!r} stands for {name!r}, which is not among {known}")

    def resolve(self, name: str | None, route: Route) -> str:
        """The id a client's name stands for; without a name, the default of the route of ours that is nearest."""
        if not name:
            return self.service.defaults[route]
        return self.aliases.get(name, name)

    def find(self, name: str) -> Model:
        """The model a client's name stands for.

        Raises:
            UnknownModel: there is none.
        """
        return self.service.registry.find(self.aliases.get(name, name), "similarity")

    def check_count(self, field: str, count: int, limit: Limit) -> None:
        """Hold a list's length against its limit.

        Raises:
            TooLarge: it is longer.
        """
        most: int = getattr(self.service.settings, limit)
        if count > most:
            message = f"{count} {field}, the limit is {most} (SEMBLANCE_{limit.upper()})"
            raise TooLarge(message, field=field, limit=most)

    async def compare(self, route: Route, model: str | None, a: Texts, b: Texts, *, raw: bool = False) -> Comparison:
        """Score pairs.

        Args:
            route: whose default model answers when none is named.
            model: the name that the client gave.
            a: as many texts as `b`, or one, which is then read once and compared with each.
            b: at least one text.
            raw: the model's own numbers, not the calibrated ones in 0..1.

        Raises:
            RequestError: no such model, one without the task, a text that does not fit, and what scorers raise.
        """
        scorer = self.service.registry.pick(self.resolve(model, route), "similarity")
        reading = await self._read(scorer, a, b)
        left, right = reading.groups
        if len(left) == 1:
            left = left * len(right)
        answer = await scorer.similarity(left, right)
        order: list[int] = np.argsort(-np.array(answer.raw), kind="stable").tolist()
        scores = answer.raw if raw else answer.score
        return Comparison(scorer.id, scorer.name, scores, order, reading.tokens, reading.warnings)

    async def entail(self, model: str | None, premises: Texts, hypotheses: Texts) -> tuple[str, list[dict[str, float]]]:
        """Label pairs: the model that answered, with its version, and for each pair its probabilities.

        Raises:
            RequestError: as `compare`.
        """
        scorer = self.service.registry.pick(self.resolve(model, "/entailment"), "entailment")
        reading = await self._read(scorer, premises, hypotheses)
        answers, _ = await scorer.entailment(*reading.groups)
        return scorer.name, answers

    async def embed(self, model: str | None, texts: Texts, *, unit: bool, dimensions: int | None) -> Embedded:
        """Embed texts.

        Args:
            model: the name that the client gave.
            texts: at least one.
            unit: divide each embedding by its length.
            dimensions: how many the client wants.

        Raises:
            InvalidRequest: the model has another number of dimensions.
            RequestError: as `compare`.
        """
        scorer = self.service.registry.pick_encoder(self.resolve(model, "/embed"))
        dim = scorer.manifest.dim
        if dimensions not in (None, dim):
            raise InvalidRequest(
                f"model {scorer.id} has {dim} dimensions, and no others", field="dimensions", limit=dim
            )
        reading = await self._read(scorer, texts)
        embeddings, _ = await scorer.embed(reading.groups[0])
        if unit:
            lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
            lengths[lengths == 0] = 1  # nothing but zeros stays that
            embeddings = np.asarray(embeddings / lengths, np.float32)
        return Embedded(scorer.id, scorer.name, embeddings, reading.tokens, reading.warnings)

    async def _read(self, scorer: Scorer, *groups: Texts) -> Reading:
        most = self.service.settings.max_text_chars
        places = [(group, i) for group in groups for i in range(len(group.texts))]
        for group, i in places:
            if len(group.texts[i]) > most:
                raise TooLarge(
                    f"a text of {len(group.texts[i])} characters, the limit is {most} (SEMBLANCE_MAX_TEXT_CHARS)",
                    field=group.where(i),
                    limit=most,
                )

        def where(place: int) -> str:
            group, i = places[place]
            return group.where(i)

        found = iter(await scorer.read([group.texts[i] for group, i in places], where))
        read = [[group.cut(next(found), i) for i in range(len(group.texts))] for group in groups]
        sentences = [sentence for group in read for sentence in group]
        warnings = [
            f"{where(place)}: only its first {len(sentence.ids)} tokens were read"
            for place, sentence in enumerate(sentences)
            if sentence.truncated
        ]
        return Reading(read, sum(len(sentence.ids) for sentence in sentences), warnings)
