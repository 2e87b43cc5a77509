"""Models that take the place of others in a folder that is served, and what the service says of them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.manifest import SHARED_NAME, Manifest
from core.scoring import cosine
from tests.harness import fakes
from tests.harness.service import Client

PAIR = {"pairs": [{"a": "a man plays the guitar", "b": "a woman sleeps"}]}
ID = "avg-paraphrase"


def put(root: Path, seed: int, *, name: str = ID, make: Callable[..., Manifest] = fakes.cosine_model) -> Path:
    """Put a new model in the place of the old one as docs/models.md says: whole, in one step."""
    arriving = root / f".{name}" / name
    make(arriving, name, seed=seed)
    if (arriving.parent / SHARED_NAME).exists():
        shutil.copytree(arriving.parent / SHARED_NAME, root / SHARED_NAME, dirs_exist_ok=True)
    shutil.rmtree(root / name)
    arriving.rename(root / name)
    shutil.rmtree(arriving.parent)
    return root / name


def expected(seed: int) -> float:
    """What a model of `put` says of the pair."""
    ids = [fakes.tokenizer().encode(text, fakes.MAX_TOKENS).ids for text in PAIR["pairs"][0].values()]
    a, b = (fakes.table(seed)[list(each)].mean(axis=0, keepdims=True) for each in ids)
    return pytest.approx(float(cosine(a, b)[0]), abs=1e-5)


async def scored(client: Client) -> float:
    """What the service says of the pair."""
    response = await client.post("/similarity", json=PAIR)
    assert response.status_code == 200, response.text
    return response.json()["results"][0]["raw_score"]


async def readiness(client: Client) -> tuple[str, list[str]]:
    """Status and reasons; a model that is refused makes no service unready."""
    response = await client.get("/health/ready")
    assert response.status_code == 200
    return response.json()["status"], response.json()["reasons"]


READY = ("ready", [])


def break_golden(folder: Path) -> str:
    """Publish other answers than the model gives; how it is refused."""
    fakes.misstate(folder)
    return "does not answer as published"
