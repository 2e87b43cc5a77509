"""MGIM: a conditional BiLSTM over both sentences, with attention of each word of the second to those of the first.

X. Li, C. Yao, Q. Zhang, G. Zhang, "Semantic Similarity Modeling Based on Multi-Granularity Interaction Matching",
2019, sections 3.2 to 4.2. Departures and scores: docs/papers/mgim.md.
    x       = W^p w, for the vector w of each word (`projected`), or w itself     (Rocktaeschel et al. 2016)
    Y, c    = BiLSTM(sentence a)                    outputs (forward + backward) and last cells
    h       = BiLSTM'(sentence b), its cells starting at c
    S_t     = tanh(W^y Y + W^h h_t)                                                                   (eq. 7)
    alpha_t = softmax(w . S_t), over the words of a                                                   (eq. 8)
    r_t     = Y alpha_t + tanh(W^r r_{t-1}),  r_0 = 0                                                 (eq. 9)
    spr     = tanh(W^x h_N + W^r' r_N),  N the last word of b                                         (eq. 10)
    output  = log softmax(W^s spr)                                                                    (eqs. 11, 13)

Shapes: B pairs, S tokens of a, T of b, D word dimensions, H hidden, K outputs; states have their directions in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from core.manifest import Matrix
from training.models.layers import WordNoise, mask, width
from training.models.recurrent import LSTM, Steps, onnx_rnn

FORGET_BIAS = 1.0  # start of the forget gates' biases; not given in the paper


@dataclass(frozen=True)
class MGIMConfig:
    """The published model by default; the options are its ablations and our named departures."""

    name: ClassVar[str] = "mgim"
    hidden: int = 100  # of each direction; the paper searched 50 to 200
    dropout: float = 0.0  # of word vectors and of spr; the paper searched .1 to .4
    output_dropout: float = 0.0  # of what the BiLSTMs give at each word; `first_word` reads their last states undropped
    projected: bool = False  # words are projected to the hidden size, as the paper's shapes ask
    conditional: bool = True  # False: the second BiLSTM starts from zero
    attention: bool = True  # False: the last output of the first sentence in place of r_N
    comparison: bool = False  # terms |h_N - r_N| and h_N * r_N inside spr (not in the paper)
    first_word: bool = False  # h_N takes its backward state from the first word (not in the paper)
    copied_start: bool = False  # the second BiLSTM starts as a copy of the first (not in the paper)
    shared_words: bool = False  # counts of shared words and numbers beside spr in eq. 11 (not in the paper)
    overlaps: bool = False  # among these also n-grams of two to four, lengths, and the cosine of the words' sums


class MGIM(nn.Module):
    """Log-probabilities of classes for pairs of sentences; not symmetric in the two."""

    MATRICES: ClassVar[tuple[Matrix, ...]] = (
        Matrix(
            name="attention",
            description="weight of the word of a while the word of b is read; each column sums to 1",
            range=(0.0, 1.0),
        ),
    )

    def __init__(self, config: MGIMConfig, embedding: nn.Module, outputs: int) -> None:
        """Wrap the embedding of words; `outputs` is the number of classes.

        The paper gives no initialisation: here weights of the LSTMs are Gaussian (0.1), the others Glorot uniform.
        """
        super().__init__()
        inputs, hidden = width(embedding), config.hidden
        self.config, self.embedding = config, embedding
        self.noise, self.dropout = WordNoise(config.dropout, 0.0), nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.output_dropout)
        self.project = _matrix(inputs, hidden) if config.projected else None  # W^p
        inputs = hidden if config.projected else inputs
        self.first, self.second = (
            LSTM(inputs, hidden, peepholes=False, bidirectional=True, forget_bias=FORGET_BIAS) for _ in range(2)
        )
        if config.copied_start:
            self.second.load_state_dict(self.first.state_dict())
        self.attention = _Attention(hidden) if config.attention else None
        self.of_b = _matrix(hidden, hidden)  # W^x
        self.of_a = _matrix(hidden, hidden)  # W^r'
        self.difference = _matrix(hidden, hidden) if config.comparison else None
        self.product = _matrix(hidden, hidden) if config.comparison else None
        self.output = _matrix(hidden, outputs)  # W^s
        self.counts = nn.Linear(SHARED + OVERLAPS * config.overlaps, outputs) if config.shared_words else None
        self.numbers_V: Tensor
        if config.shared_words:  # replaced by `mark_numbers`, and no part of the weights
            self.register_buffer("numbers_V", torch.zeros(1), persistent=False)

    def counted(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """What the two sentences share [B, C]: `shared_counts` and, with `overlaps`, `overlaps_of`."""
        pair = input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B
        found = shared_counts(*pair, self.numbers_V[input_ids_a_BS], self.numbers_V[input_ids_b_BT])
        if not self.config.overlaps:
            return found
        words = self.embedding(input_ids_a_BS), self.embedding(input_ids_b_BT)
        return torch.cat([found, overlaps_of(*pair, *words)], dim=1)

    def mark_numbers(self, has_digit_V: Sequence[bool]) -> None:
        """Say which ids of the vocabulary stand for a number or a piece of one, for `shared_words`."""
        self.numbers_V = torch.tensor(has_digit_V, dtype=torch.float32, device=self.output.weight.device)

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """Ids [B, S], [B, T] and lengths [B] (each at least 1) of both sentences -> log-probabilities [B, K]."""
        y_BSKH, y_last_BKH, h_BTKH, h_last_BKH = self._read(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
        h_BH = self._last_output(h_BTKH, h_last_BKH, lengths_b_B)
        if self.attention is None:
            r_BH = self._last_output(y_BSKH, y_last_BKH, lengths_a_B)
        else:
            r_BH = self.attention(y_BSKH.sum(2), lengths_a_B, h_BTKH.sum(2), lengths_b_B)
        inside_BH = self.of_b(h_BH) + self.of_a(r_BH)
        if self.difference is not None and self.product is not None:
            inside_BH = inside_BH + self.difference((h_BH - r_BH).abs()) + self.product(h_BH * r_BH)
        spr_BH = self.dropout(torch.tanh(inside_BH))
        scores_BK = self.output(spr_BH)
        if self.counts is not None:
            found_BC = self.counted(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
            scores_BK = scores_BK + self.counts(found_BC)
        return torch.log_softmax(scores_BK, dim=-1)

    def matrices(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """The same -> `MATRICES` [B, 1, S, T], zero on the padding (Figures 4 and 5 of the paper).

        Raises:
            ValueError: the model has no attention.
        """
        if self.attention is None:
            raise ValueError("a model without attention has no matrix to show")
        y_BSKH, _, h_BTKH, _ = self._read(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B)
        alpha_BTS = self.attention.weights(y_BSKH.sum(2), lengths_a_B, h_BTKH.sum(2))
        alpha_BTS = alpha_BTS * mask(lengths_b_B, input_ids_b_BT.shape[1])[:, :, None]
        return alpha_BTS.transpose(1, 2)[:, None]

    def _read(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """States [B, tokens, 2, H] and last states [B, 2, H] of the first sentence, then of the second."""
        words_a, words_b = self.noise(self.embedding(input_ids_a_BS)), self.noise(self.embedding(input_ids_b_BT))
        if self.project is not None:
            words_a, words_b = self.project(words_a), self.project(words_b)
        y_BSKH, y_last_BKH, cells_KBH = self.first.conditioned(words_a, lengths_a_B)
        first_cells_KBH = cells_KBH if self.config.conditional else None
        h_BTKH, h_last_BKH, _ = self.second.conditioned(words_b, lengths_b_B, first_cells_KBH)
        return self.output_dropout(y_BSKH), y_last_BKH, self.output_dropout(h_BTKH), h_last_BKH

    def _last_output(self, states_BTKH: Tensor, last_BKH: Tensor, lengths_B: Tensor) -> Tensor:
        """h_N [B, H]: both states at the last word; the backward one depends on that word only."""
        return last_BKH.sum(1) if self.config.first_word else _at_last_word(states_BTKH.sum(2), lengths_B)


SHARED = 6  # values of `shared_counts`
GRAMS = (2, 3, 4)
OVERLAPS = 2 * len(GRAMS) + 3  # values of `overlaps_of`
USUAL_LENGTH = 32.0  # tokens


def shared_counts(
    ids_a_BS: Tensor,
    lengths_a_B: Tensor,
    ids_b_BT: Tensor,
    lengths_b_B: Tensor,
    numbers_a_BS: Tensor,
    numbers_b_BT: Tensor,
) -> Tensor:
    """What two sentences share by the ids of their tokens -> [B, 6], each value in 0..1.

    The share of a's tokens that b has, that of b's that a has; 1 where a (where b) has a number that the other lacks; 1
    where both have a number; the difference in length over the longer length. `numbers_...`: 1 where a token is of a
    number. Z. Kozareva and A. Montoyo (2006), whom the paper compares with, classify by such counts.
    """
    real_a_BS, real_b_BT = mask(lengths_a_B, ids_a_BS.shape[1]), mask(lengths_b_B, ids_b_BT.shape[1])
    same_BST = _same(ids_a_BS, real_a_BS, ids_b_BT, real_b_BT)
    counts, any_number = [], []
    for real, numbers, along in ((real_a_BS, numbers_a_BS, 2), (real_b_BT, numbers_b_BT, 1)):
        found = same_BST.amax(along)
        counts += [found.sum(1) / real.sum(1), (real * numbers * (1 - found)).amax(1)]
        any_number.append((real * numbers).amax(1))
    longer = torch.maximum(lengths_a_B, lengths_b_B).float()
    apart = (lengths_a_B - lengths_b_B).abs().float() / longer
    return torch.stack([*counts, any_number[0] * any_number[1], apart], dim=1)


def overlaps_of(
    ids_a_BS: Tensor,
    lengths_a_B: Tensor,
    ids_b_BT: Tensor,
    lengths_b_B: Tensor,
    words_a_BSD: Tensor,
    words_b_BTD: Tensor,
) -> Tensor:
    """More of what two sentences share -> [B, 9].

    For n-grams of two, three and four tokens the share of a's that b has, and of b's that a has (0 where there are
    none); both lengths in units of 32 tokens; the cosine of the sums of word vectors. S. Wan, M. Dras, R. Dale and C.
    Paris (2006) classify MSRP by overlaps and lengths.
    """
    real_a_BS, real_b_BT = mask(lengths_a_B, ids_a_BS.shape[1]), mask(lengths_b_B, ids_b_BT.shape[1])
    same_BST = _same(ids_a_BS, real_a_BS, ids_b_BT, real_b_BT)
    shares, run_BST = [], same_BST
    for n in GRAMS:  # run: 1 where n tokens from here on are equal
        run_BST = run_BST * nn.functional.pad(same_BST, (0, n - 1, 0, n - 1))[:, n - 1 :, n - 1 :]
        for lengths_B, along in ((lengths_a_B, 2), (lengths_b_B, 1)):
            shares.append(run_BST.amax(along).sum(1) / (lengths_B - (n - 1)).clamp(min=1))
    sums = (words_a_BSD * real_a_BS[:, :, None]).sum(1), (words_b_BTD * real_b_BT[:, :, None]).sum(1)
    lengths = lengths_a_B / USUAL_LENGTH, lengths_b_B / USUAL_LENGTH
    return torch.stack([*shares, *lengths, nn.functional.cosine_similarity(*sums, dim=1)], dim=1)


def _same(ids_a_BS: Tensor, real_a_BS: Tensor, ids_b_BT: Tensor, real_b_BT: Tensor) -> Tensor:
    """1 where a word of a is one of b [B, S, T], 0 elsewhere and on the padding."""
    return (ids_a_BS[:, :, None] == ids_b_BT[:, None, :]).float() * real_a_BS[:, :, None] * real_b_BT[:, None, :]


class _Attention(nn.Module):
    """Word-by-word attention of section 3.3."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.on_a = _matrix(hidden, hidden)  # W^y
        self.on_b = _matrix(hidden, hidden)  # W^h
        self.score = _matrix(hidden, 1)  # w
        self.carry = _matrix(hidden, hidden)  # W^r

    def forward(self, y_BSH: Tensor, lengths_a_B: Tensor, h_BTH: Tensor, lengths_b_B: Tensor) -> Tensor:
        """Outputs of both sentences -> r_N [B, H]."""
        read_BTH = torch.bmm(self.weights(y_BSH, lengths_a_B, h_BTH), y_BSH)
        if torch.onnx.is_in_onnx_export():
            return self._as_onnx(read_BTH, lengths_b_B)
        steps = Steps(lengths_b_B, h_BTH.shape[1])
        first_BH, *others = steps.pack(read_BTH).split(steps.counts)
        r = [first_BH]
        for now_BH in others:
            r.append(now_BH + torch.tanh(self.carry(r[-1][: len(now_BH)])))
        return steps.at_end(r)

    def weights(self, y_BSH: Tensor, lengths_a_B: Tensor, h_BTH: Tensor) -> Tensor:
        """alpha [B, T, S] of all words of b at once: they do not depend on r. Zero on the padding of a."""
        inside_BTSH = self.on_a(y_BSH)[:, None] + self.on_b(h_BTH)[:, :, None]
        scores_BTS = self.score(torch.tanh(inside_BTSH)).squeeze(3)
        padding_BS = mask(lengths_a_B, y_BSH.shape[1]) == 0
        return torch.softmax(scores_BTS.masked_fill(padding_BS[:, None], -torch.inf), dim=2)

    def _as_onnx(self, read_BTH: Tensor, lengths_b_B: Tensor) -> Tensor:
        """With u_t = Y alpha_t and s_t = r_t - u_t, eq. 9 is s_t = tanh(W^r s_{t-1} + W^r u_{t-1}), s_0 = u_0 = 0.

        That is the ONNX operator RNN, both of its matrices W^r, over u moved by one word.
        """
        moved_BTH = torch.cat([torch.zeros_like(read_BTH[:, :1]), read_BTH], dim=1)
        weight = self.carry.weight[None]
        none = torch.zeros_like(weight[:, 0])
        _, s_BKH = onnx_rnn(moved_BTH, lengths_b_B, weight, weight, none, activation="tanh")
        return _at_last_word(read_BTH, lengths_b_B) + s_BKH.squeeze(1)


def _matrix(inputs: int, outputs: int) -> nn.Linear:
    """A matrix without a bias, as all of the paper's outside its LSTMs."""
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(layer.weight)
    return layer


def _at_last_word(values_BTH: Tensor, lengths_B: Tensor) -> Tensor:
    """[B, T, H] -> [B, H]."""
    last_B1H = (lengths_B - 1)[:, None, None].expand(-1, 1, values_BTH.shape[2])
    return values_BTH.gather(1, last_B1H).squeeze(1)
