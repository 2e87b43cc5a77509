"""What met what: matrices of the served interaction models on example pairs, PWIM's focused cosines, MGIM's attention.

He & Lin (2016), Table 10; Li et al. (2019), Figures 4 and 5. `python -m training analyse` writes the page, its picture
and their data.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import numpy as np
import typer

from contract.manifest import MANIFEST_NAME
from training.publishing.runtime import PublishedModel
from training.results.report.markdown import table

mpl.use("Agg")  # no window
from matplotlib import pyplot as plt

Data = dict[str, Any]  # plain JSON values
MODELS = ("pwim-sick", "pwim-qa", "mgim-sick", "mgim-msrp")
TITLE = "What met what: the served interaction models on example pairs"
SOURCE = "He & Lin 2016, Table 10; Li et al. 2019, Figures 4 and 5"
ALTERNATIVE = "heat maps of word meetings, one row for each pair, one column for each model"
DATA, PICTURE, PAGE = "data.json", "interactions.png", "README.md"


class AnalysisError(ValueError):
    """A model that has nothing to show; a message of one line."""


# The first two are PWIM's Table 10, pairs of SICK test; the others are a paraphrase and a non-paraphrase, as in MGIM's
# Figures 4 and 5 (whose sentences are only in pictures).
EXAMPLES = (
    ("A man is playing the drum", "A man is practicing the drum"),
    ("A man is carrying a tree", "A tree is being picked up by a man"),
    ("The company said profits rose in the third quarter.", "Third-quarter profits rose, the company said."),
    ("The company said profits rose in the third quarter.", "The company will close two plants in the spring."),
)


@dataclass(frozen=True)
class _Shown:
    """One picture: the matrices of a model whose product it shows, and its scale."""

    name: str
    matrices: tuple[str, ...]
    low: float
    high: float
    title: str


_SHOWN = {
    "pwim": _Shown("focused-cosine", ("cosine", "focus"), 0.0, 1.0, "cosine x focus weight"),
    "mgim": _Shown("attention", ("attention",), 0.0, 1.0, "attention"),
}


def analyse(
    model: Annotated[str, typer.Option(help="interaction models, separated by commas")] = ",".join(MODELS),
    models: Annotated[Path, typer.Option(help="where model folders live")] = Path("models"),
    out: Annotated[Path, typer.Option(help="folder to write to")] = Path("analyses/interactions"),
) -> None:
    """Show which words interaction models match, on example pairs: data, a picture and a page."""
    names = model.split(",")
    data = {"models": {name: _shown(models / name) for name in names}}
    out.mkdir(parents=True, exist_ok=True)
    (out / DATA).write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(data, out)
    command = "python -m training analyse" + ("" if tuple(names) == MODELS else f" --model {model}")
    parts = [f"# {TITLE}", f"{SOURCE}. Made by `{command}` from `{DATA}`.", f"![{ALTERNATIVE}]({PICTURE})", page(data)]
    (out / PAGE).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _shown(folder: Path) -> Data:
    """Tokens, scores and shown values of every example under a model.

    Raises:
        AnalysisError: it is not published, or no interaction model.
    """
    if not (folder / MANIFEST_NAME).is_file():
        raise AnalysisError(f"{folder} is not published: run `python -m training publish {folder.name}` first")
    model = PublishedModel(folder)
    explanation, kind = model.manifest.explanation, _SHOWN.get(model.manifest.architecture)
    if explanation is None or kind is None:
        raise AnalysisError(f"{folder.name} shows nothing: it is no interaction model")
    rows = [matrix.name for matrix in explanation.matrices]
    limit, examples = model.manifest.limits.max_tokens, []
    for a, b in EXAMPLES:
        found = model.matrices(a, b)
        values = np.prod([found[rows.index(matrix)] for matrix in kind.matrices], axis=0)
        tokens = [[model.tokenizer.token(i) for i in model.tokenizer.encode(text, limit).ids] for text in (a, b)]
        score = model.similarity([a], [b])
        shown = score.rating if score.rating is not None else score.score
        examples.append(
            {
                "a": tokens[0],
                "b": tokens[1],
                "score": round(float(shown[0]), 5),
                "values": values.astype(float).round(5).tolist(),
            }
        )
    return {"architecture": model.manifest.architecture, "examples": examples}


def draw(data: Data, folder: Path) -> None:
    """A heat map of each example under each model, rows of the picture by example."""
    models = data["models"]
    figure, axes = plt.subplots(
        len(EXAMPLES),
        len(models),
        figsize=(5.6 * len(models), 4.4 * len(EXAMPLES)),
        squeeze=False,
        layout="constrained",
    )
    try:
        for column, (name, model) in enumerate(models.items()):
            kind = _SHOWN[model["architecture"]]
            for row, example in enumerate(model["examples"]):
                here, values = axes[row][column], np.array(example["values"])
                here.imshow(values, cmap="Blues", vmin=kind.low, vmax=kind.high, aspect="auto")
                here.set_xticks(range(len(example["b"])), example["b"], rotation=60, ha="right", fontsize=8)
                here.set_yticks(range(len(example["a"])), example["a"], fontsize=8)
                here.set_title(f"{name}: {kind.title}; score {example['score']:.2f}", fontsize=9)
                for (i, j), value in np.ndenumerate(values):
                    if value >= 0.1:
                        dark = value > (kind.low + kind.high) / 2
                        here.text(
                            j, i, f"{value:.1f}", ha="center", va="center", fontsize=6, color="w" if dark else "k"
                        )
        figure.savefig(folder / PICTURE, dpi=90, metadata={"Software": None})
    finally:
        plt.close(figure)


def page(data: Data) -> str:
    """The largest value of every word of a."""
    parts = []
    for name, model in data["models"].items():
        rows = []
        for example in model["examples"]:
            values = np.array(example["values"])
            best = values.argmax(axis=1)
            met = ", ".join(
                f"{word} - {example['b'][j]} ({values[i, j]:.2f})"
                for i, (word, j) in enumerate(zip(example["a"], best.tolist(), strict=True))
            )
            rows.append((" ".join(example["a"]), " ".join(example["b"]), f"{example['score']:.2f}", met))
        kind = _SHOWN[model["architecture"]]
        head = ("a", "b", "score", f"strongest {kind.title} of each word of a")
        parts.append(f"## {name}\n\n{table(head, rows)}")
    return "\n\n".join(parts)
