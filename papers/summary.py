"""First section of the report: every model once, means and standard deviations over its seeds."""

from collections.abc import Sequence
from statistics import mean, stdev

from training.markdown import table
from training.publish.figures import RunFigures

# Name of the column; corpus, split and metric as the measured figures name them; scale and digits of what is printed.
_COLUMNS: tuple[tuple[str, tuple[str, str, str], float, int], ...] = (
    ("mean of 20 transfer sets", ("transfer", "mean of sets", "pearson"), 100, 1),
    ("SICK r", ("SICK", "test", "pearson"), 100, 1),
    ("SICK entailment", ("SICK", "test", "accuracy"), 100, 1),
    ("STS split r", ("STS 2012-2015 split", "test", "pearson"), 100, 1),
    ("SST", ("SST", "test", "accuracy"), 100, 1),
    ("MSRvid r", ("STS 2012", "MSRvid", "pearson"), 100, 1),
    ("STS 2014 r", ("STS 2014", "weighted mean", "pearson"), 100, 1),
    ("WikiQA MAP", ("WikiQA", "test", "map"), 100, 1),
    ("TrecQA MAP", ("TrecQA", "raw", "map"), 100, 1),
    ("MSRP accuracy", ("MSRP", "test", "accuracy"), 100, 1),
    ("MSRP F1", ("MSRP", "test", "f1"), 100, 1),
)
# What makes a transfer set one that a model was fitted on, by its recorded settings.
_FITTED_ON = {
    "sick": "SICK (its training part)",
    "msrp-whole": "STS 2012 MSRpar (pairs of MSRP)",
    "blend": "STS 2012-2017 (STS-B development, on which its blend was chosen)",
}


def fitted_on(file: RunFigures) -> tuple[str, ...]:
    """Which of the 20 transfer sets a model learnt labelled pairs of or was blended on, by its recorded settings."""
    data, publication = ((file.settings or {}).get(part) for part in ("data", "publication"))
    corpora = data.get("corpora") if isinstance(data, dict) else None
    known = list(corpora) if isinstance(corpora, list) else []
    if isinstance(publication, dict) and publication.get("blend"):
        known.append("blend")
    return tuple(name for corpus, name in _FITTED_ON.items() if corpus in known)


def summary(files: Sequence[RunFigures]) -> str:
    """One line a model. Of a recipe stored in both formats int8 is shown.

    A mean of the transfer sets is marked where the model was fitted on some of them.
    """
    recipes: dict[str, dict[str, list[RunFigures]]] = {}
    for file in files:
        recipes.setdefault(file.recipe, {}).setdefault(file.storage, []).append(file)
    rows, notes = [], []
    for recipe, forms in sorted(recipes.items()):
        storage = "int8" if "int8" in forms else "float32"
        cells = [_cell(forms[storage], key, scale, digits) for _, key, scale, digits in _COLUMNS]
        if cells[0] and (sets := fitted_on(forms[storage][0])):
            cells[0] += " \\*"
            notes.append(f"\\* `{recipe}` was fitted on {', '.join(sets)}: no mean of sets that it was not trained on.")
        rows.append((f"`{recipe}`", storage, ", ".join(str(file.seed) for file in forms[storage]), *cells))
    used = [i for i in range(len(_COLUMNS)) if any(row[3 + i] for row in rows)]
    head = ("recipe", "words", "seeds", *(_COLUMNS[i][0] for i in used))
    return "\n\n".join([table(head, [(*row[:3], *(row[3 + i] for i in used)) for row in rows]), *notes])


def _cell(files: Sequence[RunFigures], key: tuple[str, str, str], scale: float, digits: int) -> str:
    values = [value * scale for file in files if (value := file.value(*key)) is not None]
    if not values:
        return ""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"
