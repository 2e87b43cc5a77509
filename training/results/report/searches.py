"""Results of hyper-parameter searches, from analyses/searches/*.json."""

from collections import Counter
from pathlib import Path

from training.results.report.markdown import number, table
from training.runs.search import SearchRecord, TriedSettings


def searches(folder: Path) -> str:
    """One line a search: how many trials, and the development scores of the recipe's settings and of the best."""
    records = [SearchRecord.load(path) for path in sorted(folder.glob("*.json"))]
    if not records:
        return "None yet: `python -m training search` makes them."
    rows = []
    for record in records:
        present = [trial for trial in record.trials if trial.settings == record.present]
        best = None if record.best is None else record.trial(record.best)
        states = Counter(trial.state for trial in record.trials)
        rows.append(
            (
                f"[{record.recipe}](searches/{record.recipe}.json)",
                ", ".join(f"{count} {state}" for state, count in states.items()),
                number(present[0].development if present else None, 4),
                number(best.development if best else None, 4),
                _settings(best) if best else "",
                f"`{record.command}`, {record.written}",
            )
        )
    head = ("recipe", "trials", "its own settings", "best", "settings of the best", "command")
    return "Development scores of short trials; no test set was read.\n\n" + table(head, rows)


def _settings(trial: TriedSettings) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in trial.settings.items())
