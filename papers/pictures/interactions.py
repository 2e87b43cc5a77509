"""Which words met in an interaction model: He & Lin (2016), Table 10; Li et al. (2019), Figures 4 and 5."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.text import split_words
from training.publish.runtime import PublishedModel

# Two pairs of SICK's kind, a reordered sentence, and one that only begins alike.
PAIRS = (
    ("A man is playing the drum", "A man is practicing the drum"),
    ("A man is carrying a tree", "A tree is being picked up by a man"),
    ("The company said profits rose in the third quarter.", "Third-quarter profits rose, the company said."),
    ("The company said profits rose in the third quarter.", "The company will close two plants in the spring."),
)
# What each published model's plot shows.
TITLES = {
    "pwim-sick": "pwim-sick: cosine of two words in their contexts, times the focus",
    "mgim-sick": "mgim-sick: attention to the words of a (down) at each word of b (right)",
}


@dataclass(frozen=True)
class Met:
    """A pair of sentences: their words, the score, and a value in 0..1 for each pair of words."""

    a: list[str]
    b: list[str]
    score: float
    values: list[list[float]]


def met(model: str, folder: Path) -> list[Met]:
    """The example pairs, as a published model of the folder sees them.

    Raises:
        ValueError: the model compares no words.
    """
    opened = PublishedModel(folder / model)
    explanation = opened.manifest.explanation
    if explanation is None:
        raise ValueError(f"{model} has no matrices of words")
    found = []
    for a, b in PAIRS:
        # Of several matrices the product: Table 10 is the cosine times the weight of the focus.
        values = np.prod(opened.outputs(explanation.graph, [a], [b])[0], axis=0).clip(0.0, 1.0)
        answer = opened.similarity([a], [b])
        score = float((answer.score if answer.rating is None else answer.rating)[0])
        found.append(Met(split_words(a), split_words(b), score, values.round(3).tolist()))
    return found
