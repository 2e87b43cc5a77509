"""Encoders of single sentences on the whole road: exported, published, served; every answer is that of the module."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.manifest import EntailmentTask, Limits, Provenance, SimilarityTask
from contract.measures import cosine, expected_rating
from contract.tokenizer import pad
from tests.harness import toys
from tests.harness.service import Serve
from training.architectures.models import SiameseModel
from training.families.siamese import write_graphs
from training.objectives.supervised import LABELS
from training.publishing.calibrate import fit_centred_isotonic
from training.publishing.folders import assemble, finish
from training.publishing.runtime import BATCH, PublishedModel
from training.sources.credits import TEACHER

torch.set_num_threads(1)
CLASSES = (1.0, 2.0, 3.0, 4.0, 5.0)
TEXTS = [
    *(text for pair in toys.RATED for text in (pair.a, pair.b)),
    "Mow, the DOG!",
    "\u732b\u304c \U0001f600",  # buckets only
    "the man " * 20,  # cut at the limit
    "small",
]
A, B = zip(*pairwise(TEXTS), strict=True)
MADE_UP = Provenance(created=date(2025, 1, 2), recipe={}, commands=("none",), seed=0, environment={})


@dataclass(frozen=True)
class Toy:
    """A module and the folder it was published into."""

    module: SiameseModel
    folder: Path

    @torch.no_grad()
    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        """By the module."""
        ids, lengths = pad([toys.tokenizer().encode(text, toys.MAX_TOKENS).ids for text in texts])
        return self.module.encoder(torch.from_numpy(ids), torch.from_numpy(lengths))

    @torch.no_grad()
    def compare(self, head: str) -> np.ndarray:
        """Log-probabilities of the pairs, by a head of the module."""
        return self.module.heads[head](self.embed(A), self.embed(B)).numpy()


def publish(module: SiameseModel, draft: Path, models: Path) -> Toy:
    draft.mkdir(parents=True)
    fields = write_graphs(module.encoder, module.heads, toys.tokenizer(), draft, draft.name, shares=False)
    if module.heads:
        fields["similarity"] = SimilarityTask(
            graph="similarity.onnx", classes=CLASSES, raw_range=(1, 5), label_scale=(1, 5), symmetric=True
        )
        fields["entailment"] = EntailmentTask(graph="entailment.onnx", labels=LABELS)
    else:
        points = np.linspace(-0.9, 0.9, 50)
        fit = fit_centred_isotonic(points, 2.5 + 2 * points, raw_range=(-1, 1), target_range=(0, 5))
        fields["similarity"] = SimilarityTask(
            comparison="cosine", raw_range=(-1, 1), label_scale=(0, 5), symmetric=True, calibration=fit
        )
    fields["limits"] = Limits(max_tokens=toys.MAX_TOKENS)
    about = {"title": "A toy", "architecture": "word_averaging", "training_data": (TEACHER,), "provenance": MADE_UP}
    manifest = assemble(draft, fields, **about)
    finish(draft, manifest, [], [(pair.a, pair.b) for pair in toys.RATED], models, models / draft.name)
    return Toy(module, models / draft.name)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Toy]:
    """`graded` has a head for ratings and one for labels, `cosine` compares averages of words."""
    drafts, models = tmp_path_factory.mktemp("drafts"), tmp_path_factory.mktemp("models")
    graded = toys.model(heads=True).eval()
    with torch.no_grad():
        for parameter in graded.heads.parameters():
            parameter.mul_(8)  # so that texts differ
    found = {"graded": graded, "cosine": toys.model(seed=3).eval()}
    return {name: publish(module, drafts / name, models) for name, module in found.items()}


@pytest.mark.parametrize("name", ["graded", "cosine"])
def test_a_published_model_answers_as_its_module_however_sentences_are_batched(
    published: dict[str, Toy], name: str
) -> None:
    toy = published[name]
    model = PublishedModel(toy.folder)
    many = (TEXTS * (BATCH // len(TEXTS) + 2))[: BATCH + 7]
    assert model.embed(many) == pytest.approx(toy.embed(many).numpy(), abs=1e-6)
    assert model.embed(TEXTS[:1]) == pytest.approx(toy.embed(TEXTS[:1]).numpy(), abs=1e-6)
    found = model.similarity(A, B)
    if name == "graded":
        expected = expected_rating(toy.compare("similarity"), CLASSES)
        labels = [list(row.values()) for row in model.entailment(A, B)]
        assert np.array(labels) == pytest.approx(np.exp(toy.compare("entailment")), abs=1e-5)
    else:
        expected = cosine(toy.embed(A).numpy(), toy.embed(B).numpy())
        assert model.similarity(TEXTS, TEXTS).score == pytest.approx(np.ones(len(TEXTS)), abs=1e-9)
    assert found.raw_score == pytest.approx(expected, abs=1e-5)
    assert np.ptp(found.raw_score) > 0.1  # there is something to agree on
    assert found.raw_score == pytest.approx(model.similarity(B, A).raw_score, abs=1e-6)


@pytest.mark.anyio
async def test_over_http_every_answer_is_the_offline_one(serve: Serve, published: dict[str, Toy]) -> None:
    models = published["cosine"].folder.parent
    settings = {"default_similarity": "cosine", "default_rank": "cosine", "default_entailment": "graded"}
    pairs = [{"a": a, "b": b} for a, b in zip(A, B, strict=True)]
    asked = [{"premise": a, "hypothesis": b} for a, b in zip(A, B, strict=True)]
    async with serve(models_dir=models, **settings) as client:
        for name, toy in published.items():
            scored = (await client.post("/similarity", json={"pairs": pairs, "model": name})).json()["results"]
            offline = PublishedModel(toy.folder).similarity(A, B)
            assert [row["raw_score"] for row in scored] == pytest.approx(offline.raw_score, abs=1e-7)
            assert [row["score"] for row in scored] == pytest.approx(offline.score, abs=1e-7)
        labelled = (await client.post("/entailment", json={"pairs": asked})).json()["results"]
    for row, expected in zip(labelled, PublishedModel(published["graded"].folder).entailment(A, B), strict=True):
        assert row["probabilities"] == pytest.approx(expected, abs=1e-7)
