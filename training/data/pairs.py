"""The value that every corpus reader yields: two texts with their human rating or label."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts with their gold annotations.

    ``target``: graded score on the corpus' own scale (SICK 1..5, STS 0..5), None where there is none.
    ``label``: ``entailment``, ``neutral`` or ``contradiction``; or ``1``/``0`` for paraphrases and correct answers.
    ``group``: id of the question, image or source that several pairs share.
    ``label_odds``: a teacher's probability of each entailment label, in their order; None without a teacher.
    """

    a: str
    b: str
    target: float | None = None
    label: str | None = None
    group: str = ""
    label_odds: tuple[float, ...] | None = None
