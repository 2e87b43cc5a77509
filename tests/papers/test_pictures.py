"""The pictures of networks are what the modules compute: steps, shapes, weights and what feeds what."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from papers.pictures.curves import CURVES, curve_svg, draw_curve
from papers.pictures.networks import PICTURES
from papers.pictures.trace import Step, traced
from training.recipes import RECIPES

PAGES = Path(__file__).parents[2] / "docs" / "papers"


@pytest.mark.parametrize("name", PICTURES)
def test_a_committed_picture_is_what_its_module_draws(name: str) -> None:
    assert (PAGES / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name].draw(), "python -m papers draw"
    assert f"]({name}.svg)" in (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", CURVES)
def test_a_committed_learning_curve_is_that_of_the_repeated_run(page: str) -> None:
    drawn = draw_curve(page, PAGES.parents[1] / "papers" / "repeats.jsonl")
    assert (PAGES / f"{page}-learning.svg").read_text(encoding="utf-8") == drawn, "python -m papers draw"
    assert f"]({page}-learning.svg)" in (PAGES / f"{page}.md").read_text(encoding="utf-8")


def test_a_learning_curve_rises_where_the_score_does_and_rings_the_epoch_that_was_kept() -> None:
    drawn = curve_svg("a run", "r", (0.55, 0.7, 0.6), kept=1)
    (line,) = re.findall(r'<polyline points="([^"]*)"', drawn)
    points = [tuple(map(float, point.split(","))) for point in line.split()]
    (x0, low), (x1, high), (x2, middle) = points
    assert x0 < x1 < x2
    assert high < middle < low  # y counts from the top
    assert (low - middle) / (low - high) == pytest.approx(1 / 3, abs=0.01)
    assert f'<circle cx="{x1:.1f}" cy="{high:.1f}" r="6"' in drawn
    assert "<polyline" in curve_svg("a run", "r", (0.5,), kept=0)
    far = curve_svg("a run", "r", (-0.2, 0.6, 0.7), kept=2)
    assert "the untrained model has -0.20" in far
    assert len(re.findall(r"[\d.]+,[\d.]+", far.split("<polyline")[1].split("/>")[0])) == 2


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "cross_encoder"])
def test_every_weight_of_a_network_is_in_one_of_the_boxes(name: str) -> None:
    network = PICTURES[name].network()
    drawn = sum(step.weights for step in network.steps)
    assert drawn == sum(weight.numel() for weight in network.module.parameters())


def test_arrows_follow_the_values_that_are_read() -> None:
    boxes = PICTURES["pwim"].trace().boxes
    reads = {(box.title, boxes[source].title) for box in boxes for source in box.sources}
    assert {source for title, source in reads if title == "convolutions"} == {"cube of word pairs", "similarity focus"}
    assert {source for title, source in reads if title == "cube of word pairs"} == {"BiLSTM"}
    assert [box.shape for box in boxes if box.title == "cube of word pairs"] == [(13, 6, 8)]


def test_another_network_is_another_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = RECIPES["mgim-sick"]
    apart = replace(recipe.architecture, conditional=False)
    monkeypatch.setitem(RECIPES, "mgim-sick", replace(recipe, architecture=apart))
    boxes = PICTURES["mgim"].trace().boxes
    second = next(box for box in boxes if box.title == "BiLSTM of b")
    assert {boxes[source].title for source in second.sources} == {"word vectors"}  # no longer the memory of a


def test_a_step_that_never_runs_is_a_fault() -> None:
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="these steps never ran: a layer"):
        traced(lambda: None, [Step(layer, "forward", "a layer", "")], {"a": torch.zeros(1, 2)})
    assert "forward" not in vars(layer)
