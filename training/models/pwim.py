"""PWIM: pairwise word interactions, a similarity focus, and a deep convolutional network over them.

H. He, J. Lin, "Pairwise Word Interaction Modeling with Deep Neural Networks for Semantic Similarity Measurement", NAACL
2016. A Bi-LSTM encodes both sentences; twelve similarities of every word of one with every word of the other, and a
thirteenth channel that marks real cells, form a cube; a greedy one-to-one matching weights its cells; a convolutional
network classifies the weighted cube like an image. Departures and scores: docs/papers/pwim.md.

Shapes: B pairs, S tokens of a, T of b, D word dimensions, H hidden, K outputs, C channels, R the three representations
of a word in its context: forward state, backward state, their sum.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from core.manifest import Matrix
from training.models.focus import greedy_matching
from training.models.layers import width
from training.models.recurrent import LSTM, Attributes

Sizes = TypeVar("Sizes", int, Tensor)

CHANNELS = 13
COSINE, NEGATED_L2 = 9, 10  # of the sum of both directions: the paper's channels 10 and 11
UNMATCHED = 0.1  # weight of real cells that the matching leaves
FOCUS_DROPOUT = 0.3  # of the cube, with focus "dropout"
# Similarities are rounded to multiples of this before matching, so that values that differ only by rounding errors (of
# a repeated word) are equal and ties are broken by position. Otherwise the score could depend on the other pairs of a
# batch, which change the last bits. A power of two, so that the division is exact.
STEP = 2.0**-12


@dataclass(frozen=True)
class PWIMConfig:
    """The published model by default; the options are its ablations and our named departures."""

    name: ClassVar[str] = "pwim"
    hidden: int = 250  # of each direction
    context: bool = True  # False: word vectors take the place of both directions' states
    focus: Literal["full", "dropout", "none"] = "full"
    limit: int = 32  # tokens of a sentence
    grid: int = 32  # a pair's image is rounded up to multiples of this: the limit gives the paper's fixed size
    word_scale: float = 1.0  # word vectors are multiplied by this before the LSTM
    maps: tuple[int, ...] = (128, 164, 192, 192, 128)  # that each convolution makes
    same_words: bool = False  # one more channel: 1 where both words are the same token (not in the paper)


class PWIMFeatures(nn.Module):
    """What the network makes of a pair, before its classes."""

    MATRICES: ClassVar[tuple[Matrix, ...]] = (
        Matrix(name="cosine", description="cosine of the two words in their contexts", range=(-1.0, 1.0)),
        Matrix(
            name="focus",
            description="weight of the meeting: 1 where the words were matched one to one, 0.1 where not",
            range=(0.0, 1.0),
        ),
    )

    def __init__(self, config: PWIMConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words."""
        super().__init__()
        inputs = width(embedding)
        self.config, self.embedding = config, embedding
        hidden = config.hidden
        self.lstm = LSTM(inputs, hidden, deviation=hidden**-0.5, peepholes=False) if config.context else None
        channels = (CHANNELS + config.same_words, *config.maps)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel_size=3, padding=1) for before, after in pairwise(channels)
        )
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv2d)
            nn.init.kaiming_normal_(convolution.weight)
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)

    def of_pair(self, a: "SentenceBatch", b: "SentenceBatch") -> Tensor:
        """Both sentences -> features [B, C], C the last of the maps."""
        cube_BCST, real_BST = self._cube(a, b)
        focus_BST = self._focus(cube_BCST, real_BST)
        weights_BCST = torch.cat(
            [focus_BST[:, None].expand(-1, cube_BCST.shape[1] - 1, -1, -1), real_BST[:, None].float()], 1
        )
        cube_BCST = cube_BCST * weights_BCST  # the weight of the indicator channel is 1
        if self.config.focus == "dropout":
            cube_BCST = nn.functional.dropout(cube_BCST, FOCUS_DROPOUT, self.training)
        return self._convolve(cube_BCST, a.lengths_B, b.lengths_B)

    def matrices(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """The same -> `MATRICES` [B, 2, S, T], zero on the padding (Table 10 of the paper shows their product)."""
        a, b = self.side(input_ids_a_BS, lengths_a_B), self.side(input_ids_b_BT, lengths_b_B)
        cube_BCST, real_BST = self._cube(a, b)
        focus_BST = self._focus(cube_BCST, real_BST)
        return torch.stack([cube_BCST[:, COSINE].clamp(-1.0, 1.0), focus_BST], dim=1) * real_BST[:, None].float()

    def side(self, input_ids_BT: Tensor, lengths_B: Tensor) -> "SentenceBatch":
        """One sentence of each pair: forward states, backward states and their sum of every word."""
        forward_BTH, backward_BTH = self._states(input_ids_BT, lengths_B)
        states_BRTH = torch.stack([forward_BTH, backward_BTH, forward_BTH + backward_BTH], dim=1)
        return SentenceBatch(input_ids_BT, lengths_B, states_BRTH)

    def _cube(self, a: "SentenceBatch", b: "SentenceBatch") -> tuple[Tensor, Tensor]:
        """The channels [B, C, S, T], anything on the padding, and where the cells are real, bool [B, S, T].

        Algorithm 1: for [both directions joined, forward, backward, their sum] the triple (cosine, negated L2, dot),
        then that of same words where there is one, and last the indicator of real cells.
        """
        similarities_BCST = _similarities(a.states_BRTH, b.states_BRTH)
        real_BST = (
            _real(a.lengths_B, a.ids_BT.shape[1])[:, :, None] & (_real(b.lengths_B, b.ids_BT.shape[1])[:, None, :])
        )
        channels = [similarities_BCST]
        if self.config.same_words:
            channels.append((a.ids_BT[:, :, None] == b.ids_BT[:, None, :])[:, None].float())
        return torch.cat([*channels, torch.ones_like(similarities_BCST[:, :1])], dim=1), real_BST

    def _states(self, input_ids_BT: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """Forward and backward states [B, T, H] of every word."""
        words_BTD = self.embedding(input_ids_BT) * self.config.word_scale
        if self.lstm is None:
            return words_BTD, words_BTD
        # One LSTM reads each sentence forwards and reversed, as in the release, as a batch of twice the size.
        turned_BTD = turned(words_BTD, lengths_B)
        states_BTKH, _ = self.lstm(torch.cat([words_BTD, turned_BTD]), torch.cat([lengths_B, lengths_B]))
        forward_BTH, backward_BTH = states_BTKH[:, :, 0].unflatten(0, (2, lengths_B.shape[0])).unbind(0)
        return forward_BTH, turned(backward_BTH, lengths_B)

    def _focus(self, cube_BCST: Tensor, real_BST: Tensor) -> Tensor:
        """Weights [B, S, T]: 1 on cells matched by cosine or by L2, UNMATCHED on other real ones (Algorithm 2)."""
        if self.config.focus in ("none", "dropout"):
            return real_BST.float()
        # Both channels in one matching, as a batch of twice the size, in units of STEP.
        similarity_BST = torch.round(cube_BCST[:, COSINE : NEGATED_L2 + 1].flatten(0, 1).detach() / STEP)
        both_BST = real_BST[:, None].expand(-1, 2, -1, -1).flatten(0, 1)
        matched_BST = greedy_matching(similarity_BST, both_BST).unflatten(0, (-1, 2)).amax(1)
        return torch.where(matched_BST > 0, 1.0, UNMATCHED) * real_BST.float()

    def _convolve(self, cube_BCST: Tensor, lengths_a_B: Tensor, lengths_b_B: Tensor) -> Tensor:
        """The cube as an image -> features [B, last of the maps] (Table 1 of the paper).

        The image of a pair is its own size rounded up to the grid; cells beyond it, which longer pairs of the batch
        need, are set to zero after every layer, like the border of a separate image, so no other pair changes the
        result. The last pooling covers the rest of the image: 2x2 at the paper's 32, 3x3 at its 48.
        """
        grid = self.config.grid
        image = _padded_to_grid(cube_BCST, grid)
        rows_B, columns_B = _parts(lengths_a_B, grid) * grid, _parts(lengths_b_B, grid) * grid
        inside_B1ST = (
            _real(rows_B, image.shape[2])[:, None, :, None] & _real(columns_B, image.shape[3])[:, None, None, :]
        ).float()
        *earlier, last = self.convolutions
        for convolution in earlier:
            # Pooling before the ReLU gives the same result with a quarter of the work.
            image = torch.relu(_pooled(convolution(image) * inside_B1ST))
            inside_B1ST = _pooled(inside_B1ST)
        return torch.relu((last(image) * inside_B1ST).amax(dim=(2, 3)))


class PWIM(PWIMFeatures):
    """Log-probabilities of classes for pairs of sentences."""

    def __init__(self, config: PWIMConfig, embedding: nn.Module, outputs: int) -> None:
        """Wrap the embedding of words; `outputs` is the number of classes."""
        super().__init__(config, embedding)
        self.hidden = nn.Linear(config.maps[-1], config.maps[-1])
        self.output = nn.Linear(config.maps[-1], outputs)

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids and lengths of both sentences -> log-probabilities [B, K]."""
        features_BC = self.of_pair(self.side(input_ids_a_BS, lengths_a_B), self.side(input_ids_b_BT, lengths_b_B))
        return torch.log_softmax(self.output(torch.relu(self.hidden(features_BC))), dim=-1)


@dataclass(frozen=True)
class PWIMTasksConfig:
    """PWIM with a head for each of several tasks. Ours, not the paper's.

    Similarities of words alone cannot tell a contradiction from a neutral sentence, so the heads also read the states
    of both sentences pooled, as InferSent does (A. Conneau et al., EMNLP 2017).
    """

    name: ClassVar[str] = "pwim_tasks"
    pwim: PWIMConfig
    heads: Mapping[str, int]  # outputs of each
    hidden: int = 256  # of the layer that all heads share
    dropout: float = 0.1  # of its inputs and outputs

    @property
    def limit(self) -> int:
        """Tokens of a sentence."""
        return self.pwim.limit


class PWIMTasks(PWIMFeatures):
    """Heads over the pair's features and both sentences' pooled states."""

    def __init__(self, config: PWIMTasksConfig, embedding: nn.Module) -> None:
        """Wrap the embedding of words."""
        super().__init__(config.pwim, embedding)
        self.tasks = config
        pooled = 8 * (self.lstm.hidden if self.lstm is not None else width(embedding))
        self.trunk = nn.Linear(config.pwim.maps[-1] + pooled, config.hidden)
        self.heads = nn.ModuleDict({name: nn.Linear(config.hidden, outputs) for name, outputs in config.heads.items()})

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> dict[str, Tensor]:
        """Ids and lengths of both sentences -> for each head its raw outputs [B, K]."""
        a, b = self.side(input_ids_a_BS, lengths_a_B), self.side(input_ids_b_BT, lengths_b_B)
        u_BF, v_BF = a.pooled(), b.pooled()
        features_BF = torch.cat([self.of_pair(a, b), u_BF, v_BF, (u_BF - v_BF).abs(), u_BF * v_BF], dim=1)
        dropout = functools.partial(nn.functional.dropout, p=self.tasks.dropout, training=self.training)
        shared_BH = dropout(torch.relu(self.trunk(dropout(features_BF))))
        return {name: head(shared_BH) for name, head in self.heads.items()}


class SentenceBatch(NamedTuple):
    """One sentence of each pair of a batch."""

    ids_BT: Tensor
    lengths_B: Tensor
    states_BRTH: Tensor

    def pooled(self) -> Tensor:
        """The largest value of each forward and backward state over the words [B, 2 H]."""
        both_BTF = self.states_BRTH[:, :2].transpose(1, 2).flatten(2)
        return both_BTF.masked_fill(~_real(self.lengths_B, self.ids_BT.shape[1])[:, :, None], -1e4).amax(1)


def _similarities(a_BRSH: Tensor, b_BRTH: Tensor) -> Tensor:
    """Cosine, negated Euclidean distance and dot product [B, 12, S, T]; larger means more similar.

    Of both directions joined (whose dot products and squares are the sums of theirs), then of each representation.
    """
    if torch.is_autocast_enabled("cpu"):  # bfloat16 would match words by rounding errors
        with torch.autocast("cpu", enabled=False):
            return _similarities(a_BRSH.float(), b_BRTH.float())
    dot, distance = _joined(a_BRSH @ b_BRTH.transpose(2, 3)), _joined(_squared_distance(a_BRSH, b_BRTH))
    squares_a, squares_b = (_joined((states**2).sum(3)) for states in (a_BRSH, b_BRTH))
    cosine = dot / torch.sqrt((squares_a[:, :, :, None] * squares_b[:, :, None]).clamp(min=1e-12))
    # -sqrt(distance + 1e-10), because the root has an infinite gradient at zero (equal words). Written with a 1 because
    # the exporter's optimiser treats an added 1e-10 as zero and removes it.
    return torch.stack([cosine, torch.sqrt(distance * 1e10 + 1.0) * -1e-5, dot], dim=2).flatten(1, 2)


def _joined(values_BRX: Tensor) -> Tensor:
    """Sums over the two directions, before the values of each representation."""
    return torch.cat([values_BRX[:, :1] + values_BRX[:, 1:2], values_BRX], dim=1)


def _squared_distance(a_BRSH: Tensor, b_BRTH: Tensor) -> Tensor:
    """[B, R, S, T], term by term, because the binomial form loses the distance of nearly equal words to rounding."""
    if torch.onnx.is_in_onnx_export():  # one representation at a time, to limit memory to [B, S, T, H]
        pairs = zip(a_BRSH.unbind(1), b_BRTH.unbind(1), strict=True)
        differences = (a_BSH[:, :, None] - b_BTH[:, None] for a_BSH, b_BTH in pairs)
        # In ONNX Runtime a product is twice as fast as a power.
        return torch.stack([(each_BSTH * each_BSTH).sum(3) for each_BSTH in differences], dim=1)
    # cdist avoids the tensor [B, R, S, T, H], which took half of a training step.
    return torch.cdist(a_BRSH, b_BRTH, compute_mode="donot_use_mm_for_euclid_dist") ** 2


def turned(values_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Each sentence's values [B, T, D] in reverse order within its length; padding is unchanged."""
    position_T = torch.arange(values_BTD.shape[1], device=values_BTD.device)
    source_BT = torch.where(position_T < lengths_B[:, None], lengths_B[:, None] - 1 - position_T, position_T)
    return values_BTD.gather(1, source_BT[:, :, None].expand_as(values_BTD))


def _real(lengths_B: Tensor, size: int) -> Tensor:
    return torch.arange(size, device=lengths_B.device)[None, :] < lengths_B[:, None]


def _parts(size: Sizes, step: int) -> Sizes:
    """Ceiling of size / step. Without negative numbers, which ONNX divides towards zero and torch downwards."""
    return (size + step - 1) // step


def _padded_to_grid(cube_BCST: Tensor, grid: int) -> Tensor:
    """Zeros to the right and below, up to multiples of the grid."""
    rows, columns = (_parts(size, grid) * grid for size in cube_BCST.shape[2:])
    if torch.onnx.is_in_onnx_export():
        # Padding by a symbolic number would make the exporter specialise it to its example; selecting rows does not.
        wide = nn.functional.pad(cube_BCST, (0, grid - 1, 0, grid - 1))
        return wide.index_select(2, torch.arange(rows)).index_select(3, torch.arange(columns))
    padded = nn.functional.pad(cube_BCST, (0, columns - cube_BCST.shape[3], 0, rows - cube_BCST.shape[2]))
    return padded.contiguous(memory_format=torch.channels_last)


def _pooled(image_BCST: Tensor) -> Tensor:
    """Maximum of every 2x2 block, incomplete blocks at the ends included."""
    if not torch.onnx.is_in_onnx_export():
        return nn.functional.max_pool2d(image_BCST, 2, ceil_mode=True)
    # torch would specialise a symbolic size on whether it is even; the ONNX operator does not.
    attributes: Attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}
    batch, channels, rows, columns = image_BCST.shape
    shape = [batch, channels, _parts(rows, 2), _parts(columns, 2)]
    return torch.onnx.ops.symbolic("MaxPool", [image_BCST], attributes, dtype=image_BCST.dtype, shape=shape)
