"""Labelled pairs, models that score them, and their scores."""

import asyncio
from pathlib import Path

import numpy as np

from semblance import AsyncClient
from semblance.jobs.threshold import BinaryLabelledPairs, Scored, scores_of
from tests.harness import fakes

ALIKE = [
    ("a man plays the guitar", "the man is playing a guitar ."),
    ("a dog runs in the park", "the dog runs in a park ."),
    ("the cat sleeps", "a cat sleeps ."),
    ("a woman plays the flute", "the woman is playing the flute"),
]


def models_in(folder: Path) -> Path:
    """Models with a cosine, with ratings, and with several tasks."""
    fakes.cosine_model(folder / "avg-paraphrase")
    fakes.graded_model(folder / "avg-sick")
    fakes.tasks_model(folder / "both")
    return folder


def scored(models: Path, model: str, pairs: BinaryLabelledPairs, task: Scored) -> tuple[np.ndarray, int]:
    async def ask() -> tuple[str, np.ndarray, int]:
        async with AsyncClient.local(models) as here:
            return await scores_of(here, pairs, model, task)

    _, scores, cut = asyncio.run(ask())
    return scores, cut
