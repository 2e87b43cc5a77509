"""L1 norm of GRAN's gate by dependency label (Wieting & Gimpel 2017, section 5.2, Tables 9 to 11).

Over the sentences of `gate` that Link Grammar parses whole and cuts into the same words; the paper used the Stanford
parser. Adjectives and words in -ing are those that the tagger calls JJ and VBG.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from statistics import fmean

from training.analyses.analysis import Analysis, Data, Options
from training.analyses.syntax.dependencies import parses, stanford_labels
from training.analyses.syntax.gate import (
    SENTENCES,
    draw_means,
    gate_of_words,
    gated_lengths,
    grouped,
    highest_and_lowest,
    lengths_of,
    means,
    order_agreement,
    pattern_tagger,
    sentences,
    shuffled_sentences,
)
from training.analyses.trained import load
from training.results.report.markdown import number, table

LEAST, LEAST_OF_TAG = 30, 10  # words from which a mean is reported: of a label, and of a label within a tag
PAPER = {  # Table 9, highest first; Tables 10 and 11 with the paper's means
    "highest": ("number", "nn", "num", "acomp", "appos", "pobj", "vmod", "dobj", "amod", "conj"),
    "lowest": ("possessive", "cop", "det", "auxpass", "prep", "cc", "mark", "aux", "expl", "neg"),
}
ORDER = (*PAPER["highest"], *reversed(PAPER["lowest"]))
NOUNS = ("dobj", "pobj", "nsubj", "nn")
PAPER_OF_TAG = {  # highest first
    "JJ": {"xcomp": 170.6, "acomp": 167.1, "root": 157.4, "amod": 143.1, "advmod": 121.6},
    "VBG": {
        "pcomp": 190.0,
        "amod": 178.3,
        "xcomp": 176.8,
        "vmod": 170.6,
        "root": 161.8,
        "auxpass": 125.4,
        "prep": 121.2,
    },
}


def compute(options: Options) -> Data:
    """Tag, parse, gate, average."""
    trained = load(options.recipes[0], options.seed, options.runs)
    tagged = list(islice(sentences(shuffled_sentences(), pattern_tagger()), SENTENCES))
    kept = []
    for (words, tags), parse in zip(tagged, parses([" ".join(words) for words, _ in tagged]), strict=True):
        if parse is not None and [each.lower() for each in parse.plain()] == [each.lower() for each in words]:
            kept.append((words, tags, stanford_labels(parse)))
    norms = list(gate_of_words(trained, (words for words, _, _ in kept)))
    lengths = list(gate_of_words(trained, (words for words, _, _ in kept), gated_lengths))
    by_label = grouped((labels for _, _, labels in kept), norms)
    both = [[(_kind(tag), label) for tag, label in zip(*each[1:], strict=True)] for each in kept]
    by_length = grouped((labels for _, _, labels in kept), lengths)
    by_length.pop(None, None)
    unlabelled = len(by_label.pop(None, []))
    labels, label_lengths = means(by_label, LEAST), means(by_length, LEAST)
    return {
        "sentences": len(tagged),
        "parsed": len(kept),
        "words": sum(map(len, norms)),
        "unlabelled": unlabelled,
        "mean": fmean(norm for sentence in norms for norm in sentence),
        "dimensions": trained.rows.shape[1],
        "labels": labels,
        "rho_with_paper": order_agreement(labels, ORDER),
        "lengths": label_lengths,
        "rho_of_lengths": order_agreement(label_lengths, ORDER),
        "of_tag": {tag: _of_tag(grouped(both, norms), tag) for tag in ("NN", *PAPER_OF_TAG)},
        "lengths_of_tag": {tag: _of_tag(grouped(both, lengths), tag) for tag in ("NN", *PAPER_OF_TAG)},
    }


def _kind(tag: str) -> str:
    """The tag; of every kind of noun `NN`."""
    return "NN" if tag.startswith("NN") else tag


def _of_tag(both: Mapping[tuple[str, str | None], list[float]], tag: str) -> dict[str, dict[str, float]]:
    return means(
        {label: norms for (each, label), norms in both.items() if each == tag and label is not None}, LEAST_OF_TAG
    )


def draw(data: Data, folder: Path) -> None:
    """Mean norms by label."""
    title = f"GRAN's gate by dependency label ({data['recipes'][0]})"
    draw_means(folder / "gate-by-label.png", data["labels"], PAPER, data["dimensions"], "dependency label", title)


def page(data: Data) -> str:
    """Table 9's labels, then what the paper says of nouns, adjectives and words in -ing."""
    share = 100 * data["unlabelled"] / data["words"]
    norms, lengths = data["of_tag"], data["lengths_of_tag"]
    places = ", ".join(
        f"{label} {each['mean']:.1f} (length {lengths['NN'][label]['mean']:.2f})"
        for label in NOUNS
        if (each := norms["NN"].get(label))
    )
    parts = [
        f"{data['parsed']:,} of the {data['sentences']:,} sentences of [the other page](../gate/README.md): "
        "those that Link Grammar parses whole and cuts into the same words. Its links are read as Stanford labels by "
        f"rules of ours (`training/analyses/syntax/dependencies.py`); {share:.0f} % of the words, punctuation among "
        f"them, have no label. Labels seen fewer than {LEAST} times are left out. Spearman rho with the paper's order "
        f"over the labels it lists: {number(data['rho_with_paper'], 2)}. The mean of all words: {data['mean']:.1f}.",
        highest_and_lowest(data["labels"], PAPER),
        lengths_of(data, PAPER),
        f"Nouns by their place (in the paper objects tend to have more weight than subjects): {places}.",
    ]
    for tag, name in (("JJ", "Adjectives (JJ; Table 10)"), ("VBG", "Words in -ing (VBG; Table 11)")):
        shared = [label for label in PAPER_OF_TAG[tag] if label in norms[tag]]  # highest of the paper first
        rows = [
            (label, number(paper, 1), *_cells(norms[tag].get(label), lengths[tag].get(label)))
            for label, paper in PAPER_OF_TAG[tag].items()
        ]
        rho, rho_of_lengths = (number(order_agreement(each[tag], shared), 2) for each in (norms, lengths))
        parts += [
            f"{name}, those seen {LEAST_OF_TAG} times or more; Spearman rho with the paper {rho}, of the lengths "
            f"{rho_of_lengths}:",
            table(("label", "paper", "ours", "length of the gated vector", "words"), rows),
        ]
    return "\n\n".join(parts)


def _cells(norm: Mapping[str, float] | None, length: Mapping[str, float] | None) -> tuple[str, str, str]:
    if norm is None or length is None:
        return "", "", "too few"
    return f"{norm['mean']:.1f}", f"{length['mean']:.2f}", f"{norm['count']:,}"


ANALYSIS = Analysis(
    name="gate-labels",
    title="GRAN's gate by dependency label",
    source="Wieting & Gimpel 2017, section 5.2, Tables 9 to 11",
    recipes=("gran-1",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"gate-by-label.png": "mean L1 norm of the gate for each dependency label"},
    most=1,
)
