"""PWIM with a head for each of several tasks: its features are PWIM's, its answers its exported graph's."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from contract.golden import GOLDEN_TEXTS
from contract.manifest import Manifest, Provenance
from contract.tokenizer import pad
from tests.harness import toys
from training.architectures import PWIMConfig, PWIMTasks, PWIMTasksConfig
from training.architectures.pwim import CHANNELS, PWIM
from training.families import family_of, heads
from training.families.heads import HeadCalibrations, Heads, served_heads
from training.families.words import embedding
from training.publishing.folders import assemble, finish
from training.publishing.runtime import PublishedModel
from training.recipes import find
from training.recipes.recipe import Publication
from training.runs.folder import WEIGHTS_NAME
from training.sources.credits import TEACHER

HEADS = {"entailment": 3, "similarity": 1, "paraphrase": 1, "related": 1, "relevance": 1}
CONFIG = PWIMTasksConfig(PWIMConfig(hidden=5, maps=(4, 3), grid=8, limit=12, same_words=True), HEADS, hidden=7)
MADE_UP = Provenance(created=date(2026, 1, 2), recipe={}, commands=("none",), seed=0, environment={})
A, B = [p.a for p in toys.RATED], [p.b for p in toys.RATED]


def model(config: PWIMTasksConfig = CONFIG) -> PWIMTasks:
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
    ours, theirs = model(replace(CONFIG, pwim=plain)), PWIM(plain, nn.Embedding(1, toys.DIM), 5).eval()
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
    ours = model()
    a, b = feeds(["the dog runs"], ["a dog the"])[:2], feeds(["the dog runs"], ["a dog the"])[2:]
    cube, _ = ours._cube(ours.side(*a), ours.side(*b))
    assert cube.shape[1] == CHANNELS + 1
    assert cube[0, -2].tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_pooled_states_do_not_see_the_padding() -> None:
    ours = model()
    with torch.no_grad():
        alone = ours(*feeds(A[4:5], B[4:5]))
        together = ours(*feeds(A, B))
    for name in HEADS:
        torch.testing.assert_close(alone[name][0], together[name][4], atol=1e-5, rtol=1e-5)


def test_heads_that_only_helped_to_train_are_not_served() -> None:
    assert list(served_heads(model()).heads) == ["entailment", "similarity", "paraphrase", "relevance"]
    assert "related" in model().heads


@pytest.mark.slow
def test_its_folder_answers_as_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = served_heads(model())
    assert isinstance(kept, PWIMTasks)
    kept.embedding = embedding(toys.table(), "int8", 1.0)
    calibrations, draft = HeadCalibrations(temperature=2.0), tmp_path / "draft" / "toy"
    draft.mkdir(parents=True)
    monkeypatch.setattr(heads, "calibrated", lambda *_: calibrations)
    toys.table().save(tmp_path / "tables" / "toy")
    family = family_of(replace(find("pwim-general"), table=toys.TABLE, architecture=CONFIG), tmp_path, 1)
    family.folder.mkdir(parents=True)
    torch.save(model().state_dict(), family.folder / WEIGHTS_NAME)
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
    assert published.matrices(A[0], B[0]).shape == (2, 4, 6)
    rated = published.probabilities(A, B, ("contradiction", "entailment", "neutral"))
    np.testing.assert_allclose(rated["entailment"][:, 1], probabilities[:, 0], atol=1e-6)
    np.testing.assert_allclose(rated["similarity"][:, 0], raw, atol=1e-6)
    assert rated["relevance"].min() > 0 > np.log(rated["relevance"]).max()
