"""Models reloaded under load, valid and invalid versions in turn: no failed request, and no invalid version answers.

A siamese and an interaction model have versions. Good versions alternate between two contents with different answers;
each answer names its version and must equal that content's answer in all numbers. A bad version is a good one with a
byte changed, with other scores in its golden pairs, with a file missing, or with a truncated manifest; it is refused,
and the previous version stays.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import httpx

from benchmarks.faults.bodies import Texts
from benchmarks.faults.load import Ask, Load, client_of, difference, in_random_order, with_answers
from benchmarks.report import Findings
from benchmarks.servers import ROOT, Service
from contract.golden import GoldenPair, GoldenPairs
from contract.manifest import MANIFEST_NAME, SHARED_NAME, Manifest, describe_file

# Model id -> the published models whose contents its versions alternate between.
CONTENTS: Mapping[str, tuple[str, str]] = {
    "avg-paraphrase": ("avg-paraphrase", "avg-sick"),
    "pwim-sick": ("pwim-sick", "mgim-sick"),
}
PLAIN = "avg-sick"  # has no versions; for entailment
HEAD = ["workers", "reloads", "refused", "asked", "lost", "wrong", "p50 ms", "p99 ms", "max ms", "longest reload s",
        "MB before", "MB after"]  # fmt: skip
SEEN_SECONDS = 60.0
GROWTH_MB = 50.0  # per process; models that stay in memory would take several times that


def publish(models: Path, name: str, version: int, spoil: Callable[[Path], None] | None = None) -> None:
    """Add a version atomically.

    Args:
        models: the models folder.
        name: the model id.
        version: odd numbers have the first content, even ones the second.
        spoil: makes it a bad version.
    """
    arriving = models / f".{name}-{version}"
    shutil.copytree(ROOT / "models" / CONTENTS[name][1 - version % 2], arriving)
    manifest = Manifest.load(arriving).model_copy(update={"id": name})
    manifest.model_copy(update={"fingerprint": manifest.expected_fingerprint()}).save(arriving)
    if spoil is not None:
        spoil(arriving)
    (models / name).mkdir(exist_ok=True)
    arriving.rename(models / name / str(version))


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


async def run(options: argparse.Namespace) -> Findings:
    """Reload under load, with one process and with several."""
    findings = Findings(
        "reload",
        "Models reloaded under load",
        f"python -m benchmarks.faults reload --times {options.times} --rate {options.rate:g}",
        f"`/similarity`, `/embed` and `/rank` of {' and '.join(CONTENTS)} by {options.callers} callers, "
        f"{options.rate:g} requests a second together; {options.times} good versions and as many bad ones of each, "
        "found by `POST /models/reload` and SIGHUP in turn. Wrong: another status, or another answer (1e-6) than the "
        "version that it names gives.",
        head=HEAD,
    )
    with tempfile.TemporaryDirectory() as folder:
        contents = [await _contents(Path(folder), turn, options) for turn in (1, 2)]
        for workers in options.workers:
            models = _folder(Path(folder) / f"swapped-{workers}", 1)
            await _swap(models, workers, contents, findings, options)
    return findings


def _folder(models: Path, version: int) -> Path:
    models.mkdir()
    for name in (PLAIN, SHARED_NAME):
        shutil.copytree(ROOT / "models" / name, models / name)
    for name in CONTENTS:
        publish(models, name, version)
    return models


async def _contents(folder: Path, version: int, options: argparse.Namespace) -> list[Ask]:
    """All requests with the answers of a version's content."""
    models = _folder(folder / f"content-{version}", version)
    with Service(options.service_cpus, models_dir=models) as served:
        return await with_answers(served.url, asks_of(options.seed, options.distinct))


def asks_of(seed: int, count: int) -> list[Ask]:
    """`count` requests to the models that have versions."""
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
    return [makers[i % len(makers)]() for i in range(count)]


def judged(ask: Ask, answers: tuple[object, object], bad: set[tuple[str, int]]) -> Ask:
    """The request with a judge that knows the answers of both contents.

    Args:
        ask: the request.
        answers: of the first content and of the second.
        bad: models and versions that must never answer; may grow.
    """

    def judge(found: object) -> str | None:
        assert isinstance(found, dict), "what all these routes answer"
        version = found["model_version"]
        if (found["model"], version) in bad:
            return f"the bad version {version} of {found['model']} answers"
        expected = answers[1 - version % 2]
        assert isinstance(expected, dict), "likewise"
        return difference(found, expected | {"model_version": version})

    return Ask(ask.path, ask.body, judge=judge)


async def _swap(
    models: Path, workers: int, contents: Sequence[Sequence[Ask]], findings: Findings, options: argparse.Namespace
) -> None:
    bad: set[tuple[str, int]] = set()
    pairs = zip(*contents, strict=True)
    asks = [judged(first, (first.answer, second.answer), bad) for first, second in pairs]
    name = f"{workers} workers" if workers > 1 else "one process"
    own = {"models_dir": models, **({"workers": workers} if workers > 1 else {})}
    with Service(options.service_cpus, **own) as served:
        while workers > 1 and len(served.workers()) < workers:
            await asyncio.sleep(0.1)
        load = Load(served.url, in_random_order(asks, options.seed), callers=options.callers, rate=options.rate)
        async with load, client_of(served.url) as client:
            await asyncio.sleep(1)
            before = served.resources().resident_mb
            took: list[float] = []
            resident = [before]
            seen = 0
            version = 1
            ways: Iterator[Callable[[], Awaitable[object]]] = itertools.cycle(
                (partial(_by_route, client), partial(_by_signal, served))
            )
            for turn in range(options.times):
                old, wrong, version = version, version + 1, version + 3  # an odd step, so that contents alternate
                spoil = SPOILS[turn % len(SPOILS)]
                for model in CONTENTS:
                    bad.add((model, wrong))
                    publish(models, model, wrong, spoil)
                refused = {r["model"] for r in await _by_route(client) if r["outcome"] == "failed"}
                told = await _told(served)
                seen += len(refused)
                findings.promise(
                    f"{name}, turn {turn + 1}: refused and reported ({spoil.__name__})",
                    refused == told == set(CONTENTS),
                    f"{sorted(refused)}, in readiness {sorted(told)}",
                )
                for model in CONTENTS:
                    shutil.rmtree(models / model / str(wrong))
                    publish(models, model, version)
                began = time.monotonic()
                await next(ways)()
                shown = await _shown(client, version, workers)
                took.append(time.monotonic() - began)
                findings.promise(
                    f"{name}, turn {turn + 1}: version {version} answers everywhere", shown, f"after {took[-1]:.1f} s"
                )
                for model in CONTENTS:
                    shutil.rmtree(models / model / str(old))
                resident.append(served.resources().resident_mb)
            await asyncio.sleep(1)
            tally = load.take()
            after = served.resources().resident_mb
        complaints = [line for line in served.complaints() if "model not reloaded" not in line]
    findings.row(
        workers, 2 * options.times, seen, tally.asked, tally.lost, tally.wrong,
        *tally.times, round(max(took), 1), round(before), round(after),
    )  # fmt: skip
    says = findings.promise
    says(
        f"{name}: no request failed, and no bad version answered",
        tally.right,
        tally.failures,
    )
    half = len(resident) // 2
    says(
        f"{name}: replaced models are freed: no growth in the second half",
        max(resident[half:]) - max(resident[: half + 1]) <= GROWTH_MB * workers,
        f"MB after each turn: {', '.join(f'{mb:.0f}' for mb in resident)}",
    )
    findings.quiet(f"{name}: no other error in the log", complaints)


async def _by_route(client: httpx.AsyncClient) -> list[dict[str, str]]:
    """Reload by the route; the result for each model."""
    return list((await client.post("/models/reload")).json()["models"])


async def _by_signal(served: Service) -> None:
    os.kill(served.pid, signal.SIGHUP)


async def _shown(client: httpx.AsyncClient, version: int, workers: int) -> bool:
    """Wait until all versioned models answer with this version, over enough connections to reach every worker."""
    ask = [Ask.post("/similarity", {"pairs": [{"a": "a man", "b": "a dog"}], "model": model}) for model in CONTENTS]
    deadline = time.monotonic() + SEEN_SECONDS
    in_a_row = 0
    while time.monotonic() < deadline:
        versions = set()
        for one in ask:
            async with client_of(str(client.base_url)) as fresh:
                response = await fresh.post(one.path, content=one.body, headers={"content-type": "application/json"})
                versions.add(response.json()["model_version"])
        in_a_row = in_a_row + 1 if versions == {version} else 0
        if in_a_row >= (1 if workers == 1 else 5 * workers):
            return True
        await asyncio.sleep(0.05)
    return False


async def _told(served: Service) -> set[str]:
    """The models that readiness reports as not reloaded; waits, because workers learn it one after another."""
    for _ in range(100):
        reasons = (await asyncio.to_thread(served.readiness))[1]["reasons"]
        assert isinstance(reasons, list)
        told = {model for model in CONTENTS if any(f"model {model} is not reloaded" in reason for reason in reasons)}
        if told == set(CONTENTS):
            break
        await asyncio.sleep(0.1)
    return told
