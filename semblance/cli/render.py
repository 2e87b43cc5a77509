"""Answers as tables for a terminal, in colour where it has colours.

Input texts are never interpreted as markup, and `Printable` leaves out what would steer the terminal.
"""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from semblance.types import (
    ClaimResult,
    Embeddings,
    Entailments,
    Explanation,
    Labels,
    Models,
    Ranking,
    Similarities,
    TokensOfSentence,
    VectorsOfTokens,
)

_CUT = "cut at the model's limit"
BAR = 20  # characters of a whole bar
WIDEST = 26  # column of tokens
HALF_BAR = 8  # of a bar that may extend either way, on each side
_LABELS = {"entailed": "green", "contradicted": "red", "not_stated": "dim"}
_WORTH = {"chance": "!", "unmeasured": "?"}  # of a task on text unlike its corpora, after its name
FIRST_NUMBERS = 4  # of an embedding that are shown
_STEERING = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {*b"\n\t"})


def printable(text: str) -> str:
    """The text without control characters, such as those that begin a terminal's commands."""
    return text.translate(_STEERING)


class Printable:
    """What is rendered, without control characters of its texts."""

    def __init__(self, rendered: RenderableType) -> None:
        self._rendered = rendered

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._rendered, options):
            yield Segment(printable(text), style, control)


def similarity(answer: Similarities) -> RenderableType:
    """One pair's score, and notes on tokens, truncation and unknown words."""
    (result,) = answer.results
    rows = _pairs()
    rows.add_row("score", f"{result.score:.4f}", bar(result.score))
    if result.rating is not None and result.rating_scale is not None:
        low, high = result.rating_scale
        rows.add_row("rating", f"{result.rating:.2f}", f"of {low:g} to {high:g}")
    rows.add_row("raw score", f"{result.raw_score:.4f}")
    rows.add_row("model", "", answer.model)
    for name, tokens, truncated, unknown in zip("ab", result.tokens, result.truncated, result.unknown, strict=True):
        notes = [
            f"{tokens} tokens",
            *([_CUT] if truncated else []),
            *([f"{unknown:.0%} of the words unknown"] if unknown else []),
        ]
        rows.add_row(name, "", Text(", ".join(notes), style="yellow" if len(notes) > 1 else ""))
    return rows


def ranking(answer: Ranking, texts: Sequence[str]) -> RenderableType:
    """Candidates, best first, each with its number in the input; rank and number count from 1."""
    table = Table(box=None, pad_edge=False)
    for heading in ("rank", "score", "", "candidate", "number"):
        table.add_column(heading, no_wrap=heading != "candidate")
    cut = {*answer.truncated.candidates, *(answer.rerank_truncated.candidates if answer.rerank_truncated else [])}
    for place, result in enumerate(answer.results, 1):
        text = _given(texts[result.index], result.index in cut)
        table.add_row(f"{place}", f"{result.score:.4f}", bar(result.score), text, f"{result.index + 1}")
    models = answer.model if answer.rerank_model is None else f"{answer.model}, then {answer.rerank_model}"
    sure = "" if answer.confidence is None else f"; the first is right with a probability of {answer.confidence:.2f}"
    said = Text(f"{models}{sure}", style="dim")
    verdict = () if answer.answered else (Text("no answer", style="bold"),)
    return Group(*verdict, *((table,) if answer.results else ()), said)


def entailment(answer: Entailments) -> RenderableType:
    """The probability of each label, the chosen one in bold."""
    (result,) = answer.results
    rows = _pairs()
    for label in ("entailment", "neutral", "contradiction", "not_entailment"):
        probability: float | None = getattr(result.probabilities, label)
        if probability is None:  # the model does not have that label
            continue
        rows.add_row(Text(label, style="bold" if label == result.label else ""), f"{probability:.4f}", bar(probability))
    rows.add_row("model", "", answer.model)
    for name, truncated in zip(("premise", "hypothesis"), result.truncated, strict=True):
        if truncated:
            rows.add_row(name, "", Text(_CUT, style="yellow"))
    return rows


def claims(answers: Sequence[tuple[str, ClaimResult]], documents: Sequence[str]) -> RenderableType:
    """Each claim with what the documents say of it, and where."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("claim", "label", "sure", "evidence"):
        table.add_column(heading, no_wrap=heading in ("label", "sure"))
    for claim, result in answers:
        said = Text()
        if (found := result.evidence) is not None:
            where = " > ".join(
                [*(documents[found.document : found.document + 1] if len(documents) > 1 else ()), *found.headings]
            )
            said = Text.assemble((f"{where}: " if where else "", "dim"), found.text)
            if found.differences:
                said.append(f" ({'; '.join(found.differences)})", style="yellow")
        label = result.label.replace("_", " ")
        table.add_row(Text(claim), Text(label, style=_LABELS[result.label]), f"{result.confidence:.2f}", said)
    return table


def labels(answer: Labels, texts: Sequence[str]) -> RenderableType:
    """The labels of each text with their probabilities, the most probable first."""
    table = Table(box=None, pad_edge=False)
    for heading in ("text", "label", "probability", ""):
        table.add_column(heading, no_wrap=heading != "text")
    for given, result in zip(texts, answer.results, strict=True):
        text = _given(given, result.truncated)
        best_first = sorted(result.probabilities.items(), key=lambda item: -item[1])
        for place, (label, probability) in enumerate(best_first):
            bold = "" if place else "bold"
            table.add_row("" if place else text, Text(label, style=bold), f"{probability:.4f}", bar(probability))
    return Group(table, Text(answer.model, style="dim"))


def embeddings(answer: Embeddings, texts: Sequence[str]) -> RenderableType:
    """The norm and the first numbers of each embedding."""
    table = Table("sentence", "length", "embedding", box=None, pad_edge=False)
    for given, row, truncated in zip(texts, answer.embeddings, answer.truncated, strict=True):
        text = _given(given, truncated)
        numbers = " ".join(f"{number:+.4f}" for number in row[:FIRST_NUMBERS])
        more = " ..." if answer.dim > FIRST_NUMBERS else ""
        table.add_row(text, f"{float((row.astype(float) ** 2).sum()) ** 0.5:.4f}", Text(numbers + more, no_wrap=True))
    return Group(table, Text(f"{answer.model}: {answer.dim} numbers each, all of them with --json", style="dim"))


def explanation(answer: Explanation) -> RenderableType:
    """Each token's numbers; the matrices of pairs of tokens are for --json and the page at `/`."""
    rated = f", rating {answer.rating:.2f}" if answer.rating is not None else ""
    parts: list[RenderableType] = [
        Text(f"{answer.model}: score {answer.score:.4f}, raw score {answer.raw_score:.4f}{rated}", style="bold")
    ]
    if answer.vectors:
        wide = min(max(map(cell_len, [*answer.a.tokens, *answer.b.tokens]), default=0), WIDEST)
        parts += _tokens("a", answer.a, answer.vectors, [vector.a for vector in answer.vectors], wide)
        parts += _tokens("b", answer.b, answer.vectors, [vector.b for vector in answer.vectors], wide)
        parts += [Text(f"{vector.name}: {vector.description}", style="dim") for vector in answer.vectors]
    parts += [Text(f"{matrix.name}: {matrix.description}: --json", style="dim") for matrix in answer.matrices]
    return Group(*parts)


def models(answer: Models) -> RenderableType:
    """The served models, and the limits of a request."""
    table = Table("model", "does", "answers by default", "dim", "tokens", "explains by", box=None, pad_edge=False)
    for model in answer.models:
        # What a task is worth on text that is not like its corpus.
        worth = {each.task: each.elsewhere for each in model.domain or ()}
        names = dict.fromkeys([*model.explanations.matrices, *model.explanations.vectors])
        table.add_row(
            Text(model.id, style="" if model.main is False else "bold"),
            ", ".join(f"{task}{_WORTH.get(worth.get(task, ''), '')}" for task in model.tasks),
            " ".join(model.default_for),
            "" if model.dim is None else str(model.dim),
            str(model.max_tokens),
            ", ".join(names),
        )
    limits = answer.limits
    return Group(
        table,
        Text("on text unlike its corpora: ! at chance, ? not measured, others good", style="dim"),
        Text(
            f"a request: {limits.max_pairs} pairs, {limits.max_candidates} candidates, "
            f"{limits.max_sentences} sentences, {limits.max_text_chars} characters a text, "
            f"{limits.max_body_bytes} bytes",
            style="dim",
        ),
    )


def _pairs() -> Table:
    return Table("", "", "", box=None, show_header=False, pad_edge=False)


def _given(text: str, cut: bool) -> Text:
    """A text of the user's, and whether it was cut."""
    return Text(text).append(f" ({_CUT})" if cut else "", style="yellow")


def bar(share: float, size: int = BAR) -> Text:
    """A bar for a share of 0 to 1, `size` characters wide."""
    full = round(max(0.0, min(1.0, share)) * size)
    return Text("█" * full, style="green").append("·" * (size - full), style="dim")


def _tokens(
    name: str,
    sentence: TokensOfSentence,
    vectors: Sequence[VectorsOfTokens],
    numbers: Sequence[Sequence[float | None]],
    wide: int,
) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(name, min_width=wide)
    for vector in vectors:
        table.add_column(vector.name, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True, overflow="crop")
    # One scale for a and b, so that their bars can be compared.
    maxima = [max((abs(n) for n in [*vector.a, *vector.b] if n is not None), default=0.0) for vector in vectors]
    for i, token in enumerate(sentence.tokens):
        cells: list[RenderableType] = [Text(token)]
        for column, largest in zip(numbers, maxima, strict=True):
            number = column[i]
            cells += (
                ["-", ""] if number is None else [f"{number:+z.4f}", _two_way(number / largest if largest else 0.0)]
            )
        table.add_row(*cells)
    yield table
    if sentence.truncated:
        yield Text(f"{name} was cut at the model's limit", style="yellow")


def _two_way(share: float) -> Text:
    """A bar that extends left of the middle for a negative share, right for a positive one."""
    size = round(min(1.0, abs(share)) * HALF_BAR)
    if share < 0:
        return Text(" " * (HALF_BAR - size)).append("█" * size, style="red").append("│" + " " * HALF_BAR)
    return Text(" " * HALF_BAR + "│").append("█" * size, style="green").append(" " * (HALF_BAR - size))
