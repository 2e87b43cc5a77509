"""Models whose vectors are computed sooner than found: the same answers, and nothing is kept."""

import pytest

from benchmarks.faults.load import difference
from service.engine import measuring
from tests.harness.service import Serve

pytestmark = pytest.mark.anyio
TEXTS = ["a man plays guitar", "the dog runs", "a man plays guitar", "a cat sleeps on the sofa", "dog"]
PAIRS = [{"a": a, "b": b} for a in TEXTS for b in TEXTS]
ASKED = {
    "/similarity": {"pairs": PAIRS},
    "/rank": {"query": TEXTS[0], "candidates": TEXTS},
    "/embed": {"sentences": TEXTS},
    "/entailment": {"pairs": [{"premise": pair["a"], "hypothesis": pair["b"]} for pair in PAIRS]},
    "/explain": {"a": TEXTS[0], "b": TEXTS[3]},
}


async def test_answers_are_those_of_kept_vectors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for finding in (0.0, 1.0):  # seconds: every vector pays to keep, and none
        monkeypatch.setattr(measuring, "LOOKUP_SECONDS", finding)
        async with serve() as client:
            answers.append([(await client.post(path, json=body)).json() for path, body in ASKED.items() for _ in "12"])
            kept = await client.metric("semblance_cache_entries")
            tiers = [model["cache"] for model in (await client.get("/models")).json()["models"]]
        if finding:
            assert (kept, tiers) == (0, [[], [], []])
        else:
            assert kept > 0
            assert all(tiers)
    kept_answers, computed = answers
    assert difference(computed, kept_answers) is None
