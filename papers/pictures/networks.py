"""The network of each page of docs/papers, as its published recipe builds it, with words for its steps."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import papers.recipes  # noqa: F401 (makes them known)
from papers.pictures.layout import svg
from papers.pictures.trace import Step, Trace, traced
from training.models import (
    GRAN,
    MGIM,
    PWIM,
    CrossEncoder,
    CrossEncoderConfig,
    GRANConfig,
    LSTMConfig,
    LSTMEncoder,
    MGIMConfig,
    PWIMConfig,
    WordAveraging,
    WordAveragingConfig,
)
from training.models.layers import WordEmbedding
from training.models.malstm import manhattan_similarity
from training.recipes import RECIPES

A, B = 6, 8  # words of the two sentences that are drawn
VOCABULARY = 20
PIECES = 110  # with [CLS] and [SEP], 101 and 102
WORDS = "each word's row of the word table"


@dataclass(frozen=True)
class Picture:
    """A network to draw.

    Attributes:
        recipe: the published recipe whose settings it has.
        title: the picture's.
        build: the recipe's architecture, words' width and classes -> the module, its steps, and the whole computation.
    """

    recipe: str
    title: str
    build: Callable[[Any, int, int], "Network"]

    def network(self) -> "Network":
        """The module with random weights."""
        recipe = RECIPES[self.recipe]
        torch.manual_seed(1)
        width = getattr(recipe.table, "dim", 0)
        return self.build(recipe.architecture, width, len(getattr(recipe.objective, "classes", None) or ()))

    def trace(self) -> Trace:
        """Its boxes for two sentences."""
        network = self.network()
        a, b = (torch.arange(2, 2 + words)[None] for words in (A, B))
        network.module.eval()
        run = network.run

        def whole() -> None:
            run((a, torch.tensor([A])), (b, torch.tensor([B])))

        return traced(whole, network.steps, {"sentence a": a, "sentence b": b})

    def draw(self) -> str:
        """The SVG."""
        return svg(
            self.trace(),
            self.title,
            f"Drawn from the module of {self.recipe} while it read sentences of {A} and {B} words "
            f"(python -m papers draw).",
        )


Side = tuple[Tensor, Tensor]  # ids [1, T], lengths [1]


@dataclass(frozen=True)
class Network:
    """A module, what to show of it, and how it answers for a pair."""

    module: nn.Module
    steps: list[Step]
    run: Callable[[Side, Side], Any]


class _Comparison:
    """The function that compares two sentences' vectors, as something that a step can watch."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.compare = function


def _words(width: int) -> WordEmbedding:
    return WordEmbedding(np.random.default_rng(1).normal(size=(VOCABULARY, width)).astype(np.float32))


def _siamese(encoder: nn.Module, steps: list[Step], comparison: _Comparison, title: str, words: str) -> Network:
    return Network(
        encoder,
        [*steps, Step(comparison, "compare", title, words)],
        lambda a, b: comparison.compare(encoder(*a), encoder(*b)),
    )


COSINE = "of the angle between a and b: 1 where they point the same way"


def _cosine() -> _Comparison:
    return _Comparison(lambda a, b: nn.functional.cosine_similarity(a, b, dim=1))


def _file_of(module: nn.Module) -> Any:
    """The file's functions that a module calls."""
    return sys.modules[type(module).__module__]


def _averaging(config: WordAveragingConfig, width: int, classes: int) -> Network:
    encoder = WordAveraging(config, _words(width))
    steps = [
        Step(encoder.embedding, "forward", "word vectors", WORDS, each=width),
        Step(_file_of(encoder), "masked_mean", "mean", "the sum of the word vectors over their number"),
    ]
    return _siamese(encoder, steps, _cosine(), "cosine", COSINE)


def _gran(config: GRANConfig, width: int, classes: int) -> Network:
    encoder = GRAN(config, _words(width))
    steps = [
        Step(encoder.embedding, "forward", "word vectors x", WORDS, each=width),
        Step(encoder.lstm, "forward", "LSTM", "reads from left to right; its state h holds the words so far"),
        Step(
            encoder,
            "_averaged",
            "gated words",
            "x · sigmoid(Wx x + Wh h + b): the state says how much of each value of a word counts here",
            (encoder.gates,),
        ),
        Step(_file_of(encoder), "masked_mean", "mean", "the sum of the gated words over their number"),
    ]
    return _siamese(encoder, steps, _cosine(), "cosine", COSINE)


def _malstm(config: LSTMConfig, width: int, classes: int) -> Network:
    encoder = LSTMEncoder(config, _words(width))
    steps = [
        Step(encoder.embedding, "forward", "word vectors", WORDS, each=width),
        Step(encoder.lstm, "forward", "LSTM", "reads from left to right, one word after the other"),
        Step(encoder, "_added", "last state", "what the LSTM remembers after the last word: the sentence's vector"),
    ]
    words = "exp(-(|a1 - b1| + |a2 - b2| + ...)): 1 for equal vectors, towards 0 the further they are apart"
    return _siamese(encoder, steps, _Comparison(manhattan_similarity), "similarity", words)


def _pwim(config: PWIMConfig, width: int, classes: int) -> Network:
    network = PWIM(config, _words(width), classes)
    steps = [
        Step(network.embedding, "forward", "word vectors", WORDS, each=width),
        Step(
            network.lstm, "forward", "BiLSTM", "reads forwards and backwards: two states for each word, in its context"
        ),
        Step(
            network,
            "_cube",
            "cube of word pairs",
            "every word of a with every word of b: cosine, distance and dot product of both states, of each state and "
            "of their sum, and one channel of ones",
        ),
        Step(
            network,
            "_focus",
            "similarity focus",
            "words are matched one to one, most similar first: a matched pair has weight 1, every other pair .1",
        ),
        Step(
            network,
            "_convolve",
            "convolutions",
            "five layers of 3 x 3 over cube times focus, as over an image, each but the last halving it; of each map "
            "the largest value",
            (network.convolutions,),
        ),
        Step(network.hidden, "forward", "hidden layer", "a linear map, negative values set to 0"),
        Step(network.output, "forward", "ratings", "probabilities of the ratings 1 to 5; their mean is the score"),
    ]
    return Network(network, steps, lambda a, b: network(*a, *b))


def _mgim(config: MGIMConfig, width: int, classes: int) -> Network:
    network = MGIM(config, _words(width), classes)
    last = "into spr, the pair's vector"
    steps = [
        Step(network.embedding, "forward", "word vectors", WORDS, each=width),
        Step(network.first, "conditioned", "BiLSTM of a", "reads a in both directions: states Y", (network.first,)),
        Step(
            network.second,
            "conditioned",
            "BiLSTM of b",
            "reads b, beginning with the memory that reading a left: states h",
            (network.second,),
        ),
        Step(
            network.attention,
            "forward",
            "attention, word by word",
            "for each word of b: weights over the words of a, and r, the sum of Y by them; r passes on to the next "
            "word",
        ),
        Step(network.of_b, "forward", "Wx h", f"the end of b {last}"),
        Step(network.of_a, "forward", "Wr r", f"what was read of a {last}"),
        Step(network.difference, "forward", "Wd |h - r|", "where they differ (ours)"),
        Step(network.product, "forward", "Wm (h · r)", "where they agree (ours)"),
        Step(
            network.output,
            "forward",
            "ratings",
            "Ws tanh(the sum): probabilities of the ratings 1 to 5; their mean is the score",
        ),
    ]
    return Network(network, steps, lambda a, b: network(*a, *b))


def _cross_encoder(config: CrossEncoderConfig, width: int, classes: int) -> Network:
    network = CrossEncoder(replace(config, bert=replace(config.bert, vocabulary=PIECES)))
    names = {
        "entailment": "entailed, neutral or contradicted",
        "similarity": "how alike, 0 to 5",
        "paraphrase": "the same statement?",
        "related": "the same, as questions and tweets call it?",
        "relevance": "does b answer a?",
    }
    bert = network.bert
    layers = config.bert.layers
    steps = [
        Step(
            bert.embeddings,
            "forward",
            "one sequence",
            "[CLS] a [SEP] b [SEP]: of each piece of a word the vectors of the piece, of its place and of its sentence",
            each=config.bert.hidden,
        ),
        Step(
            bert.encoder,
            "forward",
            f"{layers} layers of attention",
            f"in each, every piece reads all pieces of both sentences ({config.bert.attention_heads} heads), then a "
            "small network of its own changes it",
        ),
        Step(
            _file_of(network),
            "pooled",
            "mean of the states",
            "read beside the state of [CLS] by every head",
        ),
        *(Step(network.heads[name], "forward", name, names[name]) for name in config.heads),
    ]
    return Network(network, steps, lambda a, b: network(*a, *b))


PICTURES: Mapping[str, Picture] = {
    "paragram_phrase": Picture("avg-near", "Word averaging compares the means of two sentences' words", _averaging),
    "gran": Picture("gran-1", "GRAN compares means of gated words", _gran),
    "malstm": Picture("malstm-sick", "MaLSTM compares the last states of one LSTM", _malstm),
    "pwim": Picture("pwim-sick", "PWIM compares every word with every word", _pwim),
    "mgim": Picture("mgim-sick", "MGIM reads b with its attention on a", _mgim),
    "cross_encoder": Picture("minilm-cross", "The cross-encoder reads both sentences as one", _cross_encoder),
}
