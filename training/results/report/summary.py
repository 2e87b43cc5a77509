"""First section of the report: every model once, means and standard deviations over its seeds."""

from collections.abc import Sequence
from statistics import mean, stdev

from training.publishing.figures import FigureFile
from training.results.report.markdown import table

# Name of the column; corpus, split and metric as the files of figures name them; scale and digits of what is printed.
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


def summary(files: Sequence[FigureFile]) -> str:
    """One line a model. Of several storage formats of a recipe the smallest is shown: int8, float16, float32."""
    recipes: dict[str, dict[str, list[FigureFile]]] = {}
    for file in files:
        recipes.setdefault(file.recipe, {}).setdefault(file.storage, []).append(file)
    rows = []
    for recipe, forms in sorted(recipes.items()):
        storage = min(forms, key=("int8", "float16", "float32").index)
        cells = [_cell(forms[storage], key, scale, digits) for _, key, scale, digits in _COLUMNS]
        rows.append((f"`{recipe}`", storage, ", ".join(str(file.seed) for file in forms[storage]), *cells))
    used = [i for i in range(len(_COLUMNS)) if any(row[3 + i] for row in rows)]
    head = ("recipe", "words", "seeds", *(_COLUMNS[i][0] for i in used))
    return table(head, [(*row[:3], *(row[3 + i] for i in used)) for row in rows])


def _cell(files: Sequence[FigureFile], key: tuple[str, str, str], scale: float, digits: int) -> str:
    values = [value * scale for file in files if (value := file.value(*key)) is not None]
    if not values:
        return ""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"
