"""The whole road: a torch module, exported and published, answers as itself; and through HTTP to the last digit."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from contract.manifest import Manifest
from contract.scoring import Array, Run, Similarities, compare, encode, entailment, similarity
from service.app import create_app
from service.settings import Settings
from tests import toys
from tests.parity.conftest import TEXTS, Toy
from training.publishing.runtime import BATCH, PublishedModel

A, B = zip(*pairwise(TEXTS), strict=True)


@pytest.fixture(params=["graded", "cosine"])
def toy(request: pytest.FixtureRequest) -> Toy:
    found: Toy = request.getfixturevalue(request.param)
    return found


def as_run(module: torch.nn.Module) -> Run:
    """A torch module in the place of a session."""

    def run(feeds: Mapping[str, Array]) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = module(*(torch.from_numpy(value) for value in feeds.values())).numpy()
        return found

    return run


class Torch:
    """The answers of the torch module, through the same contract."""

    def __init__(self, toy: Toy) -> None:
        self.module, self.manifest = toy.module.eval(), Manifest.load(toy.folder)

    def embed(self, texts: tuple[str, ...]) -> np.ndarray:
        ids = [toys.tokenizer().encode(text, toys.MAX_TOKENS).ids for text in texts]
        return encode(as_run(self.module.encoder), ids)

    def similarity(self, a: tuple[str, ...], b: tuple[str, ...]) -> Similarities:
        assert self.manifest.similarity is not None
        head = as_run(self.module.heads["similarity"]) if self.module.heads else None
        return similarity(self.manifest.similarity, head, self.embed(a), self.embed(b))

    def entailment(self, a: tuple[str, ...], b: tuple[str, ...]) -> list[dict[str, float]]:
        assert self.manifest.entailment is not None
        output = compare(as_run(self.module.heads["entailment"]), self.embed(a), self.embed(b))
        return entailment(self.manifest.entailment, output)


def test_a_published_model_answers_as_its_module(toy: Toy) -> None:
    published, module = PublishedModel(toy.folder), Torch(toy)
    assert published.embed(TEXTS) == pytest.approx(module.embed(tuple(TEXTS)), abs=1e-6)
    found, expected = published.similarity(A, B), module.similarity(A, B)
    assert found.raw_score == pytest.approx(expected.raw_score, abs=1e-5)
    assert found.score == pytest.approx(expected.score, abs=1e-5)
    assert found.rating == pytest.approx(expected.rating, abs=1e-5)
    assert np.ptp(found.raw_score) > 0.1  # there is something to agree on


def test_labels_are_those_of_the_module(graded: Toy) -> None:
    found, expected = PublishedModel(graded.folder).entailment(A, B), Torch(graded).entailment(A, B)
    for f, e in zip(found, expected, strict=True):
        assert f == pytest.approx(e, abs=1e-5)
    assert len({max(row, key=row.__getitem__) for row in found}) > 1


def test_no_score_depends_on_how_sentences_are_batched(toy: Toy) -> None:
    model = PublishedModel(toy.folder)
    many = (TEXTS * (BATCH // len(TEXTS) + 2))[: BATCH + 7]
    together = model.embed(many)
    assert together.shape == (BATCH + 7, toys.DIM)
    alone = np.concatenate([model.embed([text]) for text in TEXTS])
    for i in range(len(many)):
        assert together[i] == pytest.approx(alone[i % len(TEXTS)], abs=1e-6)


def test_equal_sentences_have_the_highest_cosine_and_a_symmetric_task_is_symmetric(toy: Toy, cosine: Toy) -> None:
    model = PublishedModel(toy.folder)
    assert model.similarity(A, B).raw_score == pytest.approx(model.similarity(B, A).raw_score, abs=1e-6)
    same = PublishedModel(cosine.folder).similarity(TEXTS, TEXTS)
    assert same.raw_score == pytest.approx(np.ones(len(TEXTS)), abs=1e-12)
    assert same.score == pytest.approx(np.ones(len(TEXTS)), abs=1e-9)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_over_http_every_answer_is_the_offline_one(toy: Toy, cosine: Toy, graded: Toy, models: Path) -> None:
    app = create_app(
        Settings(
            models_dir=models,
            default_similarity=cosine.folder.name,
            default_rank=cosine.folder.name,
            default_entailment=graded.folder.name,
        )
    )
    pairs = [{"a": a, "b": b} for a, b in zip(A, B, strict=True)]
    async with (
        app.app.router.lifespan_context(app.app),  # type: ignore[attr-defined]
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service") as client,
    ):
        name = toy.folder.name
        scored = (await client.post("/similarity", json={"pairs": pairs, "model": name})).json()["results"]
        asked = [{"premise": pair["a"], "hypothesis": pair["b"]} for pair in pairs]
        labelled = (await client.post("/entailment", json={"pairs": asked})).json()["results"]
    offline = PublishedModel(toy.folder).similarity(A, B)
    assert [row["raw_score"] for row in scored] == pytest.approx(offline.raw_score, abs=1e-7)
    assert [row["score"] for row in scored] == pytest.approx(offline.score, abs=1e-7)
    for row, expected in zip(labelled, PublishedModel(graded.folder).entailment(A, B), strict=True):
        assert row["probabilities"] == pytest.approx(expected, abs=1e-7)
