"""The space of MaLSTM's sentence vectors (Mueller & Thyagarajan 2016: Figures 2 and 3, Tables 1 and 3).

All sentences of SICK test on their first two principal components, coloured by theme (Figure 3); for each of three
questions (negation, subject, direct object; Figure 2) the hidden unit that best separates the groups of sentences; and
the sentence pairs that the paper prints. Themes and groups are our own lists of words; the paper does not give its own.
The model is used as published: exported, with the recipe's word storage, calibrated.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from training.analyses.analysis import COLOURS, MARKERS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.trained import Floats
from training.corpora.readers import sick
from training.publishing.publish import publish
from training.publishing.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Publication, Recipe
from training.results.report.markdown import number, table

THEMES = {  # the first that matches counts
    "violence": r"gun|guns|rifle|shooting|knife|sword|fight|fighting|fights|attack\w*|silencer|weapon\w*|kickbox\w*",
    "cooking": r"slic\w+|cook\w*|chop\w*|peel\w*|cutting|onions?|potato\w*|tofu|vegetables?|pan|pot|meat|butter|bowl",
    "music": r"guitars?|flute|piano|drums?|violin|sing\w*|music\w*|instruments?|trumpet|keyboard",
    "water": r"swim\w*|pool|ocean|sea|beach|water|boat|surf\w*|river|lake|wave|waves",
    "animals": r"dogs?|cats?|monkeys?|lemurs?|panda|horses?|birds?|kitten|turtle|animals?|fish|puppy|elephant|tiger",
}
GROUPS = {  # groups of sentences that a unit may separate, as patterns of words
    "negation": {"no, not, nobody": r"no|not|nobody|n't|isn't|aren't", "none of these": r"(?!x)x"},
    "subject": {
        "cat": r"^(?:a|the) (?:\w+ )?(?:cat|kitten)",
        "dog": r"^(?:a|the) (?:\w+ )?dog",
        "boy": r"^(?:a|the) (?:\w+ )?boy",
        "someone": r"^(?:someone|a person|the person)",
        "woman": r"^(?:a|the) (?:\w+ )?woman",
        "man": r"^(?:a|the) (?:\w+ )?man",
    },
    "direct object": {
        "ball": r"\w*ball",
        "guitar": r"guitar",
        "vegetables": r"onions?|potato\w*|vegetables?|carrots?|cucumber|garlic|tomato\w*",
        "grass": r"grass",
        "make-up": r"eyeliner|eyeshadow|makeup|lipstick|cosmetics?",
    },
}
REST = "none of these"  # the group of all sentences that no other group of that question takes
OURS = (  # sentences of our own, whose units are shown
    "A cat is sleeping on a chair", "There is no cat sleeping on a chair", "A man is kicking a ball",
    "A man is not kicking a ball", "A dog is running through the grass", "A woman is slicing an onion",
    "Nobody is slicing an onion", "A boy is playing the guitar",
)  # fmt: skip
TABLE_1 = (  # gold, skip-thought and MaLSTM as printed
    (
        "A little girl is looking at a woman in costume.",
        "A young girl is looking at a woman in costume.",
        4.7,
        4.5,
        4.8,
    ),
    (
        "A person is performing tricks on a motorcycle.",
        "The performer is tricking a person on a motorcycle.",
        2.6,
        4.4,
        2.9,
    ),
    ("Someone is pouring ingredients into a pot.", "A man is removing vegetables from a pot.", 2.4, 3.6, 2.5),
    ("Nobody is pouring ingredients into a pot.", "Someone is pouring ingredients into a pot.", 3.5, 4.2, 3.7),
)
_SWIM = "a boy is waving at some young runners from the ocean"
TABLE_3 = (  # Tree-LSTM and MaLSTM as printed
    ("a woman is slicing potatoes", "a woman is cutting potatoes", 4.82, 4.87),
    ("a woman is slicing potatoes", "potatoes are being sliced by a woman", 4.70, 4.38),
    ("a woman is slicing potatoes", "tofu is being sliced by a woman", 4.39, 3.51),
    (_SWIM, "a group of men is playing with a ball on the beach", 3.79, 3.13),
    (_SWIM, "a young boy wearing a red swimsuit is jumping out of a blue kiddies pool", 3.37, 3.48),
    (_SWIM, "the man is tossing a kid into the swimming pool that is near the ocean", 3.19, 2.26),
    ("two men are playing guitar", "the man is singing and playing the guitar", 4.08, 3.53),
    ("two men are playing guitar", "the man is opening the guitar for donations and plays with the case", 4.01, 2.30),
    ("two men are playing guitar", "two men are dancing and singing in front of a crowd", 4.00, 2.33),
)


def matching(texts: Sequence[str], groups: Mapping[str, str]) -> npt.NDArray[np.int64]:
    """The first group whose pattern a text has as whole words, an index into `groups` [n]; -1 for none."""
    patterns = [re.compile(rf"(?<!\w)(?:{pattern})(?!\w)") for pattern in groups.values()]
    found = (next((i for i, each in enumerate(patterns) if each.search(text.lower())), -1) for text in texts)
    return np.fromiter(found, dtype=np.int64, count=len(texts))


def grouped(texts: Sequence[str], groups: Mapping[str, str]) -> npt.NDArray[np.int64]:
    """As `matching`, but texts without a match belong to the group named `REST`, if there is one."""
    found = matching(texts, groups)
    return np.where(found < 0, list(groups).index(REST), found) if REST in groups else found


def explained_variance(values: Floats, groups: npt.NDArray[np.int64]) -> Floats:
    """Share of each column's variance that lies between the groups (eta squared).

    Args:
        values: [n, D].
        groups: of each row [n].

    Returns:
        [D], in 0..1; 0 for a column that does not vary.
    """
    centred = values - values.mean(axis=0)
    between = np.zeros(values.shape[1])
    for group in np.unique(groups):
        here = centred[groups == group]
        between += len(here) * here.mean(axis=0) ** 2
    total = (centred**2).sum(axis=0)
    return np.where(total > 0, between / np.where(total > 0, total, 1), 0.0)


def best_unit(values: Floats, groups: npt.NDArray[np.int64]) -> tuple[int, float]:
    """(column that best separates the groups, its eta squared); rows of group -1 are left out."""
    kept = groups >= 0
    shares = explained_variance(values[kept], groups[kept])
    return int(shares.argmax()), float(shares.max())


def served(recipe: Recipe, options: Options, folder: Path) -> PublishedModel:
    """Publish the run to a temporary folder."""
    publication = recipe.publication or Publication(recipe.name, recipe.name, storage="float32")
    whole = replace(recipe, publication=publication)
    return PublishedModel(publish(whole, options.runs, folder / "models", folder / "figures", options.seed))


def compute(options: Options) -> Data:
    """Vectors of all distinct sentences of SICK test, and scores of the printed pairs.

    Raises:
        AnalysisError: the model does not rate pairs.
    """
    recipe = find(options.recipes[0])
    pairs = sick.read("test")
    texts = sorted({text for pair in pairs for text in (pair.a, pair.b)})
    with tempfile.TemporaryDirectory(prefix="malstm-space-") as temporary:
        model = served(recipe, options, Path(temporary))
        values = model.embed(texts).astype(np.float64)
        ours = model.embed(OURS).astype(np.float64)
        printed = [ratings(model, [(row[0], row[1]) for row in rows]) for rows in (TABLE_1, TABLE_3)]
        predicted = ratings(model, [(p.a, p.b) for p in pairs])
    pca = PCA(2, svd_solver="full").fit(values)
    units = {}
    for question, groups in GROUPS.items():
        which = grouped(texts, groups)
        unit, share = best_unit(values, which)
        units[question] = {
            "unit": unit,
            "eta_squared": share,
            "values": {name: np.round(values[which == i, unit], 3).tolist() for i, name in enumerate(groups)},
            "ours": ours[:, unit].tolist(),
        }
    themes = matching(texts, THEMES)
    violent = {text for text, theme in zip(texts, themes, strict=True) if theme == list(THEMES).index("violence")}
    mixed = [i for i, p in enumerate(pairs) if (p.a in violent) != (p.b in violent)]
    people = np.array([p.target for p in pairs], dtype=np.float64)
    return {
        "sentences": len(texts),
        "variance_explained": pca.explained_variance_ratio_.tolist(),
        "points": np.round(pca.transform(values), 3).tolist(),
        "themes": themes.tolist(),
        "units": units,
        "table_1": printed[0],
        "table_3": printed[1],
        "violence": {
            "pairs": len(mixed),
            "people": float(people[mixed].mean()),
            "model": float(np.array(predicted)[mixed].mean()),
            "people_all": float(people.mean()),
            "model_all": float(np.mean(predicted)),
        },
    }


def ratings(model: PublishedModel, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Calibrated relatedness of pairs.

    Raises:
        AnalysisError: the model does not rate pairs.
    """
    found = model.similarity([a for a, _ in pairs], [b for _, b in pairs]).rating
    if found is None:
        raise AnalysisError(f"{model.manifest.id} does not rate pairs on a scale")
    return [float(value) for value in found]


def draw(data: Data, folder: Path) -> None:
    """The map of sentences; the three units."""
    points, themes = np.array(data["points"]), np.array(data["themes"])
    with drawing(folder / "pca.png", width=7.5, height=5.5) as [axes]:
        rest = points[themes < 0]
        axes.scatter(rest[:, 0], rest[:, 1], s=4, color="#BBBBBB", label="others")
        for i, name in enumerate(THEMES):
            here = points[themes == i]
            colour = COLOURS[(1, 4, 3, 0, 2)[i]]
            axes.scatter(
                here[:, 0], here[:, 1], s=11, c=colour, marker=MARKERS[i], linewidths=0, alpha=0.75, label=name
            )
        first, second = (100 * share for share in data["variance_explained"])
        axes.set(xlabel=f"first component ({first:.0f} % of variance)")
        axes.set(ylabel=f"second component ({second:.0f} % of variance)")
        axes.set_title(f"{data['sentences']:,} sentences of SICK test, {data['recipes'][0]}")
        axes.legend(markerscale=2, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    rng = np.random.default_rng(0)
    with drawing(folder / "units.png", width=7.5, height=8, rows=len(data["units"]), dpi=90) as panels:
        for axes, (question, unit) in zip(panels, data["units"].items(), strict=True):
            for y, values in enumerate(unit["values"].values()):
                jitter = y + rng.uniform(-0.28, 0.28, len(values))
                axes.scatter(values, jitter, s=5, alpha=0.5, linewidths=0, color=COLOURS[y % 8])
                if values:
                    axes.plot([np.median(values)] * 2, [y - 0.4, y + 0.4], color="black", linewidth=2)
            names = [f"{name} ({len(values):,})" for name, values in unit["values"].items()]
            axes.set_yticks(range(len(names)), names)
            axes.invert_yaxis()
            share = f"{100 * unit['eta_squared']:.0f} % of variance"
            axes.set_title(f"unit {unit['unit'] + 1}: {question}, {share}", loc="left")
            axes.grid(axis="x", alpha=0.3)
        panels[-1].set_xlabel("value of the hidden unit (line: median)")


def page(data: Data) -> str:
    """Scores beside the paper's, the units on our sentences, and pairs with one sentence of violence."""
    first = [
        (a, b, *(number(v, 1) for v in rest), number(ours, 2))
        for (a, b, *rest), ours in zip(TABLE_1, data["table_1"], strict=True)
    ]
    third = [
        (a, b, *(number(v, 2) for v in rest), number(ours, 2))
        for (a, b, *rest), ours in zip(TABLE_3, data["table_3"], strict=True)
    ]
    units = data["units"]
    heads = [f"{question} (unit {unit['unit'] + 1})" for question, unit in units.items()]
    own = [(text, *(f"{unit['ours'][i]:+.2f}" for unit in units.values())) for i, text in enumerate(OURS)]
    violent = data["violence"]
    return "\n\n".join(
        [
            "Relatedness 1..5 of the pairs of Table 1 (gold, skip-thought and MaLSTM as printed):",
            table(("sentence", "sentence", "gold", "skip-thought", "MaLSTM", "ours"), first),
            "Of Table 3 (Tree-LSTM and MaLSTM as printed):",
            table(("sentence", "sentence", "Tree-LSTM", "MaLSTM", "ours"), third),
            "The units of the second plot on sentences of our own:",
            table(("sentence", *heads), own),
            f"Pairs of which one sentence is violent ({violent['pairs']}): {violent['people']:.2f} by people, "
            f"{violent['model']:.2f} by the model; all pairs {violent['people_all']:.2f} and "
            f"{violent['model_all']:.2f} (paper, by its own choice of sentences: 1.88 against 3.41 for all).",
        ]
    )


ANALYSIS = Analysis(
    name="malstm-space",
    title="The space of MaLSTM's sentence vectors",
    source="Mueller & Thyagarajan 2016, Figures 2 and 3, Tables 1 and 3",
    recipes=("malstm-sick",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={
        "pca.png": "sentences of SICK test on two principal components, coloured by theme",
        "units.png": "values of three hidden units by group of sentences",
    },
    most=1,
)
