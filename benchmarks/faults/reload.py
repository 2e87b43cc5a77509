"""Models reloaded under load, valid and invalid ones in turn: no failed request, and no invalid one answers.

A siamese and an interaction model, both open, are replaced in their folders. Good ones alternate between two contents
with different answers; each answer must equal that of a content that may answer then, in all numbers. A bad one has the
other content, and a byte changed, a file missing or a manifest truncated; it is refused, and the previous one stays.
More ways to be bad are in `test_reload.py`.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.bodies import of_vectors
from benchmarks.faults.load import Ask, with_answers
from benchmarks.faults.trial import Kind, Trial, until
from benchmarks.servers import ROOT
from core.manifest import MANIFEST_NAME, SHARED_NAME, Manifest

# Model id -> the published models whose contents it alternates between.
CONTENTS: Mapping[str, tuple[str, str]] = {
    "avg-paraphrase": ("avg-paraphrase", "avg-sick"),
    "pwim-sick": ("pwim-sick", "mgim-sick"),
}
PLAIN = "avg-sick"  # stays; for entailment
MODELS = dict(zip(("siamese", "interaction"), ([name] for name in CONTENTS), strict=True))
SEEN_SECONDS = 60.0
DISTINCT = 100  # requests
GROWTH_MB = 50.0  # per process; models that stay in memory would take several times that


def publish(models: Path, name: str, content: int, spoil: Callable[[Path], object] | None = None) -> None:
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


def _graph(folder: Path) -> Path:
    return max(folder.glob("*.onnx"), key=lambda path: path.stat().st_size)


def flip_a_byte(folder: Path) -> None:
    """Change one byte of a graph, as a faulty disk might."""
    content = bytearray(_graph(folder).read_bytes())
    content[len(content) // 2] ^= 1
    _graph(folder).write_bytes(content)


SPOILS: Mapping[str, Callable[[Path], object]] = {
    "a byte changed": flip_a_byte,
    "a file missing": lambda folder: _graph(folder).unlink(),
    "a manifest truncated": lambda folder: os.truncate(folder / MANIFEST_NAME, 100),
}


async def run(trial: Trial) -> None:
    """Reload under load, with one process and with two."""
    with tempfile.TemporaryDirectory() as folder:
        asks = of_vectors({**MODELS, "similarity": list(CONTENTS), "entailment": [PLAIN]}, DISTINCT, trial.options.seed)
        answers = []
        for content in (0, 1):
            with trial.service(models_dir=_folder(Path(folder) / f"content-{content}", content)) as served:
                answers.append([ask.answers[0] for ask in await with_answers(served.url, asks)])
        for workers in (1, 2):
            models = _folder(Path(folder) / f"swapped-{workers}", 0)
            await _swap(trial, models, workers, asks, [list(both) for both in zip(*answers, strict=True)])


def _folder(models: Path, content: int) -> Path:
    models.mkdir()
    for name in (PLAIN, SHARED_NAME):
        shutil.copytree(ROOT / "models" / name, models / name)
    for name in CONTENTS:
        publish(models, name, content)
    return models


async def _swap(
    trial: Trial, models: Path, workers: int, bare: Sequence[Ask], answers: Sequence[Sequence[object]]
) -> None:
    """Reload bad and good models in turn; `answers` are those of both contents to each request."""
    right: list[list[object]] = [[of_first] for of_first, _ in answers]  # those that may be given now; changes
    asks = [replace(ask, answers=may) for ask, may in zip(bare, right, strict=True)]
    name = f"{workers} workers" if workers > 1 else "one process"
    took: list[float] = []
    # A model that is first opened between the new files and the reload is refused until the reload.
    with trial.service(models_dir=models, workers=workers, preload=",".join(CONTENTS)) as served:
        await until(lambda: workers == 1 or len(served.workers()) == workers, SEEN_SECONDS)

        def all_told() -> bool:
            reasons = str(served.readiness()[1]["reasons"])
            return all(f"model {model} is not reloaded" in reasons for model in CONTENTS)

        def shown() -> bool:
            """Whether the models of the folder are served, over enough connections to reach every worker."""
            wanted = {name: Manifest.load(models / name).fingerprint for name in CONTENTS}
            pages = (json.loads(served.get("/models")[1])["models"] for _ in range(5 * workers))
            return all(wanted.items() <= {each["id"]: each["fingerprint"] for each in page}.items() for page in pages)

        async with trial.load(served, asks) as load:
            await asyncio.sleep(1)
            resident = [served.resources().resident_mb]
            for turn in range(trial.options.times):
                content, what = (turn + 1) % 2, list(SPOILS)[turn // 2 % len(SPOILS)]
                for model in CONTENTS:
                    publish(models, model, content, SPOILS[what])
                _, answer = await asyncio.to_thread(served.post, "/models/reload", {})
                refused = {each["model"] for each in json.loads(answer)["models"] if each["outcome"] == "failed"}
                told = await until(all_told, 10) < 10  # workers learn it one after another
                kept = refused == set(CONTENTS) and told
                found = f"{sorted(refused)}, in readiness {told}"
                trial.promise(f"{name}, turn {turn + 1}: refused and reported ({what})", kept, found)
                for may, both in zip(right, answers, strict=True):
                    may[:] = both
                for model in CONTENTS:
                    publish(models, model, content)
                began = time.monotonic()
                if turn % 2:
                    os.kill(served.pid, signal.SIGHUP)
                else:
                    await asyncio.to_thread(served.post, "/models/reload", {})
                seen = await until(shown, SEEN_SECONDS) < SEEN_SECONDS
                took.append(time.monotonic() - began)
                trial.promise(f"{name}, turn {turn + 1}: the new one answers everywhere", seen, f"{took[-1]:.1f} s")
                await asyncio.sleep(1)  # what was asked before is answered
                for may, both in zip(right, answers, strict=True):
                    may[:] = [both[content]]
                resident.append(served.resources().resident_mb)
            await asyncio.sleep(1)
        tally = load.take()
        complaints = [line for line in served.complaints() if "model not reloaded" not in line]
    trial.row(
        workers, 2 * trial.options.times, tally.asked, tally.lost, tally.wrong,
        *tally.times, round(max(took), 1), round(resident[0]), round(resident[-1]),
    )  # fmt: skip
    trial.answered(f"{name}, no bad model", tally)
    half = len(resident) // 2
    kept = max(resident[half:]) - max(resident[: half + 1]) <= GROWTH_MB * workers
    found = f"MB after each turn: {', '.join(f'{mb:.0f}' for mb in resident)}"
    trial.promise(f"{name}: replaced models are freed: no growth in the second half", kept, found)
    trial.quiet(name, complaints)


KIND = Kind(
    "Models reloaded under load",
    f"`/similarity`, `/embed` and `/rank` of {' and '.join(CONTENTS)}, and `/entailment` of {PLAIN}, "
    "by {callers} callers, {rate:g} requests a second together; {times} good models and as many bad ones of each, "
    "found by `POST /models/reload` and SIGHUP in turn. Wrong: another status, or another answer (3e-6) than those "
    "that may answer then.",
    ("workers", "reloads", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "longest reload s", "MB before",
     "MB after"),
    {"rate": 100.0, "callers": 8, "times": 12},
    run,
)  # fmt: skip
