"""What hints on texts in other languages find, and what they cost (docs/models.md).

    python -m benchmarks.language_hints

Finds: sentences in six other languages, and English texts, of `tests/service/scoring/language`; libraries that tell
languages apart are measured on the same ones where they are installed (py3langid, lingua-language-detector), each with
the seven languages only. Costs: CPU of a service in this process and of the client that asks it, with hints and
without in turns; every text is new.
"""

import asyncio
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from benchmarks.report import ROOT, arguments, figures, machine, write
from benchmarks.sentences import pairs, sentences
from service.app import create_app
from service.scoring.reading import KNOWN, language_of
from service.settings import Settings

SENTENCES = ROOT / "tests" / "service" / "scoring" / "language"
SETS = {"six other languages": "other.tsv", "the same, held out": "held_out.tsv", "English": "english.txt"}
LOADS = (("minilm-small", "/similarity", 1), ("avg-paraphrase", "/similarity", 1), ("avg-paraphrase", "/rank", 1000))
REQUESTS = {"/similarity": 60, "/rank": 3}  # of a turn
ENGLISH = "en"

Detect = Callable[[str], str | None]


def texts_of(path: Path) -> list[tuple[str, str]]:
    """Language and text of each line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(ENGLISH, line) if "\t" not in line else (line.split("\t")[0], line.split("\t")[1]) for line in lines]


def detectors() -> Iterator[tuple[str, Detect]]:
    """What is installed, by name; None says that it is not decided."""
    yield "ours", language_of
    if importlib.util.find_spec("py3langid") is not None:
        langid = importlib.import_module("py3langid")
        langid.set_languages(list(KNOWN))
        yield "py3langid", lambda text: str(langid.classify(text)[0])
    if importlib.util.find_spec("lingua") is not None:
        lingua = importlib.import_module("lingua")
        codes = [getattr(lingua.IsoCode639_1, code.upper()) for code in KNOWN]
        for least in (0.0, 0.25):
            builder = lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes).with_minimum_relative_distance(least)
            yield f"lingua, distance {least}", _by_lingua(builder.build().detect_language_of)


def _by_lingua(detect: Callable[[str], object]) -> Detect:
    def found(text: str) -> str | None:
        language = detect(text)
        return None if language is None else str(language.iso_code_639_1.name).lower()  # type: ignore[attr-defined]

    return found


def finds() -> list[dict[str, str]]:
    """A row for each detector: how many texts of each set it flags, and microseconds for each text."""
    rows = []
    for name, detect in detectors():
        cells, seconds, read = {"flagged as another language than English": name}, 0.0, 0
        for kind, file in SETS.items():
            texts = texts_of(SENTENCES / file)
            detect("A first text loads what is loaded late.")
            began = time.process_time()
            found = [detect(text) for _, text in texts]
            seconds, read = seconds + time.process_time() - began, read + len(texts)
            flagged = sum(each not in (None, ENGLISH) for each in found)
            right = sum(each == language != ENGLISH for each, (language, _) in zip(found, texts, strict=True))
            cells[kind] = f"{flagged} of {len(texts)}" + (f", {right} right" if right else "")
        rows.append(cells | {"us a text": f"{1e6 * seconds / read:.1f}"})
    return rows


async def costs(rounds: int) -> list[dict[str, Any]]:
    """A row for each load: CPU milliseconds of a request without hints and with them, and their ratio."""
    clients = {}
    for on in (False, True):
        app = create_app(Settings(language_hints=on, preload=tuple({model for model, *_ in LOADS})))
        clients[on] = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service")
    seeds = count()

    async def turn(on: bool, model: str, path: str, size: int) -> float:
        texts = [sentences(size + 1, next(seeds)) for _ in range(REQUESTS[path])]
        bodies = [
            {"model": model, **(pairs(each) if path == "/similarity" else {"query": each[0], "candidates": each[1:]})}
            for each in texts
        ]
        began = time.process_time()
        for body in bodies:
            (await clients[on].post(path, json=body)).raise_for_status()
        return 1000 * (time.process_time() - began) / len(bodies)

    rows = []
    for model, path, size in LOADS:
        found: dict[bool, list[float]] = {False: [], True: []}
        for i in range(rounds + 1):
            for on in (False, True) if i % 2 else (True, False):
                took = await turn(on, model, path, size)
                if i:  # the first turn warms up
                    found[on].append(took)
        ratio = statistics.median(b / a for a, b in zip(found[False], found[True], strict=True))
        what = "one new pair" if size == 1 else f"{size} new candidates"
        spent = {f"ms with{'' if on else 'out'} hints": statistics.median(each) for on, each in found.items()}
        rows.append({"CPU of a request": f"`{path}`, `{model}`, {what}", **spent, "ratio": ratio})
    return rows


def main() -> None:
    """Measure, print two tables, and write the dated results."""
    parser = arguments("python -m benchmarks.language_hints", __doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    found, spent = finds(), asyncio.run(costs(options.rounds))
    about = (
        "`python -m benchmarks.language_hints`: the texts are in tests/service/scoring/language; ratios are medians of "
        f"{options.rounds} turns. {machine('onnxruntime')}."
    )
    lines = [figures(found), "", figures(spent)]
    result = {"finds": found, "costs": spent}
    write(options.out, "language-hints", "Hints on texts in other languages", about, lines, result)


if __name__ == "__main__":
    main()
