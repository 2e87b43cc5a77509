"""The one value every corpus reader yields: two texts and what people said about them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, with whatever gold the corpus has for them.

    ``target``: graded score on the corpus' own scale (SICK 1..5, STS 0..5), None where there is none.
    ``label``: ``entailment``, ``neutral`` or ``contradiction``; or ``1``/``0`` for paraphrases and correct answers.
    ``group``: what ties pairs together: a question id, an image id, a source.
    ``label_odds``: where a teacher labelled it, its probability of each label, in the order of the entailment labels.
    """

    a: str
    b: str
    target: float | None = None
    label: str | None = None
    group: str = ""
    label_odds: tuple[float, ...] | None = None
