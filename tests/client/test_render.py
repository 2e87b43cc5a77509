"""Answers as people see them, to the character."""

from io import StringIO

import pytest
from rich.console import Console, RenderableType

from semblance import render
from semblance.types import (
    ClassifyResult,
    EntailmentResult,
    Entailments,
    Explanation,
    Labels,
    MatrixOfTokens,
    Probabilities,
    Ranking,
    RankResult,
    RankTruncated,
    Similarities,
    SimilarityResult,
    TokensOfSentence,
    VectorsOfTokens,
)


def text(renderable: RenderableType, width: int = 60, *, colour: bool = False) -> str:
    console = Console(
        file=StringIO(), width=width, force_terminal=colour, color_system="truecolor" if colour else None, _environ={}
    )
    console.print(renderable)
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_a_score() -> None:
    result = SimilarityResult(0.43096, 0.6412, (7, 5), (False, True), (0.0, 0.25), rating=2.1548, rating_scale=(0, 5))
    assert (
        text(render.similarity(Similarities("avg-paraphrase", [result])))
        == """\
score      0.4310  █████████···········
rating     2.15    of 0 to 5
raw score  0.6412
model              avg-paraphrase
a                  7 tokens
b                  5 tokens, cut at the model's limit, 25%
                   of the words unknown"""
    )


def test_a_ranking() -> None:
    answer = Ranking(
        "first", [RankResult(1, 0.75, 0.8), RankResult(0, 0.0, -0.1)], RankTruncated(query=False, candidates=[0])
    )
    assert (
        text(render.ranking(answer, ["a [bold]dog", "猫"]))
        == """\
rank  score                         candidate         number
1     0.7500  ███████████████·····  猫                2
2     0.0000  ····················  a [bold]dog (cut  1
                                    at the model's
                                    limit)
first"""
    )
    both = Ranking(
        "first", [RankResult(0, 1.0, 1.0, 2)], answer.truncated, "second", RankTruncated(query=False, candidates=[])
    )
    assert text(render.ranking(both, ["dog"])).splitlines()[-1] == "first, then second"


def test_labels() -> None:
    answer = Labels(
        "sentiment",
        [ClassifyResult("yes", {"no": 0.25, "yes": 0.75}, False), ClassifyResult("no", {"no": 1.0, "yes": 0.0}, True)],
    )
    assert (
        text(render.labels(answer, ["a [bold]dog", "猫"]))
        == """\
text                label  probability
a [bold]dog         yes    0.7500       ███████████████·····
                    no     0.2500       █████···············
猫 (cut at the      no     1.0000       ████████████████████
model's limit)
                    yes    0.0000       ····················
sentiment"""
    )


def test_an_entailment() -> None:
    result = EntailmentResult("neutral", Probabilities(0.25, 0.7, 0.05), (False, True))
    assert (
        text(render.entailment(Entailments("avg-sick", [result])))
        == """\
entailment     0.2500  █████···············
neutral        0.7000  ██████████████······
contradiction  0.0500  █···················
model                  avg-sick
hypothesis             cut at the model's limit"""
    )


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


@pytest.mark.parametrize(("width", "blocks"), [(31, 1), (30, 2), (20, 2), (10, 3)])
def test_a_matrix_too_wide_is_cut_between_columns(width: int, blocks: int) -> None:
    found = text(render.explanation(EXPLANATION, width), 80).partition("cosine: of rows\n")[2]
    assert found.count("guitars") == blocks
    assert [found.index(token) for token in EXPLANATION.b.tokens] == sorted(
        found.index(token) for token in EXPLANATION.b.tokens
    )
    for number in ("+0.50", "-0.25", "+1.00", "-1.00"):
        assert number in found


def test_colours_say_sign_and_size() -> None:
    found = text(render.explanation(EXPLANATION, 60), colour=True)
    assert "48;2;55;255;55m      +1.00" in found  # green, as strong as it gets
    assert "48;2;255;205;205m-0.25" in found  # red, faint
    assert "\x1b[31m██" in found
