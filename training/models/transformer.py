"""A published transformer as a bi-encoder (`SentenceBERT`; all-MiniLM-L6-v2 is one) and as a cross-encoder with heads.

The network is that of the library transformers; low-rank updates are those of the library peft (E. Hu et al., "LoRA:
Low-Rank Adaptation of Large Language Models", ICLR 2022). N. Reimers, I. Gurevych, "Sentence-BERT", EMNLP 2019
(pooling).

Modules read ids without special tokens, as all others do, and put them together as the service does
(`core.sequences`); `StatesOfTokens` is what is exported of a bi-encoder, with the inputs of such graphs.

Shapes: B rows, S tokens of a, T of b, L of the joined sequence, H hidden, K outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from core.graph import IDS, MASK, SEGMENTS
from core.sequences import Pooling, PoolingMode, SequenceFeeds
from core.subwords import SpecialTokens

# Of every vocabulary that the encoders' authors published: around one text, and around two.
SPECIAL: Mapping[str, tuple[SpecialTokens, SpecialTokens]] = {
    "bert": (
        SpecialTokens((((101, 0),), ((102, 0),)), (0,)),
        SpecialTokens((((101, 0),), ((102, 0),), ((102, 1),)), (0, 1)),
    ),
    "mpnet": (
        SpecialTokens((((0, 0),), ((2, 0),)), (0,)),
        SpecialTokens((((0, 0),), ((2, 0), (2, 0)), ((2, 0),)), (0, 0)),
    ),
}
# The layers' linear maps, which low-rank updates stand beside.
_UPDATED = {
    "bert": ["query", "key", "value", "dense"],
    "mpnet": ["q", "k", "v", "o", "dense"],
}
MEAN = Pooling(mode="mean", normalise=True)
UPDATE_SCALE = 2.0  # of a low-rank update, whatever its rank


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

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of its graphs."""
        return (IDS, MASK, SEGMENTS) if self.layout == "bert" else (IDS, MASK)

    def feeds(self, sides: int) -> SequenceFeeds:
        """What it reads of the ids of one text or two."""
        return SequenceFeeds(SPECIAL[self.layout][sides - 1], self.inputs, None, self.positions)

    def network(self) -> nn.Module:
        """The network with random weights."""
        from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

        sizes: dict[str, Any] = {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.attention_heads,
            "intermediate_size": self.inner,
            "max_position_embeddings": self.positions,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": 0.0,
            "attn_implementation": "eager",
        }
        if self.layout == "bert":
            model: nn.Module = BertModel(BertConfig(**sizes), add_pooling_layer=False)
        else:
            model = MPNetModel(MPNetConfig(**sizes, layer_norm_eps=1e-5), add_pooling_layer=False)
        words_of(model).weight.requires_grad_(not self.frozen_words)
        if self.update_rank:
            from peft import LoraConfig, inject_adapter_in_model

            updates = LoraConfig(
                r=self.update_rank,
                lora_alpha=UPDATE_SCALE * self.update_rank,  # type: ignore[arg-type]  # divided by the rank
                target_modules=_UPDATED[self.layout],
            )
            model = inject_adapter_in_model(updates, model)
        return model


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


def inputs_of(network: Any) -> tuple[str, ...]:
    """The inputs of the graph of any network of the library transformers."""
    segments = (getattr(network.config, "type_vocab_size", 0) or 0) > 1
    return (IDS, MASK, SEGMENTS) if segments else (IDS, MASK)


def words_of(network: nn.Module) -> nn.Embedding:
    """The embedding of a network's words."""
    words = network.get_input_embeddings()  # type: ignore[operator]
    assert isinstance(words, nn.Embedding)
    return words


def _states(
    network: nn.Module, feeds: SequenceFeeds, sides: list[tuple[Tensor, Tensor]], device: torch.device
) -> tuple[Tensor, Tensor]:
    """(ids, lengths) of each sentence -> states of the joined sequences [B, L, H], and which are real, bool [B, L]."""
    texts = [
        [tuple(row[:length]) for row, length in zip(ids.tolist(), lengths.tolist(), strict=True)]
        for ids, lengths in sides
    ]
    found = {name: torch.from_numpy(value).to(device) for name, value in feeds.joined(texts).feeds.items()}
    return network(**found).last_hidden_state, found[MASK].bool()


def _device(model: nn.Module) -> torch.device:
    """Where its weights lie; a network that is stored has none."""
    return next((each.device for each in model.parameters()), torch.device("cpu"))


def pooled(states_BLH: Tensor, real_BL: Tensor, mode: PoolingMode) -> Tensor:
    """States [B, L, H] of which some are real, bool [B, L] -> [B, H], as `core.sequences.Pooling` does."""
    number_B1 = real_BL.sum(1, keepdim=True)
    if mode == "max":
        return states_BLH.masked_fill(~real_BL[:, :, None], torch.finfo(torch.float32).min).amax(1)
    place_BL = torch.arange(real_BL.shape[1], device=real_BL.device).expand_as(real_BL)
    match mode:
        case "cls":
            weights_BL = (place_BL == 0).float()
        case "lasttoken":
            weights_BL = (place_BL == number_B1 - 1).float()
        case "weightedmean":
            weights_BL = (place_BL + 1) * real_BL.float()
            weights_BL = weights_BL / weights_BL.sum(1, keepdim=True)
        case "mean":
            weights_BL = real_BL.float() / number_B1
        case "mean_sqrt_len_tokens":
            weights_BL = real_BL.float() / number_B1.float().sqrt()
    return torch.bmm(weights_BL[:, None, :], states_BLH.float()).squeeze(1)


class SequenceEncoder(nn.Module):
    """A bi-encoder around any network of the library transformers."""

    def __init__(self, network: nn.Module, feeds: SequenceFeeds, pooling: Pooling) -> None:
        """`feeds` says what the network reads of ids, `pooling` what becomes of its states."""
        super().__init__()
        self.bert, self.feeds, self.pooling = network, feeds, pooling

    @property
    def output_dim(self) -> int:
        """Dimensions of the embeddings."""
        return words_of(self.bert).embedding_dim

    def forward(self, input_ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Ids [B, T], lengths [B] (each at least 1; no more than the positions) -> embeddings [B, H]."""
        states_BLH, real_BL = _states(self.bert, self.feeds, [(input_ids_BT, lengths_B)], _device(self))
        found = pooled(states_BLH.float(), real_BL, self.pooling.mode)
        return nn.functional.normalize(found, dim=-1) if self.pooling.normalise else found


class SentenceBERT(SequenceEncoder):
    """That of our own: the mean of the states of [CLS] a [SEP], brought to length 1."""

    def __init__(self, config: SentenceBERTConfig, network: nn.Module | None = None) -> None:
        """Random weights, or those of a network of these sizes; see `load_weights`."""
        super().__init__(network or config.bert.network(), config.bert.feeds(1), MEAN)
        self.config = config

    @property
    def output_dim(self) -> int:
        """Dimensions of the embeddings."""
        return self.config.bert.hidden


class CrossEncoder(nn.Module):
    """Heads over a pair that is read together: [CLS] a [SEP] b [SEP]."""

    def __init__(self, config: CrossEncoderConfig) -> None:
        """Random weights; `load_weights(model.bert, folder)` gives the encoder those of a published model."""
        super().__init__()
        self.config = config
        self.bert = config.bert.network()
        # Each reads the state of [CLS] and the mean of all.
        self.heads = nn.ModuleDict(
            {name: nn.Linear(2 * config.bert.hidden, outputs) for name, outputs in config.heads.items()}
        )
        for head in self.heads.children():
            assert isinstance(head, nn.Linear)
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)
        self.dropout = nn.Dropout(config.bert.dropout)

    def forward(
        self, input_ids_a_BS: Tensor, lengths_a_B: Tensor, input_ids_b_BT: Tensor, lengths_b_B: Tensor
    ) -> dict[str, Tensor]:
        """Ids and lengths of both sentences -> for each head its raw outputs, float32 [B, K].

        A length is at least 1; both, with 3 more, are no more than the positions.
        """
        sides = [(input_ids_a_BS, lengths_a_B), (input_ids_b_BT, lengths_b_B)]
        states, real = _states(self.bert, self.config.bert.feeds(2), sides, _device(self))
        return self.answers(states, real)

    def answers(self, states_BLH: Tensor, real_BL: Tensor) -> dict[str, Tensor]:
        """States of the sequences -> for each head its raw outputs, float32 [B, K]."""
        states_BLH = states_BLH.float()
        features_BF = self.dropout(torch.cat([states_BLH[:, 0], pooled(states_BLH, real_BL, "mean")], dim=-1))
        return {name: head(features_BF).float() for name, head in self.heads.items()}


class StatesOfTokens(nn.Module):
    """What is exported of a bi-encoder: the states of all tokens; the service pools them."""

    def __init__(self, network: nn.Module) -> None:
        """Wrap a transformer, whose weights are shared and not copied."""
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Sequences [B, L] -> states [B, L, H]."""
        more = {} if token_type_ids is None else {SEGMENTS: token_type_ids}
        states: Tensor = self.network(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state
        return states.float()


def is_update(name: str) -> bool:
    """Whether a parameter of that name is half of a low-rank update."""
    return ".lora_" in name


def merge_updates(network: nn.Module) -> None:
    """Add low-rank updates to the weights that they stand beside; plain layers are left."""
    from peft.tuners.lora import LoraLayer

    for name, module in list(network.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            parent, _, last = name.rpartition(".")
            setattr(network.get_submodule(parent), last, module.get_base_layer())


def load_weights(network: nn.Module, folder: Path) -> None:
    """Give a network the weights of a model folder of the Hugging Face library, such as that of all-MiniLM-L6-v2.

    Args:
        network: of the sizes of that model.
        folder: with `model.safetensors`.

    Raises:
        FileNotFoundError: no such file.
        KeyError, RuntimeError: a weight is missing, or has another shape.
        ModuleNotFoundError: the extra `distill` is not installed.
    """
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    found = load_file(path)
    own = network.state_dict()
    theirs = {name: found[name.replace(".base_layer.", ".")].float() for name in own if not is_update(name)}
    network.load_state_dict(own | theirs)
