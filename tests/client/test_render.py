"""Answers as people see them, to the character."""

from io import StringIO

from rich.console import Console, RenderableType

from semblance import render
from semblance.types import (
    Explanation,
    MatrixOfTokens,
    TokensOfSentence,
    VectorsOfTokens,
)


def text(renderable: RenderableType, width: int = 60) -> str:
    console = Console(file=StringIO(), width=width, color_system=None, _environ={})
    console.print(renderable)
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


EXPLANATION = Explanation(
    model="m",
    score=0.5,
    raw_score=0.25,
    a=TokensOfSentence(["guitars", "[b]"], truncated=False),
    b=TokensOfSentence(["some", "猫", "instruments"], truncated=True),
    matrices=[MatrixOfTokens("cosine", "of rows", [[0.5, -0.25, 1.0], [-0.001, 0.0, -1.0]], (-1.0, 1.0))],
    vectors=[
        VectorsOfTokens("shares", "sum to it", [0.2, 0.05], [0.1, -0.05, 0.2]),
        VectorsOfTokens("deletion", "without it", [0.0, None], [0.0, 0.0, 0.0]),
    ],
    rating=2.5,
)


def test_an_explanation() -> None:
    assert (
        text(render.explanation(EXPLANATION, 64), 64)
        == """\
m: score 0.5000, raw score 0.2500, rating 2.50
a            shares                   deletion
guitars     +0.2000         │████████  +0.0000         │
[b]         +0.0500         │██              -
b            shares                   deletion
some        +0.1000         │████      +0.0000         │
猫          -0.0500       ██│          +0.0000         │
instruments +0.2000         │████████  +0.0000         │
b was cut at the model's limit
shares: sum to it
deletion: without it

cosine: of rows
         some    猫 instruments
guitars +0.50 -0.25       +1.00
[b]     +0.00 +0.00       -1.00"""
    )
