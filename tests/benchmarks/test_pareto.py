from pathlib import Path
from typing import Any

import pytest

from benchmarks.pareto import OURS, PEER, SICK, STS, Point, draw, front, quality
from contract.manifest import Manifest

MODELS = Path(__file__).resolve().parent.parent.parent / "models"


def point(name: str, rate: float, value: float | None) -> Point:
    return Point(name, OURS, False, rate, {} if value is None else {SICK: value})


def names(*points: Point) -> list[str]:
    return [p.name for p in front(points, SICK)]


def test_the_front_is_what_nothing_beats_fastest_first() -> None:
    slow, middle, fast, beaten = (
        point("slow", 1, 0.9),
        point("middle", 10, 0.8),
        point("fast", 100, 0.5),
        point("beaten", 9, 0.79),
    )
    assert names(slow, beaten, fast, middle) == ["fast", "middle", "slow"]


def test_of_two_equally_fast_only_the_better_and_of_two_equally_good_only_the_faster() -> None:
    assert names(point("worse", 10, 0.7), point("better", 10, 0.8)) == ["better"]
    assert names(point("slower", 5, 0.8), point("faster", 10, 0.8)) == ["faster"]


def test_a_model_without_figures_is_not_on_the_front() -> None:
    assert names(point("unknown", 1000, None), point("known", 1, 0.1)) == ["known"]
    assert names() == []


def figure(corpus: str, split: str, value: float, metric: str = "pearson") -> dict[str, Any]:
    return {"corpus": corpus, "split": split, "metric": metric, "value": value}


def test_quality_is_read_from_figures() -> None:
    sets = [figure(f"STS {2012 + i % 4}", f"set {i}", 0.5 + i / 100) for i in range(19)]
    others = [
        figure("SICK", "test", 0.8),
        figure("SICK", "test", 0.7, "spearman"),
        figure("STS 2012", "mean of sets", 0.1),
        figure("transfer", "mean of sets", 0.2),
    ]
    assert quality([*sets, *others]) == {SICK: 0.8, STS: pytest.approx(0.59)}


def test_a_mean_of_some_sets_only_is_none() -> None:
    assert quality([figure("STS 2012", "MSRvid", 0.9)]) == {}


@pytest.mark.artifacts
def test_the_default_model_has_both_axes() -> None:
    figures = Manifest.load(MODELS / "avg-paraphrase").figures
    assert set(quality([f.model_dump() for f in figures])) == {SICK, STS}


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    ours = [Point(f"model-{i}", OURS, i % 2 == 0, 100.0 * (i + 1), {SICK: 0.8 + i / 1000}) for i in range(6)]
    peer = Point("peer", PEER, False, 50.0, {SICK: 0.84, STS: 0.77})
    draw([*ours, peer], tmp_path / "plot.png", "title")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_one_point_is_drawn(tmp_path: Path) -> None:
    draw([point("only", 10.0, 0.8)], tmp_path / "plot.png", "title")
    assert (tmp_path / "plot.png").is_file()
