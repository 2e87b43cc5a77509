"""A limit on both texts of a pair together: the longer one is cut."""

from pathlib import Path

import pytest

from core.manifest import Manifest
from tests.harness import fakes
from tests.harness.service import Serve

pytestmark = pytest.mark.anyio
WORDS = "a man plays the big guitar in the small park".split()  # noqa: SIM905
# Numbers of words that two texts have, and those of them that the model reads.
READ = {(10, 10): (6, 7), (10, 4): (9, 4), (4, 10): (4, 9), (6, 7): (6, 7)}


async def test_texts_that_are_too_long_together_are_cut(root: Path, serve: Serve) -> None:
    limits = Manifest.load(root / "pair-sick").limits.model_copy(update={"max_pair_tokens": 13})
    fakes.sign(root / "pair-sick", limits=limits)
    async with serve(models_dir=root) as client:

        async def scores(lengths: list[tuple[int, int]]) -> list[float]:
            pairs = [{"a": " ".join(WORDS[:a]), "b": " ".join(WORDS[::-1][:b])} for a, b in lengths]
            answer = await client.post("/similarity", json={"pairs": pairs, "model": "pair-sick"})
            assert answer.status_code == 200
            return [result["raw_score"] for result in answer.json()["results"]]

        assert await scores(list(READ)) == pytest.approx(await scores(list(READ.values())), abs=1e-6)
        for given, read in READ.items():
            assert await scores([given]) == pytest.approx(await scores([read]), abs=1e-6)
