"""Fill the tables of pages: from what was measured (manifests, benchmarks/results, papers/figures), or from the code.

That of `docs/dialects.md` is made in `scripts/peer_fields.py`.

A page holds `<!-- figures: NAME -->`, the table, and `<!-- end -->`. `python -m scripts.figures` writes the tables,
and tests/test_figures.py fails where one differs.
"""

import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from core.manifest import Figure, Manifest
from papers.headlines import HEADLINES, minutes_table, page_table, repeats_table
from scripts import peer_fields
from service import errors, schemas
from service.app import create_app
from service.models.defaults import MAIN, USUAL
from service.observe.metrics import PHASES
from service.observe.telemetry import ModelTelemetry, Telemetry
from service.settings import Settings
from service.settings_help import groups
from training.markdown import table

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *("README.md", "docs/choosing.md", "docs/dialects.md", "docs/general_text.md", "docs/settings.md"),
    "docs/reproducing.md",
    *(f"docs/papers/{name}.md" for name in HEADLINES),
    *(f"docs/reference/{name}.md" for name in ("errors", "metrics", "models", "routes")),
)
_BLOCK = re.compile(r"(<!-- figures: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NONE = "-"
BASELINE = "overlap of words"
# What to take a model for; another that is listed first shows its title.
_USES = {
    "avg-paraphrase": "very many texts: duplicates, a first stage",
    "minilm-small": "any text: the default of similarity, ranking and embeddings",
    "minilm": "FAQs, search by meaning",
    "minilm-cross": "a pair judged with care: paraphrase, entailment, which sentence answers; a second stage",
    "mpnet": "FAQs and search, where a right answer is worth five times the CPU (`make models-large`)",
    "mpnet-cross": "entailment of everyday and science texts, likewise",
    "pwim-general": "entailment at a fifth of the cost, less often right",
    "avg-sick-tuned": "captions, as people rate them; no other text",
}


def filled(text: str) -> str:
    """A page with its tables as the files have them.

    Raises:
        KeyError: a table is named that is none.
    """
    return _BLOCK.sub(lambda found: f"{found[1]}{_TABLES[found[2]]()}\n{found[3]}", text)


def newest(name: str) -> dict[str, Any]:
    """The last measurement of this name."""
    path = max((ROOT / "benchmarks" / "results").glob(f"????-??-??-{name}.json"))
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def general_text(section: str) -> list[dict[str, Any]]:
    """The rows of a section of `benchmarks.general`: of each model those measured last."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for path in sorted((ROOT / "benchmarks" / "results").glob("????-??-??-general-text*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")).get(section, []):
            key = tuple(row.get(name) for name in ("set", "model", "second", "top", "task"))
            if key not in found or row["model"] != BASELINE:  # of some sections it depends on the sample of pairs
                found[key] = row
    return list(found.values())


def _models() -> dict[str, Manifest]:
    folders = (ROOT / "models", ROOT / "workbench" / "large" / "kept")
    found = [Manifest.load(path.parent) for each in folders for path in sorted(each.glob("*/manifest.json"))]
    ids = {manifest.id: manifest for manifest in found}
    first = [name for name in (*MAIN, *USUAL["entailment"][:1]) if name in ids]
    return {name: ids[name] for name in (*first, *(name for name in ids if name not in first))}


def _figure(manifest: Manifest, corpus: str, metric: str, split: str = "", task: str = "") -> float | None:
    def fits(figure: Figure) -> bool:
        same_task = not task or figure.task == task
        return figure.corpus == corpus and figure.metric == metric and figure.split.startswith(split) and same_task

    return next((figure.value for figure in manifest.figures if fits(figure)), None)


def _year(manifest: Manifest, year: str) -> float | None:
    """Mean Pearson r of that year's sets."""
    found = [each.value for each in manifest.figures if each.corpus == f"STS {year}" and each.metric == "pearson"]
    return mean(found) if found else None


def _transfer(manifest: Manifest) -> float | None:
    return _figure(manifest, "transfer", "pearson")


def _answers(manifest: Manifest, corpus: str, split: str) -> float | None:
    """MAP, of the task that orders answers."""
    of_relevance = _figure(manifest, corpus, "map", split, "relevance")
    return of_relevance if of_relevance is not None else _figure(manifest, corpus, "map", split)


def _milliseconds() -> dict[str, str]:
    """CPU of a new pair: of the large models as many times that of `minilm` as where both were measured in turn."""
    found = {point["name"]: 1000 / point["rate"] for point in newest("model-cost")["points"]}
    beside = newest("model-cost-large")
    base = found[beside["base"]]
    found = {name: base * median(each) for name, each in beside["ratios"].items()} | found
    return {name: _digits(each) for name, each in found.items()}


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}".lstrip("0")


def _three(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}".lstrip("0")


def _percent(value: float | None) -> str:
    return _NONE if value is None or value != value else f"{100 * value:.1f} %"


def _both(first: str, second: str) -> str:
    return _NONE if first == second == _NONE else f"{first} / {second}"


def _first_right() -> dict[str, str]:
    """How many of the 30 questions have the right answer first, by the model that ranks alone."""
    return {row["model"]: f"{row['first']:.0f}" for row in general_text("faq") if "second" not in row}


def _main() -> str:
    cost, first = _milliseconds(), _first_right()
    rows = [
        [
            f"`{name}`",
            _USES.get(name, model.title),
            _three(_transfer(model)),
            first.get(name, _NONE),
            _three(_answers(model, "WikiQA", "test")),
            _percent(_figure(model, "MSRP", "accuracy")),
            _both(_percent(_figure(model, "SNLI", "accuracy")), _percent(_figure(model, "MultiNLI", "accuracy"))),
            cost.get(name, _NONE),
        ]
        for name, model in _models().items()
        if name in MAIN or name in _USES
    ]
    head = ["model", "take it for", "r", "FAQs", "WikiQA", "MSRP", "SNLI / MultiNLI", "ms"]
    return table(head, rows)


def _similarity() -> str:
    cost = _milliseconds()
    rows = [
        [
            f"`{name}`",
            *(_three(_year(model, year)) for year in ("2012", "2013", "2014", "2015")),
            _three(_figure(model, "SICK", "pearson", task="similarity")),
            _three(_transfer(model)),
            cost.get(name, _NONE),
        ]
        for name, model in _models().items()
        if name in MAIN
        or name in _USES
        or (_transfer(model) is None and _figure(model, "SICK", "pearson", task="similarity") is not None)
    ]
    head = ["model", "STS 2012", "2013", "2014", "2015", "SICK", "the 20 sets", "ms"]
    return table(head, [row for row in rows if set(row[1:-1]) != {_NONE}])


def _tasks() -> str:
    rows = [
        [
            f"`{name}`",
            _both(_percent(_figure(model, "SNLI", "accuracy")), _percent(_figure(model, "MultiNLI", "accuracy"))),
            _percent(_figure(model, "SciTail", "accuracy")),
            _percent(_figure(model, "SICK", "accuracy", task="entailment")),
            _both(_percent(_figure(model, "MSRP", "accuracy")), _three(_figure(model, "MSRP", "f1"))),
            _both(_three(_answers(model, "WikiQA", "test")), _three(_answers(model, "TrecQA", "raw"))),
        ]
        for name, model in _models().items()
    ]
    head = ["model", "SNLI / MultiNLI", "SciTail", "SICK", "MSRP, F1", "WikiQA / TrecQA, MAP"]
    return table(head, [row for row in rows if set(row[1:]) != {_NONE}])


def _name(model: str) -> str:
    return model if " " in model else f"`{model}`"


def _contrast() -> str:
    rows = [
        [
            f"`{row['model']}`, {row['task']}",
            *(f"{100 * row['written'][kind]:.0f}" for kind in ("all", "negation", "number", "roles", "opposite")),
            f"{100 * row['captions']['all']:.0f}",
            f"{100 * row['antonyms']['all']:.0f}{'*' if 'cannot' in row['trained_on'] else ''}",
            f"{_three(row['paws_auc'])}{'*' if 'paws-wiki' in row['trained_on'] else ''}",
        ]
        for row in general_text("contrast")
        if row["model"] in _USES
    ]
    head = ["model, task", "written", "negation", "number", "roles", "opposite", "captions", "antonyms", "PAWS, AUC"]
    return table(head, rows)


def _entailment() -> str:
    """A row for each model: of each set accuracy, calibration error, and how often it is right where it is sure."""
    found: dict[str, dict[str, str]] = {}
    for row in general_text("entailment"):
        values = (_percent(row["accuracy"]), _three(row["ece"]), _percent(row["sure_right"]))
        found.setdefault(_name(row["model"]), {})[row["set"]] = ", ".join(values)
    sets = list(dict.fromkeys(name for cells in found.values() for name in cells))
    return table(["model", *sets], [[model, *(cells[name] for name in sets)] for model, cells in found.items()])


def _kept_aside() -> str:
    columns = {
        "FAQ by question": "question",
        "FAQ by answer": "answer",
        "health, MAP": "health",
        "related, MAP": "related",
        "relatedness, rho": "relatedness",
        "intents": "intents",
    }
    found: dict[str, list[str]] = {}  # of each model what was measured last
    for path in sorted((ROOT / "benchmarks" / "results").glob("????-??-??-kept-aside.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        base = {row["model"]: row["milliseconds"] for row in rows}.get("minilm")
        for row in (each for each in rows if "+" not in each["model"]):
            cost = None if base is None else row["milliseconds"] / base
            before = found.get(row["model"], [_three(None)])[-1]  # a run without `minilm` has nothing to compare with
            values = (_three(row.get(column)) for column in columns.values())
            found[row["model"]] = [f"`{row['model']}`", *values, before if cost is None else _three(cost)]
    return table(["model", *columns, "CPU"], list(found.values()))


def _settings() -> str:
    """A table under each heading; pages are named as from docs/."""

    def cell(text: str) -> str:
        linked = re.sub(r"docs/([\w/-]+\.md)", r"[\1](\1)", text)
        return linked.replace("|", r"\|")

    parts = []
    for heading, settings in groups():
        rows = [
            f"| `{each.variable}` | {each.default if each.default == 'none' else f'`{each.default}`'} "
            f"| {cell(each.description)} |"
            for each in settings
        ]
        parts.append("\n".join([f"## {heading}\n", "| variable | default | what |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts)


def _errors() -> str:
    """The errors of our own routes, by status."""
    kinds = sorted(
        (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RequestError)),
        key=lambda kind: (kind.status, kind.code),
    )
    return table(
        ["status", "code", "when"],
        [
            [str(kind.status), f"`{kind.code}`", _linked(inspect.getdoc(kind) or "")]
            for kind in kinds
            if kind not in (errors.RequestError, errors.HttpError)  # the base, and whatever the framework says
        ],
    )


def _linked(text: str) -> str:
    """A description from the code in one line, with links to the pages that it names, as from docs/reference/."""
    return re.sub(r"docs/([\w/-]+\.md)", r"[\1](../\1)", " ".join(text.split()))


def _metrics() -> str:
    """Every metric of ours, as after the first answer of a model."""
    telemetry = Telemetry()
    telemetry.add_route("/similarity")
    telemetry.list({"m": {"provider": ""}})
    telemetry.serve({"m": ModelTelemetry(["encoder"])})
    telemetry.answered("/similarity", "m", 200, 0.01, (0.0,) * len(PHASES))
    rows = []
    for family in telemetry.collect():
        if family.name.startswith("semblance_"):
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
            shown = ", ".join(f"`{label}`" for label in labels)
            rows.append([f"`{family.name}{suffix}`", family.type, shown, _linked(family.documentation)])
    return table(["metric", "type", "labels", "what"], rows)


def _published() -> str:
    """Each model with a link to its card: what it does, its size, its main figures."""
    rows = []
    for name, model in sorted(_models().items()):
        size = sum(entry.bytes for entry in model.files.values()) / 1e6
        figures = (_transfer(model), _figure(model, "SICK", "pearson"), _figure(model, "SICK", "accuracy"))
        card = f"[{name}](../../models/{name}/README.md)" if (ROOT / "models" / name).is_dir() else name
        rows.append([card, model.architecture, ", ".join(model.tasks), f"{size:.0f}", *map(_three, figures)])
    return table(["model", "architecture", "tasks", "MB", "20 sets, r", "SICK, r", "SICK entailment"], rows)


def _routes() -> str:
    """Every route; types of requests that the page describes are links."""
    app = create_app(Settings(models_dir=(ROOT / "models",)))
    rows = []
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            name = body.get("$ref", "").rpartition("/")[2]
            asked = f"[{name}](#service.schemas.{name})" if name and hasattr(schemas, name) else name
            rows.append([operation["tags"][0], f"`{method.upper()} {path}`", operation["summary"], asked])
    return table(["for", "route", "what", "request"], rows)


_TABLES: dict[str, Callable[[], str]] = {
    "errors": _errors,
    "main": _main,
    "metrics": _metrics,
    "models": _published,
    "routes": _routes,
    "similarity": _similarity,
    "tasks": _tasks,
    "kept-aside": _kept_aside,
    "contrast": _contrast,
    "entailment": _entailment,
    "peer-fields": peer_fields.table,
    "settings": _settings,
    "minutes": minutes_table,
    "repeats": repeats_table,
    **{name.replace("_", "-"): partial(page_table, name) for name in HEADLINES},
}


def main() -> None:
    """Fill the figures into all pages."""
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
