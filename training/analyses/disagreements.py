"""Pairs on which word averaging and LSTM-AVG err most differently (Wieting & Gimpel 2017, section 5.1, Table 7).

As in the paper, cosines are scaled to 0..5. The pairs are those of STS 2016, the development sets; they are listed by
set and line and described by overlap and length, because their texts may not be redistributed. The seven pairs that the
paper prints are scored too.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contract.text import split_words
from training.analyses.analysis import COLOURS, Analysis, Data, Options, drawing
from training.analyses.trained import Floats, Trained, cosines, gold, load
from training.corpora.readers import sts
from training.objectives.metrics import graded
from training.pairs import Pair
from training.results.report.markdown import number, table

LISTED = 5
TRAITS = ("overlap", "longer", "difference")  # of a pair, see `traits`
PAPER = (  # sentences, LSTM-AVG, AVG and gold as printed in Table 7
    ("the lamb is looking at the camera.", "a cat looking at the camera.", 3.42, 4.13, 0.8),
    (
        'he also said shockey is "living the dream life of a new york athlete.',
        '"jeremy\'s a good guy," barber said, adding:"jeremy is living the dream life of the new york athlete.',
        3.55,
        4.22,
        2.75,
    ),
    ("bloomberg chips in a billion", "bloomberg gives $1.1 b to university", 3.99, 3.04, 4.0),
    (
        "in other regions, the sharia is imposed.",
        "in other areas, sharia law is being introduced by force.",
        4.44,
        3.72,
        4.75,
    ),
    ("three men in suits sitting at a table.", "two women in the kitchen looking at a object.", 3.33, 2.79, 0.0),
    (
        "we never got out of it in the first place!",
        "where does the money come from in the first place?",
        4.00,
        3.33,
        0.8,
    ),
    ("two birds interacting in the grass.", "two dogs play with each other outdoors.", 3.44, 2.81, 0.2),
)


def to_five(cosine: Floats) -> Floats:
    """Cosines clipped at 0 and scaled to 0..5."""
    return 5 * np.clip(cosine, 0.0, 1.0)


def traits(pair: Pair) -> dict[str, float]:
    """Shared words over all words (Jaccard), tokens of the longer side, and by how many it is longer."""
    a, b = split_words(pair.a), split_words(pair.b)
    union = set(a) | set(b)
    return {
        "overlap": len(set(a) & set(b)) / max(len(union), 1),
        "longer": float(max(len(a), len(b))),
        "difference": float(abs(len(a) - len(b))),
    }


def kinds(averaging: Floats, recurrent: Floats, ratings: Floats) -> dict[str, list[int]]:
    """Indices of the pairs by error of each kind, for the model named, largest first.

    A model's overestimation relative to the other is its score minus the rating (0 if negative) minus the absolute
    error of the other model; likewise underestimation.
    """
    over = {"AVG": averaging - ratings, "LSTM-AVG": recurrent - ratings}
    found = {}
    for name, other in (("AVG", "LSTM-AVG"), ("LSTM-AVG", "AVG")):
        for kind, sign in (("overestimates", 1.0), ("underestimates", -1.0)):
            excess = np.maximum(sign * over[name], 0) - np.abs(over[other])
            found[f"{name} {kind}"] = [int(i) for i in np.argsort(-excess, kind="stable")]
    return found


def scores(model: Trained, pairs: Sequence[Pair]) -> Floats:
    """Cosines scaled to 0..5 [n]."""
    return to_five(cosines(model, pairs))


def compute(options: Options) -> Data:
    """Both models on STS 2016 and on the printed pairs; the first recipe is AVG, the second LSTM-AVG."""
    first, second = (load(name, options.seed, options.runs) for name in options.recipes)
    named = [(name, line, p) for name, pairs in sts.read_year("2016-test").items() for line, p in enumerate(pairs, 2)]
    pairs = [pair for _, _, pair in named]
    ratings, avg, lstm = gold(pairs), scores(first, pairs), scores(second, pairs)
    described = [traits(pair) for pair in pairs]
    groups = {}
    for kind, order in kinds(avg, lstm, ratings).items():
        worst = order[: max(len(pairs) // 20, 1)]
        listed = [
            {
                "set": named[i][0],
                "line": named[i][1],
                "gold": float(ratings[i]),
                "AVG": float(avg[i]),
                "LSTM-AVG": float(lstm[i]),
                **described[i],
            }
            for i in order[:LISTED]
        ]
        mean = {trait: float(np.mean([described[i][trait] for i in worst])) for trait in TRAITS}
        groups[kind] = {"pairs": listed, "traits_of_worst_twentieth": mean}
    printed = [Pair(a, b, target) for a, b, _, _, target in PAPER]
    return {
        "agreement": graded(avg, lstm)["pearson"],
        "pairs": len(pairs),
        "all": {trait: float(np.mean([each[trait] for each in described])) for trait in TRAITS},
        "kinds": groups,
        "printed": {"AVG": scores(first, printed).tolist(), "LSTM-AVG": scores(second, printed).tolist()},
        "points": {
            "AVG": np.round(avg, 2).tolist(),
            "LSTM-AVG": np.round(lstm, 2).tolist(),
            "gold": ratings.tolist(),
        },
    }


def draw(data: Data, folder: Path) -> None:
    """Every pair, one model over the other, coloured by the human rating."""
    points = data["points"]
    with drawing(folder / "scores.png", width=6.4, height=5.2) as [axes]:
        shown = axes.scatter(points["AVG"], points["LSTM-AVG"], c=points["gold"], s=9, cmap="cividis", alpha=0.8)
        axes.plot([0, 5], [0, 5], color=COLOURS[6], linewidth=1, linestyle="--")
        axes.figure.colorbar(shown, ax=axes, label="rating by people, 0..5")
        axes.set(xlabel=f"AVG ({data['recipes'][0]}), 0..5", ylabel=f"LSTM-AVG ({data['recipes'][1]}), 0..5")
        axes.set_title(f"STS 2016, {data['pairs']:,} pairs, scores of both models")
        axes.set_aspect("equal")


def page(data: Data) -> str:
    """The worst pairs of each kind, their traits, and the paper's pairs."""
    common = [("all pairs", *(number(data["all"][trait], 2) for trait in TRAITS))]
    worst = []
    for kind, group in data["kinds"].items():
        common.append((kind, *(number(group["traits_of_worst_twentieth"][trait], 2) for trait in TRAITS)))
        worst += [
            (
                kind,
                f"{each['set']}, line {each['line']}",
                *(number(each[key], 2) for key in ("gold", "AVG", "LSTM-AVG", "overlap")),
            )
            for each in group["pairs"]
        ]
    ours = zip(data["printed"]["LSTM-AVG"], data["printed"]["AVG"], strict=True)
    printed = [
        (str(n), number(target, 2), number(theirs_l, 2), number(theirs_a, 2), number(ours_l, 2), number(ours_a, 2))
        for n, ((_, _, theirs_l, theirs_a, target), (ours_l, ours_a)) in enumerate(zip(PAPER, ours, strict=True), 1)
    ]
    return "\n\n".join(
        [
            f"Pearson r between both models' scores: {data['agreement']:.3f}.",
            "Means of the twentieth of the pairs on which one model errs most beyond the other: shared words over all "
            "words, tokens of the longer side, and by how many it is longer.",
            table(("where", *TRAITS), common),
            "The worst, by file and line in `sts/2016-test/` (line 1 is the header):",
            table(("kind", "pair", "gold", "AVG", "LSTM-AVG", "overlap"), worst),
            "The pairs of the paper's Table 7, by its numbers:",
            table(("#", "gold", "LSTM-AVG, paper", "AVG, paper", "LSTM-AVG, ours", "AVG, ours"), printed),
        ]
    )


ANALYSIS = Analysis(
    name="disagreements",
    title="Where word averaging and LSTM-AVG disagree most",
    source="Wieting & Gimpel 2017, section 5.1, Table 7",
    recipes=("gran-avg", "gran-lstm-avg-regularised"),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"scores.png": "scores of LSTM-AVG over scores of AVG for each pair, coloured by rating"},
    least=2,
    most=2,
)
