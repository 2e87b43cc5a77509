"""Search spaces of recipes: the settings that `python -m training search` varies, and their ranges.

Ranges include what the papers tuned over (Wieting et al. 2016, footnote 9; Wieting & Gimpel 2017, sections 4.1 and 4.2)
and, for our own settings, about a factor of ten around the recipe's value.
"""

from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any

from training.recipes import find
from training.recipes.recipe import Recipe


class SearchError(Exception):
    """The options do not fit the search."""


@dataclass(frozen=True)
class Range:
    """A setting drawn between two values; `setting` is its path in the recipe, as `optimiser.learning_rate`."""

    setting: str
    low: float
    high: float
    log: bool = False

    def holds(self, value: object) -> bool:
        """Whether a value is within the range."""
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True)
class Choice:
    """A setting that takes one of some values."""

    setting: str
    values: tuple[float, ...]

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return value in self.values


@dataclass(frozen=True)
class SearchSpace:
    """Settings to vary of a recipe, and the default length of a trial."""

    recipe: str
    settings: tuple[Range | Choice, ...]
    epochs: int
    pairs: int | None = None  # training items of a trial; None: all

    def cells(self) -> list[dict[str, float]]:
        """Every combination of the values, where all settings are choices; otherwise none."""
        choices = [each for each in self.settings if isinstance(each, Choice)]
        if len(choices) < len(self.settings):
            return []
        names = [each.setting for each in choices]
        return [dict(zip(names, values, strict=True)) for values in product(*(each.values for each in choices))]


def setting_of(recipe: Recipe, path: str) -> Any:
    """The value of a setting.

    Raises:
        KeyError: the recipe has no such setting; names the existing ones.
    """
    part: Any = recipe
    for name in path.split("."):
        part = getattr(part, _known(part, name, path))
    return part


def with_setting(part: Any, path: str, value: object) -> Any:
    """The recipe with another value of a setting.

    Raises:
        KeyError: the recipe has no such setting; names those there are.
    """
    name, _, rest = path.partition(".")
    _known(part, name, path)
    return replace(part, **{name: with_setting(getattr(part, name), rest, value) if rest else value})


def _known(part: object, name: str, path: str) -> str:
    known = [field.name for field in fields(part)] if is_dataclass(part) else []
    if name not in known:
        raise KeyError(f"no setting {path!r}: {type(part).__name__} has {', '.join(known) or 'no settings'}")
    return name


_RATE = Range("optimiser.learning_rate", 2e-4, 5e-3, log=True)
_WORD_RATE = Range("optimiser.embedding_learning_rate", 1e-4, 5e-3, log=True)
_MARGIN = Choice("objective.margin", (0.4, 0.6, 0.8))
_SCRAMBLE = Choice("objective.scramble", (0.0, 0.25, 0.5, 0.75))
_WORDS = Choice("objective.regulariser.words", (0.0, 0.5e-8, 0.5e-7, 0.5e-6, 0.5e-5, 1e-5))
_DROPOUT = Choice("architecture.dropout", (0.0, 0.2, 0.4, 0.6))
_WORD_DROPOUT = Choice("architecture.word_dropout", (0.0, 0.2, 0.4, 0.6))
_SCALE = Range("row_scale", 1.0, 20.0, log=True)
_MARGIN_SETTINGS = (_RATE, _WORD_RATE, _MARGIN, _WORDS)

SPACES: dict[str, SearchSpace] = {
    space.recipe: space
    for space in (
        SearchSpace("gran-avg", (_WORD_RATE, _MARGIN, _WORDS), epochs=3, pairs=60_000),
        SearchSpace("pp-avg", (_WORD_RATE, _MARGIN, _WORDS), epochs=3, pairs=60_000),
        SearchSpace(
            "gran-lstm-regularised", (*_MARGIN_SETTINGS, _SCRAMBLE, _WORD_DROPOUT, _SCALE), epochs=2, pairs=60_000
        ),
        SearchSpace(
            "gran-lstm-avg-regularised", (*_MARGIN_SETTINGS, _SCRAMBLE, _DROPOUT, _SCALE), epochs=2, pairs=60_000
        ),
        SearchSpace("gran-1", (*_MARGIN_SETTINGS, _SCRAMBLE, _DROPOUT, _SCALE), epochs=2, pairs=60_000),
        SearchSpace("avg-paraphrase", (_WORD_RATE,), epochs=4),
        SearchSpace(
            "avg-near",
            (
                _WORD_RATE,
                Choice("objective.neighbours", (3, 12, 30, 100)),
                Range("objective.neighbour_weight", 0.3, 30.0, log=True),
            ),
            epochs=2,
        ),
        SearchSpace("gran-paraphrase", (_RATE, _WORD_RATE, _DROPOUT, _SCALE), epochs=2),
        SearchSpace(
            "avg-sick",
            (_RATE, Range("optimiser.embedding_learning_rate", 1e-4, 2e-2, log=True), _SCALE),
            epochs=10,
        ),
        SearchSpace(
            "gran-sts",
            (
                _RATE,
                _WORD_RATE,
                _SCRAMBLE,
                Choice("architecture.dropout", (0.0, 0.1, 0.2)),
                Range("row_scale", 4.0, 40.0, log=True),
            ),
            epochs=5,
        ),
        SearchSpace("malstm-teacher", (_RATE, _WORD_RATE, Range("row_scale", 0.5, 8.0, log=True)), epochs=3),
        SearchSpace("malstm-sick", (Range("optimiser.learning_rate", 1e-4, 5e-3, log=True),), epochs=12),
        SearchSpace(
            "mgim-sick-as-printed",  # the paper's grid
            (
                Choice("architecture.hidden", (50, 80, 100, 150, 200)),
                Choice("architecture.dropout", (0.1, 0.2, 0.3, 0.4)),
            ),
            epochs=8,
        ),
        *(
            SearchSpace(
                f"pp-sick-lstm-{task}",
                (
                    _RATE,
                    _WORD_RATE,
                    Choice("architecture.forget_bias", (0.0, 1.0, 2.0)),
                    Choice("architecture.scale", (1.0, 4.0, 10.0)),
                ),
                epochs=5,
            )
            for task in ("similarity", "entailment")
        ),
        SearchSpace("pwim-sick-glove", (Range("architecture.word_scale", 0.1, 2.0, log=True),), epochs=6),
    )
}


def find_space(name: str) -> tuple[Recipe, SearchSpace]:
    """A recipe and its space.

    Raises:
        KeyError: no such recipe, or one without a space; with the names there are.
    """
    recipe = find(name)
    if name not in SPACES:
        raise KeyError(f"recipe {name!r} has no search space; those that have: {', '.join(sorted(SPACES))}")
    return recipe, SPACES[name]
