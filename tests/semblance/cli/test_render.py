"""Every kind of answer as a table with styles, beside `rendered.txt`, whose tables a person has checked."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from pydantic import TypeAdapter
from rich.console import Console

from semblance.cli import render
from semblance.types import Embeddings

WIDTH = 90


def _checked() -> Iterator[tuple[str, list[Any], str]]:
    """A function of `render`, its arguments, and the table, from `=== name`, a line of JSON, and lines of text."""
    for part in Path(__file__).with_name("rendered.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        name, arguments, text = part.split("\n", 2)
        yield name, json.loads(arguments), text


def _shown(name: str, arguments: Sequence[Any]) -> str:
    """The lines; a part that has a style as <style|text>."""
    function = getattr(render, name)
    given = []
    for kind, argument in zip(get_type_hints(function).values(), arguments, strict=False):
        if kind is Embeddings:
            rows = np.array(argument.pop("embeddings"), np.float32)
            given.append(Embeddings(dim=rows.shape[1], embeddings=rows, **argument))
        else:
            given.append(TypeAdapter(kind).validate_python(argument))
    lines = []
    for line in Console(width=WIDTH, color_system="truecolor").render_lines(function(*given), pad=False):
        runs = [(style, "".join(each.text for each in run)) for style, run in groupby(line, lambda each: each.style)]
        lines.append("".join(f"<{style}|{text}>" if style else text for style, text in runs).rstrip())
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(("name", "arguments", "text"), [*_checked()])
def test_every_kind_of_answer_is_shown_as_it_was_checked(name: str, arguments: list[Any], text: str) -> None:
    assert _shown(name, arguments) == text
