"""A BERT or MPNet encoder with published weights, as a bi-encoder (`SentenceBERT`; all-MiniLM-L6-v2 is one) and as a
cross-encoder.

J. Devlin, M.-W. Chang, K. Lee, K. Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", NAACL 2019; W. Wang et al., "MiniLM", NeurIPS 2020; K. Song et al., "MPNet: Masked and Permuted
Pre-training for Language Understanding", NeurIPS 2020 (a learnt bias of each distance between two positions, no
segments); N. Reimers, I. Gurevych, "Sentence-BERT", EMNLP 2019 (pooling). Layers are normalised after each residual
sum, GELU is exact.

Ids come without special tokens: [CLS] and [SEP] are added here, so that limits, truncation
and explanations count the words of a text only.

Shapes: B rows, S tokens of a, T of b, L of the joined sequence, H hidden, A attention heads, K outputs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn


class Layout(NamedTuple):
    """What differs between the published encoders: their special tokens, positions and weights' names."""

    first: int  # id of the token before a sequence
    end: int  # id of the token after each sentence
    ends_between: int  # how many of it stand between two sentences
    first_position: int  # row of the first token in the table of positions
    segments: bool  # whether a sequence's sentences are told apart by an embedding
    distance_buckets: int  # rows of the table of attention biases by distance; 0: there is none
    epsilon: float  # of layer normalisation
    attention: Mapping[str, str]  # our names of a layer's attention weights -> those of the Hugging Face library


LAYOUTS: Mapping[str, Layout] = {
    # The ids are those of every vocabulary that BERT's authors published.
    "bert": Layout(
        101,
        102,
        1,
        0,
        True,
        0,
        1e-12,
        {
            "query": "attention.self.query",
            "key": "attention.self.key",
            "value": "attention.self.value",
            "attended": "attention.output.dense",
            "attended_norm": "attention.output.LayerNorm",
        },
    ),
    "mpnet": Layout(
        0,
        2,
        2,
        2,
        False,
        32,
        1e-5,
        {
            "query": "attention.attn.q",
            "key": "attention.attn.k",
            "value": "attention.attn.v",
            "attended": "attention.attn.o",
            "attended_norm": "attention.LayerNorm",
        },
    ),
}
FURTHEST = 128  # tokens: all larger distances share MPNet's last bucket


@dataclass(frozen=True)
class BERTConfig:
    """Sizes of the encoder: those of all-MiniLM-L6-v2."""

    vocabulary: int = 30522
    hidden: int = 384
    layers: int = 6
    attention_heads: int = 12
    inner: int = 1536
    positions: int = 512
    dropout: float = 0.0  # in training: of the embeddings, of what each sum adds, and of what the heads read
    layout: Literal["bert", "mpnet"] = "bert"
    frozen_words: bool = True  # word embeddings get no gradient: half of all weights, and rare words keep their places
    # Above 0 the whole encoder stays as published, and each layer's linear maps learn an update of this rank.
    update_rank: int = 0


@dataclass(frozen=True)
class SentenceBERTConfig:
    """The bi-encoder: without other settings that of all-MiniLM-L6-v2."""

    name: ClassVar[str] = "sentence_bert"
    bert: BERTConfig = BERTConfig()


@dataclass(frozen=True)
class CrossEncoderConfig:
    """The cross-encoder: each head by name, with the number of its outputs."""

    name: ClassVar[str] = "cross_encoder"
    bert: BERTConfig = BERTConfig()
    heads: Mapping[str, int] = field(
        default_factory=lambda: {"entailment": 3, "similarity": 1, "paraphrase": 1, "relevance": 1}
    )


class LowRankLinear(nn.Linear):
    """A linear map that stays as it is, and a learnt update of low rank beside it.

    E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022, equation 3. No gradient of
    the published weights is computed, and what is learnt of `all-mpnet-base-v2` fits in 5 MB.
    """

    SCALE = 2.0  # of the update, whatever its rank

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        """The update starts at zero."""
        super().__init__(inputs, outputs)
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """Values [.., inputs] -> [.., outputs]."""
        update = nn.functional.linear(nn.functional.linear(x, self.down), self.up)
        return super().forward(x) + self.SCALE * update


class Layer(nn.Module):
    """Self-attention and a feed-forward layer, each with a residual sum that is normalised."""

    def __init__(self, config: BERTConfig) -> None:
        """Weights start as in BERT: Gaussian of deviation 0.02 (`BERT`)."""
        super().__init__()
        hidden, epsilon = config.hidden, LAYOUTS[config.layout].epsilon
        self.attention_heads = config.attention_heads

        def linear(inputs: int, outputs: int) -> nn.Linear:
            rank = config.update_rank
            return LowRankLinear(inputs, outputs, rank) if rank else nn.Linear(inputs, outputs)

        self.query, self.key, self.value = (linear(hidden, hidden) for _ in range(3))
        self.attended = linear(hidden, hidden)
        self.attended_norm = nn.LayerNorm(hidden, eps=epsilon)
        self.inner = linear(hidden, config.inner)
        self.outer = linear(config.inner, hidden)
        self.outer_norm = nn.LayerNorm(hidden, eps=epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BLH: Tensor, bias: Tensor) -> Tensor:
        """States [B, L, H], what is added to the attention scores [B, 1, 1, L] or [B, A, L, L] -> states."""
        batch, length, hidden = x_BLH.shape

        def by_head(linear: nn.Linear) -> Tensor:
            values: Tensor = linear(x_BLH)
            return values.view(batch, length, self.attention_heads, hidden // self.attention_heads).transpose(1, 2)

        q_BALD, k_BALD, v_BALD = by_head(self.query), by_head(self.key), by_head(self.value)
        # In bfloat16 on a CPU faster than torch's own function, whose gradient is slow.
        scores_BALL = (q_BALD * q_BALD.shape[-1] ** -0.5) @ k_BALD.transpose(2, 3) + bias
        found = scores_BALL.softmax(-1).to(v_BALD.dtype) @ v_BALD
        attended = self.attended(found.transpose(1, 2).reshape(batch, length, hidden))
        x_BLH = self.attended_norm(x_BLH + self.dropout(attended))
        x_BLH = self.outer_norm(x_BLH + self.dropout(self.outer(nn.functional.gelu(self.inner(x_BLH)))))
        return x_BLH


class BERT(nn.Module):
    """Ids, positions and segments of a sequence -> the states of its last layer."""

    def __init__(self, config: BERTConfig) -> None:
        """Random weights; `load_weights` gives those of a published model."""
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.hidden)
        self.positions = nn.Embedding(config.positions, config.hidden)
        layout = LAYOUTS[config.layout]
        self.segments = nn.Embedding(2, config.hidden) if layout.segments else None
        self.distances = (
            nn.Embedding(layout.distance_buckets, config.attention_heads) if layout.distance_buckets else None
        )
        self.norm = nn.LayerNorm(config.hidden, eps=layout.epsilon)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)
        self.apply(_start)
        self.words.weight.requires_grad_(not config.frozen_words)
        if config.update_rank:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_(is_update(name))

    def forward(self, ids_BL: Tensor, positions_BL: Tensor, segments_BL: Tensor, real_BL: Tensor) -> Tensor:
        """Ids, positions, segments [B, L] and which of them are real, bool [B, L] -> states [B, L, H], anything on the
        padding, which may stand anywhere."""
        x_BLH = self.words(ids_BL) + self.positions(positions_BL + LAYOUTS[self.config.layout].first_position)
        if self.segments is not None:
            x_BLH = x_BLH + self.segments(segments_BL)
        x_BLH = self.dropout(self.norm(x_BLH))
        bias = (~real_BL).float()[:, None, None, :] * torch.finfo(torch.float32).min
        if self.distances is not None:
            buckets_BLL = distance_buckets(positions_BL, self.distances.num_embeddings)
            bias = bias + self.distances(buckets_BLL).permute(0, 3, 1, 2)
        for layer in self.layers:
            x_BLH = layer(x_BLH, bias)
        return x_BLH


def is_update(name: str) -> bool:
    """Whether a parameter of that name is half of a low-rank update."""
    return name.endswith((".down", ".up"))


def distance_buckets(positions_BL: Tensor, buckets: int) -> Tensor:
    """Positions [B, L] -> the bucket of the distance from each to each, [B, L, L], below `buckets`.

    Half of the buckets are for each direction; half of these hold one distance each, the others ever more of them, by
    the logarithm (C. Raffel et al., "Exploring the Limits of Transfer Learning", 2020, section 2.1).
    """
    behind_BLL = positions_BL[:, :, None] - positions_BL[:, None, :]
    each = buckets // 2
    exact = each // 2
    away_BLL = behind_BLL.abs()
    steps_BLL = torch.log(away_BLL.clamp(min=1).float() / exact) / math.log(FURTHEST / exact) * (each - exact)
    far_BLL = (exact + steps_BLL.long()).clamp(max=each - 1)
    return torch.where(away_BLL < exact, away_BLL, far_BLL) + each * (behind_BLL < 0).long()


class SentenceBERT(nn.Module):
    """The bi-encoder: the mean of the states of [CLS] a [SEP], brought to length 1."""

    def __init__(self, config: SentenceBERTConfig) -> None:
        """Random weights; see `load_weights`."""
        super().__init__()
        self.config = config
        self.bert = BERT(config.bert)
        self.output_dim = config.bert.hidden

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1; with 2 more, no more than the positions) -> embeddings [B, H]."""
        sequence = _join(LAYOUTS[self.config.bert.layout], (input_ids_BT, lengths_B))
        return nn.functional.normalize(_mean(self.bert(*sequence).float(), sequence.real_BL), dim=-1)


class CrossEncoder(nn.Module):
    """Heads over a pair that is read together: [CLS] a [SEP] b [SEP]."""

    def __init__(self, config: CrossEncoderConfig) -> None:
        """Random weights; `load_weights(model.bert, folder)` gives the encoder those of a published model."""
        super().__init__()
        self.config = config
        self.bert = BERT(config.bert)
        # Each reads the state of [CLS] and the mean of all.
        self.heads = nn.ModuleDict(
            {name: nn.Linear(2 * config.bert.hidden, outputs) for name, outputs in config.heads.items()}
        )
        self.heads.apply(_start)
        self.dropout = nn.Dropout(config.bert.dropout)

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> dict[str, Tensor]:
        """Ids and lengths of both sentences -> for each head its raw outputs, float32 [B, K].

        A length is at least 1; both, with 3 more, are no more than the positions.
        """
        features_BF = self.dropout(self.features(input_ids_a_BS, lengths_a_B, input_ids_b_BT, lengths_b_B))
        return {name: head(features_BF).float() for name, head in self.heads.items()}

    def features(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> Tensor:
        """What the heads read, float32 [B, 2 H]."""
        layout = LAYOUTS[self.config.bert.layout]
        sequence = _join(layout, (input_ids_a_BS, lengths_a_B), (input_ids_b_BT, lengths_b_B))
        states_BLH = self.bert(*sequence).float()
        return torch.cat([states_BLH[:, 0], _mean(states_BLH, sequence.real_BL)], dim=-1)


class _Sequence(NamedTuple):
    """The tensors of tokens that `BERT` reads."""

    ids_BL: Tensor
    positions_BL: Tensor
    segments_BL: Tensor
    real_BL: Tensor


def _join(layout: Layout, *sides: tuple[Tensor, Tensor]) -> _Sequence:
    """(ids, lengths) of each sentence -> [CLS] a [SEP] b [SEP], with each sentence's padding where it was.

    MPNet's sequence is <s> a </s> </s> b </s>.

    A position is that in the sequence without padding: attention knows no other
    order.
    """
    _, lengths_a = sides[0]
    column = torch.zeros_like(lengths_a)[:, None]
    ids, positions, segments = [column + layout.first], [column], [column]
    real = [column == 0]
    next_B1 = column + 1
    for segment, (ids_BT, lengths_B) in enumerate(sides):
        for _ in range(layout.ends_between - 1 if segment else 0):
            ids.append(column + layout.end)
            positions.append(next_B1)
            segments.append(column + segment)
            real.append(column == 0)
            next_B1 = next_B1 + 1
        places_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device)[None, :]
        real_BT = places_BT < lengths_B[:, None]
        ids += ids_BT, column + layout.end
        positions += (next_B1 + places_BT) * real_BT, next_B1 + lengths_B[:, None]
        segments += torch.full_like(ids_BT, segment), column + segment
        real += real_BT, column == 0
        next_B1 = next_B1 + lengths_B[:, None] + 1
    joined = _Sequence(*(torch.cat(parts, dim=1) for parts in (ids, positions, segments, real)))
    return joined if torch.compiler.is_exporting() else _without_gaps(joined)


def _without_gaps(sequence: _Sequence) -> _Sequence:
    """The same with all padding at the end, as long as its longest row: a batch is then no longer than its longest
    pair. It changes no answer; a graph keeps the padding where it is."""
    order_BL = torch.argsort(sequence.real_BL.int(), dim=1, descending=True, stable=True)
    order_BL = order_BL[:, : int(sequence.real_BL.sum(1).max())]
    return _Sequence(*(part.gather(1, order_BL) for part in sequence))


def _mean(states_BLH: Tensor, real_BL: Tensor) -> Tensor:
    """Mean over the real positions: [B, L, H], bool [B, L] -> [B, H]."""
    weights_BL = real_BL.float() / real_BL.sum(1, keepdim=True)
    return torch.bmm(weights_BL[:, None, :], states_BLH).squeeze(1)


def _start(module: nn.Module) -> None:
    """BERT's own first weights."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


# Our names of the modules -> those of the Hugging Face library.
_THEIRS = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "distances": "encoder.relative_attention_bias",
}
_THEIRS_IN_LAYER = {"inner": "intermediate.dense", "outer": "output.dense", "outer_norm": "output.LayerNorm"}


def load_weights(bert: BERT, folder: Path) -> None:
    """Give the encoder the weights of a model folder of the Hugging Face library, such as that of all-MiniLM-L6-v2.

    Args:
        bert: of the sizes of that model.
        folder: with `model.safetensors`.

    Raises:
        FileNotFoundError: no such file.
        KeyError, RuntimeError: a weight is missing, or has another shape.
        ModuleNotFoundError: the extra `distill` is not installed.
    """
    try:
        from safetensors.torch import load_file
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("reading published weights needs the extra: pip install -e '.[distill]'") from error
    path = folder / "model.safetensors"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    found = load_file(path)
    layout = LAYOUTS[bert.config.layout]
    own = bert.state_dict()
    theirs = {name: found[_their_name(name, layout)].float() for name in own if not is_update(name)}
    bert.load_state_dict(own | theirs)


def _their_name(name: str, layout: Layout) -> str:
    module, _, kind = name.rpartition(".")
    if module in _THEIRS:
        return f"{_THEIRS[module]}.{kind}"
    _, number, within = module.split(".")
    return f"encoder.layer.{number}.{ {**_THEIRS_IN_LAYER, **layout.attention}[within] }.{kind}"
