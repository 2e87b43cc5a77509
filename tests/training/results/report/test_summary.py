"""Models that were fitted on a transfer set are marked."""

from datetime import date

import pytest
from pydantic import JsonValue

from contract.manifest import Figure
from training.publishing.figures import FigureFile
from training.results.report.summary import fitted_on, summary


def measured(recipe: str, value: float, settings: dict[str, JsonValue] | None) -> FigureFile:
    figure = Figure(task="similarity", corpus="transfer", split="mean of sets", metric="pearson", value=value, rows=20)
    return FigureFile(
        recipe=recipe,
        seed=1,
        storage="int8",
        command="c",
        measured=date(2026, 1, 1),
        figures=(figure,),
        settings=settings,
    )


FREE = measured("free", 0.76, {"data": {"kind": "X"}, "publication": None})


@pytest.mark.parametrize(
    ("settings", "sets"),
    [
        (None, ()),
        ({"data": {"corpora": ["msrp", "snli-train"]}, "publication": {"blend": False}}, ()),
        ({"data": {"corpora": ["sick"]}, "publication": None}, ("SICK",)),
        ({"data": {"corpora": ["msrp-whole"]}, "publication": {"blend": True}}, ("STS 2012 MSRpar", "STS 2012-2017")),
    ],
)
def test_what_a_model_learnt_is_read_from_its_settings(
    settings: dict[str, JsonValue] | None, sets: tuple[str, ...]
) -> None:
    file = measured("taught", 0.8, settings)
    assert tuple(name.partition(" (")[0] for name in fitted_on(file)) == sets
    free, taught = summary([FREE, file]).splitlines()[2:4]
    assert free.endswith("| 76.0 |")
    assert taught.endswith("| 80.0 \\* |" if sets else "| 80.0 |")
    assert ("`taught` was fitted on" in summary([FREE, file])) == bool(sets)
    assert "`free` was" not in summary([FREE, file])
