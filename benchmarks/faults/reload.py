"""Models reloaded under load, valid and invalid ones in turn: no failed request, and no invalid one answers.

A siamese and an interaction model are replaced in their folders. Good ones alternate between two contents with
different answers; each answer must equal that of a content that may answer then, in all numbers. A bad one has the
other content, and a byte changed, other scores in its golden pairs, a file missing, or a truncated manifest; it is
refused, and the previous one stays.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from benchmarks.faults.bodies import Texts
from benchmarks.faults.load import Ask, client_of, difference, with_answers
from benchmarks.faults.trial import LOOK_SECONDS, Trial, until
from benchmarks.servers import ROOT
from contract.golden import GoldenPair, GoldenPairs
from contract.manifest import MANIFEST_NAME, SHARED_NAME, Manifest, describe_file

# Model id -> the published models whose contents it alternates between.
CONTENTS: Mapping[str, tuple[str, str]] = {
    "avg-paraphrase": ("avg-paraphrase", "avg-sick"),
    "pwim-sick": ("pwim-sick", "mgim-sick"),
}
PLAIN = "avg-sick"  # stays; for entailment
HEAD = ["workers", "reloads", "refused", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "longest reload s",
        "MB before", "MB after"]  # fmt: skip
SEEN_SECONDS = 60.0
DISTINCT = 100  # requests
GROWTH_MB = 50.0  # per process; models that stay in memory would take several times that


def publish(models: Path, name: str, content: int, spoil: Callable[[Path], None] | None = None) -> None:
    """Put a model in the place of the one of its id.

    Args:
        models: the models folder.
        name: the model id.
        content: 0, or 1.
        spoil: makes it a bad one.
    """
    arriving, leaving = models / f".{name}.new", models / f".{name}.old"
    shutil.copytree(ROOT / "models" / CONTENTS[name][content], arriving)
    manifest = Manifest.load(arriving).model_copy(update={"id": name})
    manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()}).save(arriving)
    if spoil is not None:
        spoil(arriving)
    if (models / name).exists():
        (models / name).rename(leaving)
    arriving.rename(models / name)
    shutil.rmtree(leaving, ignore_errors=True)


def flip_a_byte(folder: Path) -> None:
    """Change one byte of a graph, as a faulty disk might."""
    path = max(folder.glob("*.onnx"), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change_golden(folder: Path) -> None:
    """Change the golden scores, with valid checksums."""
    manifest = Manifest.load(folder)
    path = folder / manifest.golden
    pairs = json.loads(path.read_text())["pairs"]
    changed = [pair | {"raw_score": pair["raw_score"] - 0.05} for pair in pairs]
    path.write_text(GoldenPairs(pairs=[GoldenPair(**pair) for pair in changed]).model_dump_json())
    new = manifest.model_copy(update={"files": manifest.files | {manifest.golden: describe_file(path)}})
    new.model_copy(update={"fingerprint": new.expected_fingerprint()}).save(folder)


def lose_a_file(folder: Path) -> None:
    """Delete a graph, as an incomplete copy might."""
    max(folder.glob("*.onnx"), key=lambda path: path.stat().st_size).unlink()


def cut_the_manifest(folder: Path) -> None:
    """Truncate the manifest, as a copy in progress might."""
    path = folder / MANIFEST_NAME
    path.write_bytes(path.read_bytes()[:-100])


SPOILS = (flip_a_byte, change_golden, lose_a_file, cut_the_manifest)


async def run(options: argparse.Namespace) -> Trial:
    """Reload under load, with one process and with two."""
    trial = Trial(
        options,
        "Models reloaded under load",
        f"`/similarity`, `/embed` and `/rank` of {' and '.join(CONTENTS)} by {options.callers} callers, "
        f"{options.rate:g} requests a second together; {options.times} good models and as many bad ones of each, "
        "found by `POST /models/reload` and SIGHUP in turn. Wrong: another status, or another answer (1e-6) than those "
        "that may answer then.",
        HEAD,
    )
    with tempfile.TemporaryDirectory() as folder:
        contents = []
        for content in (0, 1):
            with trial.service(models_dir=_folder(Path(folder) / f"content-{content}", content)) as served:
                contents.append(await with_answers(served.url, asks_of(options.seed)))
        for workers in (1, 2):
            await _swap(trial, _folder(Path(folder) / f"swapped-{workers}", 0), workers, contents)
    return trial


def _folder(models: Path, content: int) -> Path:
    models.mkdir()
    for name in (PLAIN, SHARED_NAME):
        shutil.copytree(ROOT / "models" / name, models / name)
    for name in CONTENTS:
        publish(models, name, content)
    return models


def asks_of(seed: int) -> list[Ask]:
    """Requests to the models that are replaced."""
    rng = random.Random(seed)
    texts = Texts(rng, longest=20, kept=50)
    siamese, interaction = CONTENTS

    def pairs(most: int) -> list[dict[str, str]]:
        return [{"a": text, "b": texts.one()} for text in texts.some(most)]

    makers: Sequence[Callable[[], Ask]] = (
        lambda: Ask.post("/similarity", {"pairs": pairs(8), "model": siamese}),
        lambda: Ask.post("/similarity", {"pairs": pairs(3), "model": interaction}),
        lambda: Ask.post("/embed", {"sentences": texts.some(5), "model": siamese}),
        lambda: Ask.post("/rank", {"query": texts.one(), "candidates": texts.some(20), "model": siamese}),
    )
    return [makers[i % len(makers)]() for i in range(DISTINCT)]


def judged(ask: Ask, answers: tuple[object, object], may_answer: set[int]) -> Ask:
    """The request with a judge that knows the answers of both contents.

    Args:
        ask: the request.
        answers: of the first content and of the second.
        may_answer: the contents that may answer now; changes.
    """

    def judge(found: object) -> str | None:
        told = [difference(found, answers[content]) for content in may_answer]
        return None if None in told else told[0]

    return Ask(ask.path, ask.body, judge=judge)


async def _swap(trial: Trial, models: Path, workers: int, contents: Sequence[Sequence[Ask]]) -> None:
    may_answer = {0}
    pairs = zip(*contents, strict=True)
    asks = [judged(first, (first.answer, second.answer), may_answer) for first, second in pairs]
    name = f"{workers} workers" if workers > 1 else "one process"
    content = refusals = 0
    took: list[float] = []
    with trial.service(models_dir=models, workers=workers) as served:
        await until(lambda: workers == 1 or len(served.workers()) == workers, SEEN_SECONDS)

        told: set[str] = set()  # the models that readiness last reported as not reloaded

        def all_told() -> bool:
            reasons = str(served.readiness()[1]["reasons"])
            told.clear()
            told.update(model for model in CONTENTS if f"model {model} is not reloaded" in reasons)
            return told == set(CONTENTS)

        async with trial.load(served, asks) as load, client_of(served.url) as client:
            await asyncio.sleep(1)
            resident = [served.resources().resident_mb]
            for turn in range(trial.options.times):
                content = 1 - content
                spoil = SPOILS[turn % len(SPOILS)]
                for model in CONTENTS:
                    publish(models, model, content, spoil)
                answer = (await client.post("/models/reload")).json()["models"]
                refused = {each["model"] for each in answer if each["outcome"] == "failed"}
                await until(all_told, 10)  # workers learn it one after another
                refusals += len(refused)
                trial.promise(
                    f"{name}, turn {turn + 1}: refused and reported ({spoil.__name__})",
                    refused == told == set(CONTENTS),
                    f"{sorted(refused)}, in readiness {sorted(told)}",
                )
                may_answer.add(content)
                for model in CONTENTS:
                    publish(models, model, content)
                began = time.monotonic()
                if turn % 2:
                    os.kill(served.pid, signal.SIGHUP)
                else:
                    await client.post("/models/reload")
                shown = await _shown(client, models, workers)
                took.append(time.monotonic() - began)
                trial.promise(f"{name}, turn {turn + 1}: the new one answers everywhere", shown, f"{took[-1]:.1f} s")
                await asyncio.sleep(1)  # what was asked before is answered
                may_answer.discard(1 - content)
                resident.append(served.resources().resident_mb)
            await asyncio.sleep(1)
            tally = load.take()
        complaints = [line for line in served.complaints() if "model not reloaded" not in line]
    trial.row(
        workers, 2 * trial.options.times, refusals, tally.asked, tally.lost, tally.wrong,
        *tally.times, round(max(took), 1), round(resident[0]), round(resident[-1]),
    )  # fmt: skip
    trial.answered(f"{name}, no bad model", tally)
    half = len(resident) // 2
    trial.promise(
        f"{name}: replaced models are freed: no growth in the second half",
        max(resident[half:]) - max(resident[: half + 1]) <= GROWTH_MB * workers,
        f"MB after each turn: {', '.join(f'{mb:.0f}' for mb in resident)}",
    )
    trial.quiet(f"{name}: no other error in the log", complaints)


async def _shown(client: httpx.AsyncClient, models: Path, workers: int) -> bool:
    """Wait until the models of the folder are served, over enough connections to reach every worker."""
    wanted = {name: Manifest.load(models / name).fingerprint for name in CONTENTS}
    deadline = time.monotonic() + SEEN_SECONDS
    in_a_row = 0
    while time.monotonic() < deadline:
        async with client_of(str(client.base_url)) as fresh:
            served = (await fresh.get("/models")).json()["models"]
        in_a_row = in_a_row + 1 if wanted.items() <= {each["id"]: each["fingerprint"] for each in served}.items() else 0
        if in_a_row >= (1 if workers == 1 else 5 * workers):
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return False
