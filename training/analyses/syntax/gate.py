"""L1 norm of GRAN's gate by part of speech (Wieting & Gimpel 2017, section 5.2, Table 9) and by word.

As in the paper, over 10,000 sentences of English Wikipedia of at most 15 tokens. Tags are from
TextBlob's pattern tagger, whose lexicon is part of the package; the paper used the Stanford parser. Dependency labels
are in `gate_labels`.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from contract.padding import pad
from contract.text import split_words
from contract.tokenizer import Tokenizer
from training.analyses.analysis import COLOURS, Analysis, AnalysisError, Data, Options, drawing
from training.analyses.trained import Trained, load
from training.architectures import GRAN
from training.corpora.readers import wikipedia
from training.results.report.markdown import number, table

SENTENCES, SHORTEST, LONGEST = 10_000, 4, 15  # how many, and their tokens; shorter ones are headings
BATCH = 250
LEAST_TAG, LEAST_WORD = 30, 30  # occurrences from which a mean is reported
LISTED = 10
Tag = Callable[[str], list[tuple[str, str]]]
Measure = Callable[[GRAN, Sequence[Sequence[int]]], list[list[float]]]  # of every id of every sentence
PAPER = {  # Table 9: highest first, lowest first
    "highest": ("NNP", "NNPS", "CD", "NNS", "VBG", "NN", "JJ", "UH", "VBN", "JJS"),
    "lowest": ("TO", "WDT", "POS", "DT", "WP", "IN", "CC", "PRP", "EX", "WRB"),
}
ORDER = (*PAPER["highest"], *reversed(PAPER["lowest"]))  # highest first


def pattern_tagger() -> Tag:
    """TextBlob's tagger of Penn Treebank tags; it needs no download. Tokens are separated by spaces."""
    from textblob.en.taggers import PatternTagger

    tagger = PatternTagger()
    return lambda text: [(str(word), str(tag)) for word, tag in tagger.tag(text, tokenize=False)]


def cased_words(sentence: str) -> list[str] | None:
    """The words of a sentence as `split_words` cuts it, in their own case; None where folding changes letters."""
    folded = split_words(sentence)
    words, at = [], 0
    for word in folded:
        found = sentence.lower().find(word, at)
        if found < 0 or sentence[at:found].strip():
            return None
        words.append(sentence[found : found + len(word)])
        at = found + len(word)
    return words


def shuffled_sentences() -> Iterator[str]:
    """Sentences of Wikipedia, paragraph by paragraph in a seeded random order: articles are sorted by their titles."""
    paragraphs = list(wikipedia.paragraphs())
    random.Random(0).shuffle(paragraphs)
    for paragraph in paragraphs:
        yield from wikipedia.split_sentences(paragraph)


def sentences(texts: Iterable[str], tag: Tag) -> Iterator[tuple[list[str], list[str]]]:
    """(words, tags) of the sentences short enough, those left out that tagger and tokenizer cut differently."""
    for text in texts:
        words = cased_words(text)
        if words is None or not SHORTEST <= len(words) <= LONGEST:
            continue
        tagged = tag(" ".join(words))
        if [word for word, _ in tagged] == words:
            yield words, [each for _, each in tagged]


def word_norms(ids: Sequence[Sequence[int]], norms: Sequence[float]) -> list[float]:
    """The measure at each word: the mean over its ids when it is cut into pieces.

    Args:
        ids: of each word of a sentence.
        norms: at each id of the sentence, in order.
    """
    starts = np.cumsum([0, *map(len, ids)])
    return [float(np.mean(norms[start : start + len(own)])) for start, own in zip(starts, ids, strict=False)]


def gate_norms(model: GRAN, ids: Sequence[Sequence[int]]) -> list[list[float]]:
    """Sum of the gate's values (each in 0..1) at every id of every sentence."""
    return _of_ids(ids, lambda padded, lengths: model.gate_values(padded, lengths).sum(dim=2))


def gated_lengths(model: GRAN, ids: Sequence[Sequence[int]]) -> list[list[float]]:
    """Euclidean length of the gated word vector, which a word adds to the sum, at every id of every sentence."""
    return _of_ids(
        ids, lambda padded, lengths: (model.gate_values(padded, lengths) * model.embedding(padded)).norm(dim=2)
    )


def _of_ids(ids: Sequence[Sequence[int]], values: Callable[[Tensor, Tensor], Tensor]) -> list[list[float]]:
    """`values` [B, T] of padded ids [B, T] and lengths [B], without the padding."""
    padded, lengths = (torch.from_numpy(each) for each in pad(ids))
    with torch.inference_mode():
        found = values(padded, lengths)
    return [row[:length].tolist() for row, length in zip(found, lengths.tolist(), strict=True)]


def means(values: Mapping[Any, Sequence[float]], least: int) -> dict[str, dict[str, float]]:
    """Mean and count of each key with at least `least` values, highest mean first."""
    kept = {key: {"mean": fmean(each), "count": len(each)} for key, each in values.items() if len(each) >= least}
    return dict(sorted(kept.items(), key=lambda item: -item[1]["mean"]))


def gate_of_words(
    trained: Trained, sentences_: Iterable[Sequence[str]], measure: Measure = gate_norms
) -> Iterator[list[float]]:
    """L1 norm of the gate, or another measure, at each word of each sentence.

    Raises:
        AnalysisError: the model has no such gate.
    """
    encoder = trained.model.encoder
    if not isinstance(encoder, GRAN):
        raise AnalysisError(f"recipe {trained.recipe.name!r} has no gate: it is not a GRAN")
    source = iter(sentences_)
    while batch := list(islice(source, BATCH)):
        cut = [[word_ids(trained.tokenizer, word) for word in words] for words in batch]
        norms = measure(encoder, [[i for own in each for i in own] for each in cut])
        yield from (word_norms(ids, sentence) for ids, sentence in zip(cut, norms, strict=True))


def grouped(keys: Iterable[Sequence[Hashable]], norms: Iterable[Sequence[float]]) -> dict[Any, list[float]]:
    """The norms of all words with the same key; `keys` and `norms` have a value for each word of each sentence."""
    found: dict[Any, list[float]] = defaultdict(list)
    for own, values in zip(keys, norms, strict=True):
        for key, norm in zip(own, values, strict=True):
            found[key].append(norm)
    return dict(found)


def word_ids(tokenizer: Tokenizer, word: str) -> tuple[int, ...]:
    """The token ids of one word."""
    return tokenizer.encode(word, 10**6).ids


def order_agreement(tags: Mapping[str, dict[str, float]], paper: Sequence[str]) -> float:
    """Spearman rho of our means with an order of the paper, highest first, over what it lists and we have."""
    shared = [tag for tag in paper if tag in tags]
    return float(spearmanr([-paper.index(tag) for tag in shared], [tags[tag]["mean"] for tag in shared]).statistic)


def compute(options: Options) -> Data:
    """Tag, gate, average."""
    trained = load(options.recipes[0], options.seed, options.runs)
    tagged = list(islice(sentences(shuffled_sentences(), pattern_tagger()), SENTENCES))
    norms = list(gate_of_words(trained, (words for words, _ in tagged)))
    lengths = gate_of_words(trained, (words for words, _ in tagged), gated_lengths)
    tag_lengths = means(grouped((tags for _, tags in tagged), lengths), LEAST_TAG)
    by_tag = grouped((tags for _, tags in tagged), norms)
    by_word = grouped(([word.lower() for word in words] for words, _ in tagged), norms)
    tags = {tag: each for tag, each in means(by_tag, LEAST_TAG).items() if tag[:1].isalpha()}
    words = {word: each for word, each in means(by_word, LEAST_WORD).items() if word.isalnum()}
    listed = list(words.items())
    return {
        "sentences": len(tagged),
        "dimensions": trained.rows.shape[1],
        "tags": tags,
        "words": len(words),
        "heaviest": dict(listed[:LISTED]),
        "lightest": dict(listed[::-1][:LISTED]),
        "rho_with_paper": order_agreement(tags, ORDER),
        "lengths": {tag: each for tag, each in tag_lengths.items() if tag in tags},
        "rho_of_lengths": order_agreement(tag_lengths, ORDER),
    }


def draw(data: Data, folder: Path) -> None:
    """Mean norms by tag."""
    title = f"GRAN's gate by part of speech ({data['recipes'][0]})"
    draw_means(folder / "gate-by-tag.png", data["tags"], PAPER, data["dimensions"], "Penn tag", title)


def draw_means(
    path: Path,
    found: Mapping[str, Mapping[str, float]],
    paper: Mapping[str, Sequence[str]],
    dimensions: int,
    what: str,
    title: str,
) -> None:
    """A bar for each mean of `means`, coloured by whether it is among the paper's `highest` or `lowest`."""
    with drawing(path, height=0.9 + 0.2 * len(found)) as [axes]:
        colours = [
            COLOURS[0] if key in paper["highest"] else COLOURS[1] if key in paper["lowest"] else COLOURS[7]
            for key in found
        ]
        axes.barh(range(len(found)), [each["mean"] for each in found.values()], color=colours, height=0.75)
        axes.set_yticks(range(len(found)), list(found), fontsize=8)
        axes.invert_yaxis()
        for colour, label in ((0, "among the paper's ten highest"), (1, "among its ten lowest"), (7, "neither")):
            axes.bar(0, 0, color=COLOURS[colour], label=label)  # nothing but a line of the legend
        axes.set(xlabel=f"mean L1 norm of the gate ({dimensions} values in 0..1)", ylabel=what)
        axes.set_title(title)
        axes.legend(loc="lower right", fontsize=8)


def lengths_of(data: Data, paper: Mapping[str, Sequence[str]]) -> str:
    """What the words add to the average, as a table."""
    return (
        "What a word adds to the average is its gated vector. The distilled vectors of frequent words are short from "
        "the start (smooth inverse frequency), so the gate need not close on them. By the mean Euclidean length of the "
        f"gated vectors the correlation with the paper's order is {number(data['rho_of_lengths'], 2)}:\n\n"
        + highest_and_lowest(data["lengths"], paper, digits=2)
    )


def highest_and_lowest(
    found: Mapping[str, Mapping[str, float]], paper: Mapping[str, Sequence[str]], digits: int = 1
) -> str:
    """A table of the ends of `means`, the paper's beside them."""
    ours = list(found.items())
    rows = []
    for n in range(LISTED):
        (high, h), (low, v) = ours[n], ours[-1 - n]
        ours_high, ours_low = (f"{key} {each['mean']:.{digits}f}" for key, each in ((high, h), (low, v)))
        rows.append((ours_high, paper["highest"][n], ours_low, paper["lowest"][n]))
    return table(("highest", "paper", "lowest", "paper"), rows)


def page(data: Data) -> str:
    """Our highest and lowest beside the paper's, then the words."""
    words = [
        (f"{heavy} {h['mean']:.1f}", f"{light} {v['mean']:.1f}")
        for (heavy, h), (light, v) in zip(data["heaviest"].items(), data["lightest"].items(), strict=True)
    ]
    return "\n\n".join(
        [
            f"{data['sentences']:,} random sentences of English Wikipedia of {SHORTEST} to {LONGEST} tokens, tagged by "
            "TextBlob's pattern tagger (the paper: at most 15 tokens, the Stanford parser). Tags seen fewer than "
            f"{LEAST_TAG} times are left out. Spearman rho with the paper's order over the tags it lists: "
            f"{number(data['rho_with_paper'], 2)}.",
            highest_and_lowest(data["tags"], PAPER),
            lengths_of(data, PAPER),
            f"Heaviest and lightest of the {data['words']:,} words seen {LEAST_WORD} times or more:",
            table(("heaviest", "lightest"), words),
        ]
    )


ANALYSIS = Analysis(
    name="gate",
    title="GRAN's gate by part of speech",
    source="Wieting & Gimpel 2017, section 5.2, Table 9",
    recipes=("gran-1",),
    compute=compute,
    draw=draw,
    page=page,
    pictures={"gate-by-tag.png": "mean L1 norm of the gate for each part of speech"},
    most=1,
)
