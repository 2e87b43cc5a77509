"""The report is generated from measured figures."""

from datetime import date
from pathlib import Path

from contract.manifest import Figure
from training.publishing.figures import ApartFile, FigureFile
from training.results.page import write_report


def sick_figures(pearson: float) -> FigureFile:
    """Figures of a supervised run."""
    values = {"pearson": pearson, "spearman": 0.8, "mse": 0.25}
    figures = [
        Figure(task="similarity", corpus="SICK", split="test", metric=m, value=v, rows=4927) for m, v in values.items()
    ]
    accuracy = Figure(task="entailment", corpus="SICK", split="test", metric="accuracy", value=0.85, rows=4927)
    return FigureFile(
        recipe="avg-sick",
        seed=1,
        storage="int8",
        command="python -m training publish avg-sick --seed 1",
        measured=date(2026, 1, 2),
        figures=(*figures, accuracy),
    )


def test_every_measured_figure_records_the_settings_of_its_recipe() -> None:
    files = sorted((Path(__file__).parents[3] / "analyses/figures").glob("*.json"))
    assert len(files) > 180
    assert [path.name for path in files if not FigureFile.load(path).settings] == []


def test_the_report_opens_with_every_model_once_mean_and_spread_over_its_seeds(tmp_path: Path) -> None:
    for seed, pearson in ((1, 0.86), (2, 0.88)):
        sick_figures(pearson).model_copy(update={"seed": seed}).save(tmp_path)
        sick_figures(0.5).model_copy(update={"seed": seed, "storage": "float32"}).save(tmp_path)
    sick_figures(0.7).model_copy(update={"recipe": "other"}).save(tmp_path)
    write_report(tmp_path, tmp_path / "RESULTS.md", tmp_path / "tables")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- avg-sick seed 1 int8: `python -m training publish avg-sick --seed 1`, 2026-01-02" in text.splitlines()
    assert [line for line in text.splitlines() if line.startswith(("| recipe |", "| `"))][:3] == [
        "| recipe | words | seeds | SICK r | SICK entailment |",
        "| `avg-sick` | int8 | 1, 2 | 87.0 ± 1.4 | 85.0 ± 0.0 |",
        "| `other` | int8 | 1 | 70.0 | 85.0 |",
    ]


def test_tweets_and_phrases_stand_apart_with_the_papers_figures(tmp_path: Path) -> None:
    sick_figures(0.8).save(tmp_path)
    for model, r in (("dan", 0.4), ("minilm", 0.5)):
        figures = [Figure(task="similarity", corpus="PIT2015", split="test", metric="pearson", value=r, rows=838)]
        if model == "dan":
            phrases = {"corpus": "PPDB phrases", "split": "rated", "metric": "spearman"}
            figures.append(Figure(task="similarity", value=0.55, rows=26_456, **phrases))
        record = ApartFile(
            model=model, fingerprint="0" * 64, command="c", measured=date(2026, 1, 2), figures=tuple(figures)
        )
        record.save(tmp_path / "apart")
    write_report(tmp_path, tmp_path / "RESULTS.md", tmp_path / "tables")
    text = (tmp_path / "RESULTS.md").read_text()
    first, second = (line for line in text.splitlines() if line.startswith(("| `dan`", "| `minilm`")))
    assert first == "| `minilm` | 50.0 |  |  |  | 2026-01-02 |"
    assert second == "| `dan` | 40.0 | 53.7 (DAN) | 55.0 | 60.9 | 2026-01-02 |"
