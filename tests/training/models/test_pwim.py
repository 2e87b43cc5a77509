"""PWIM against the paper's steps written out word by word and layer by layer; with a head for each of several tasks."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.golden import GOLDEN_TEXTS
from core.manifest import Manifest, Provenance
from core.sequences import pad
from tests.harness import toys
from tests.harness.by_hand import matched
from training.families import family_of, heads
from training.families.heads import HeadCalibrations, Heads, served_heads
from training.families.words import embedding
from training.models import PWIMConfig, PWIMTasks, PWIMTasksConfig
from training.models.kinds import InteractionModel
from training.models.pwim import CHANNELS, PWIM, STEP
from training.publish.folders import assemble, finish
from training.publish.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Publication
from training.recipes.sources.credits import TEACHER
from training.train.folder import WEIGHTS_NAME

SMALL = PWIMConfig(hidden=5, maps=(4, 6, 3), grid=8)
VARIANTS = (
    SMALL,
    replace(SMALL, grid=1),
    replace(SMALL, grid=32),
    replace(SMALL, focus="none"),
    replace(SMALL, focus="dropout"),
    replace(SMALL, context=False),
    replace(SMALL, word_scale=2.0),
)


def label(config: PWIMConfig) -> str:
    return toys.changed(config, SMALL)


every_variant = pytest.mark.parametrize("config", VARIANTS, ids=label)

PAIRS, LONGEST = toys.id_pairs(), toys.MAX_TOKENS


def network(config: PWIMConfig) -> PWIM:
    net = toys.network(config)
    assert isinstance(net, PWIM)
    return net


def answer(net: nn.Module, arguments: toys.Inputs) -> Tensor:
    with torch.no_grad():
        return net(*arguments)


def states(net: PWIM, ids: toys.Ids) -> tuple[Tensor, Tensor]:
    """Forward and backward states [T, H] of one sentence, read by the LSTM as it is and turned round."""
    words = net.embedding(torch.tensor([ids])) * net.config.word_scale
    if net.lstm is None:
        return words[0], words[0]
    length = torch.tensor([len(ids)])
    forward, _ = net.lstm(words, length)
    backward, _ = net.lstm(words.flip(1), length)
    return forward[0, :, 0], backward[0, :, 0].flip(0)


def brute_cube(net: PWIM, a: toys.Ids, b: toys.Ids) -> np.ndarray:
    """Algorithm 1 of the paper, cell by cell [13, S, T]."""
    cube = np.ones((CHANNELS, len(a), len(b)))
    (forward_a, backward_a), (forward_b, backward_b) = states(net, a), states(net, b)
    for i in range(len(a)):
        for j in range(len(b)):
            fa, ba = forward_a[i].double().numpy(), backward_a[i].double().numpy()
            fb, bb = forward_b[j].double().numpy(), backward_b[j].double().numpy()
            for at, (u, v) in enumerate(
                [(np.concatenate([fa, ba]), np.concatenate([fb, bb])), (fa, fb), (ba, bb), (fa + ba, fb + bb)]
            ):
                cosine = u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
                cube[3 * at : 3 * at + 3, i, j] = cosine, -np.linalg.norm(u - v), u @ v
    return cube


def brute_focus(cube: np.ndarray) -> np.ndarray:
    """Algorithm 2, one cell after the other, for the paper's channels 10 and 11 [S, T]."""
    weights = np.full(cube.shape[1:], 0.1)  # the paper's weight of words that are not matched
    for channel in (9, 10):
        for cell in matched(np.round(cube[channel] / STEP).tolist()):
            weights[cell] = 1.0
    return weights


def brute_answer(net: PWIM, a: toys.Ids, b: toys.Ids) -> Tensor:
    """The whole model for one pair: its own image, in plain convolutions, poolings and zeros at the border."""
    cube = brute_cube(net, a, b)
    if net.config.focus == "full":
        cube[:12] *= brute_focus(cube)
    size = [-(-length // net.config.grid) * net.config.grid for length in (len(a), len(b))]
    image = torch.zeros(1, CHANNELS, *size)
    image[0, :, : len(a), : len(b)] = torch.from_numpy(cube)
    for i, convolution in enumerate(net.convolutions):
        image = torch.relu(convolution(image))
        last = i == len(net.convolutions) - 1
        image = nn.functional.max_pool2d(image, image.shape[2:] if last else 2, ceil_mode=True)
    return torch.log_softmax(net.output(torch.relu(net.hidden(image.flatten(1)))), dim=1)[0]


@every_variant
def test_it_is_the_papers_model_of_each_pair_by_itself(config: PWIMConfig) -> None:
    net = network(config)
    found = answer(net, toys.pair_tensors(PAIRS, padding_a=3, padding_b=1))
    with torch.no_grad():
        expected = torch.stack([brute_answer(net, a, b) for a, b in PAIRS])
    assert expected.std(0).max() > 0.005  # the pairs do differ
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_the_matrices_are_the_cosine_and_the_focus_and_nothing_on_the_padding() -> None:
    net = network(SMALL)
    with torch.no_grad():
        shown = net.matrices(*toys.pair_tensors(PAIRS, padding_a=2, padding_b=5))
        assert shown.shape == (len(PAIRS), len(PWIM.MATRICES), LONGEST + 2, 9 + 5)
        for pair, (a, b) in zip(shown, PAIRS, strict=True):
            cube = brute_cube(net, a, b)
            np.testing.assert_allclose(pair[0, : len(a), : len(b)], cube[9], atol=1e-5)
            np.testing.assert_allclose(pair[1, : len(a), : len(b)], brute_focus(cube), atol=1e-6)
            assert pair[:, len(a) :].abs().sum() == pair[:, :, len(b) :].abs().sum() == 0


def test_both_orders_answer_with_the_mean_of_the_probabilities() -> None:
    net = network(SMALL)
    a, lengths_a, b, lengths_b = toys.pair_tensors(PAIRS)
    one, other = answer(net, (a, lengths_a, b, lengths_b)), answer(net, (b, lengths_b, a, lengths_a))
    assert (one - other).abs().max() > 1e-3
    model = InteractionModel(net, both_orders=True)
    found = answer(model, (a, lengths_a, b, lengths_b))
    torch.testing.assert_close(found.exp(), (one.exp() + other.exp()) / 2, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(answer(model, (b, lengths_b, a, lengths_a)), found, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(answer(InteractionModel(net, both_orders=False), (a, lengths_a, b, lengths_b)), one)


HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}
CONFIG = PWIMTasksConfig(PWIMConfig(hidden=5, maps=(4, 3), grid=8, limit=12, same_words=True), HEADS, hidden=7)
MADE_UP = Provenance(created=date(2026, 1, 2), recipe={}, commands=("none",), seed=0, environment={})
A, B = [p.a for p in toys.RATED], [p.b for p in toys.RATED]


def several(config: PWIMTasksConfig = CONFIG) -> PWIMTasks:
    torch.manual_seed(0)
    return PWIMTasks(config, toys.words()).eval()


def feeds(a: list[str], b: list[str]) -> list[torch.Tensor]:
    return [
        torch.from_numpy(values)
        for side in (a, b)
        for values in pad([toys.tokenizer().encode(text, 12).ids for text in side])
    ]


def test_features_are_those_of_pwim() -> None:
    plain = replace(CONFIG.pwim, same_words=False)
    ours, theirs = several(replace(CONFIG, pwim=plain)), PWIM(plain, nn.Embedding(1, toys.DIM), 5).eval()
    theirs.embedding = ours.embedding
    theirs.load_state_dict(ours.state_dict(), strict=False)
    seen: dict[str, torch.Tensor] = {}
    ours.trunk.register_forward_pre_hook(lambda _, values: seen.update(ours=values[0]))
    theirs.hidden.register_forward_pre_hook(lambda _, values: seen.update(theirs=values[0]))
    with torch.no_grad():
        ours(*feeds(A, B))
        theirs(*feeds(A, B))
    torch.testing.assert_close(seen["ours"][:, :3], seen["theirs"])
    assert seen["ours"].shape[1] == 3 + 8 * 5


def test_the_channel_of_same_words_marks_equal_tokens() -> None:
    ours = several()
    a, b = feeds(["the dog runs"], ["a dog the"])[:2], feeds(["the dog runs"], ["a dog the"])[2:]
    cube, _ = ours._cube(ours.side(*a), ours.side(*b))
    assert cube.shape[1] == CHANNELS + 1
    assert cube[0, -2].tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]

    # Heads that only helped to train are not served.
    assert list(served_heads(several()).heads) == ["entailment", "similarity", "paraphrase", "relevance"]
    assert "related" in several().heads


def test_its_folder_answers_as_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = served_heads(several())
    assert isinstance(kept, PWIMTasks)
    kept.embedding = embedding(toys.table(), "int8", 1.0)
    calibrations, draft = HeadCalibrations(temperature=2.0), tmp_path / "draft" / "toy"
    draft.mkdir(parents=True)
    monkeypatch.setattr(heads, "calibrated", lambda *_: calibrations)
    toys.table().save(tmp_path / "tables" / "toy")
    family = family_of(replace(find("pwim-general"), table=toys.TABLE, architecture=CONFIG), tmp_path, 1)
    family.folder.mkdir(parents=True)
    torch.save(several().state_dict(), family.folder / WEIGHTS_NAME)
    fields = family.export(Publication("toy", "Toy"), draft)
    manifest = assemble(
        draft, fields, title="Toy", architecture="pwim_tasks", training_data=(TEACHER,), provenance=MADE_UP
    )
    finish(draft, manifest, [], GOLDEN_TEXTS[:4], tmp_path / "models", tmp_path / "models" / "toy")
    published = PublishedModel(tmp_path / "models" / "toy")
    assert Manifest.load(tmp_path / "models" / "toy").tasks == ("similarity", "entailment", "paraphrase", "relevance")
    served = Heads(kept, calibrations)
    with torch.no_grad():
        expected = served(*feeds(A, B)).numpy()
    probabilities = np.array([list(row.values()) for row in published.entailment(A, B)])
    np.testing.assert_allclose(probabilities, np.exp(expected[:, slice(*served.columns["entailment"])]), atol=1e-5)
    raw = published.similarity(A, B).raw_score
    np.testing.assert_allclose(raw, expected[:, served.columns["similarity"][0]], atol=1e-5)
    assert np.ptp(raw) > 1e-3
    assert published.outputs("explanation.onnx", A[:1], B[:1])[0].shape == (2, 4, 6)
    rated = published.probabilities(A, B, ("contradiction", "entailment", "neutral"))
    np.testing.assert_allclose(rated["entailment"][:, 1], probabilities[:, 0], atol=1e-6)
    np.testing.assert_allclose(rated["similarity"][:, 0], raw, atol=1e-6)
    assert rated["relevance"].min() > 0 > np.log(rated["relevance"]).max()
