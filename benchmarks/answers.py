"""Whether two versions of the service answer alike: scores to 1e-6, everything else to the letter, errors too.

    git worktree add --detach /tmp/before main
    python -m benchmarks.answers /tmp/before            # against this checkout; half a minute on an idle machine

Each body is asked three times, so that new, cached and kept answers are compared. The bodies are seeded: sentences,
other scripts, numbers, contractions, marks without spaces, long and empty texts, and bodies that are refused.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("IN_PROCESS_ROOT", Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(ROOT))
import uvloop  # noqa: E402 - the repository is not installed as a package

from benchmarks.sentences import sentences  # noqa: E402
from service.app import create_app  # noqa: E402
from service.settings import Settings  # noqa: E402

MODELS = ("avg-paraphrase", "avg-sick", "dan", "mgim-sick", "pwim-general")
MOST = 1e-6
ODD = [
    "Don't!",
    "it's 3.14, isn't it?",
    "e.g. this. ... and , that . ",
    "1,000.50. 5, 6.",
    "U.S.A. , Mr. Smith's",
    "x_y (z) [w]",
    "Füße ÄÖÜ ﬁne",
    "日本語のテキスト。",
    "🙂🙂 ok",
    "a" * 90,
    "- -- ---",
    "'tis the season.'",
    "tab\there",
    "né\u0301e",
    "  a  ",
    "(yes). \"quoted.\" 'quoted'?",
    "123456. 12a4. a1b2, 007!",
    "won't. can't, shan't? n't. 's. '",
    "word;word:word",
    ". , ? !",
    "no, no. no? no! no; no: no) no",
    "don't.",
    "x. y",
    "...",
    "?!",
    "1. 2. 3.",
    "a.b.c.",
    "3.",
    "3, 4",
    "\u00ad",
    "a\u200bb. c",
]
PAIRS: list[object] = [
    {},
    {"pairs": []},
    {"pairs": {}},
    {"pairs": [1]},
    {"pairs": ["x"]},
    {"pairs": [None]},
    {"pairs": [[]]},
    {"pairs": [{}]},
    {"pairs": [{"a": "x"}]},
    {"pairs": [{"a": "x", "b": 1}]},
    {"pairs": [{"a": "x", "b": "y", "c": 1}]},
    {"pairs": [{"a": "", "b": "y"}]},
    {"pairs": [{"a": "x", "b": " "}]},
    {"pairs": [{"a": "x", "b": "y"}], "model": "no"},
    {"pairs": [{"a": "x", "b": "y"}, {"b": "z", "q": 2}]},
    {"pairs": [{"a": "x" * 20_000, "b": "y"}]},
    [],
    3,
    "x",
    None,
    {"pairs": [{"a": "x", "b": "y"}], "task": "other"},
    {"pairs": [{"a": "x", "b": "y"}] * 3000},
]
BROKEN: list[tuple[str, object]] = [("/similarity", each) for each in PAIRS] + [
    ("/rank", {"query": "x", "candidates": []}),
    ("/rank", {"query": "x", "candidates": ["a", 2]}),
    ("/rank", {"query": " "}),
    ("/rank", {"query": "x", "candidates": ["a", " "]}),
    ("/entailment", {"pairs": [1]}),
    ("/entailment", {"pairs": [{"premise": "x"}]}),
    ("/entailment", {"premise": "x"}),
    ("/embed", {"sentences": []}),
    ("/similarity", {"pairs": [{"a": "\ud800", "b": "y"}]}),
]


def bodies() -> Iterator[tuple[str, object]]:
    """Path and body of every request."""
    rng = random.Random(1)
    for model in MODELS:
        for size in (1, 2, 9, 64, 300):
            texts = [rng.choice(ODD) if rng.random() < 0.3 else text for text in sentences(2 * size, size)]
            texts = [text if rng.random() < 0.9 else f"{text} {rng.choice(ODD)}" for text in texts]
            if size == 300:
                texts[7] = " ".join(texts[:60])
                if model in ("mgim-sick", "pwim-general"):
                    texts = texts[:40]
            readable = [text for text in texts if text != "\u00ad"]
            half = len(readable) // 2
            pairs = [{"a": a, "b": b} for a, b in zip(readable[:half], readable[half:], strict=False)] or [
                {"a": "x", "b": "y"}
            ]
            yield "/similarity", {"model": model, "pairs": pairs}
            yield "/similarity", {"model": model, "pairs": pairs, "tell_cached": True}
            yield "/rank", {"model": model, "query": readable[0], "candidates": readable}
            yield (
                "/rank",
                {"model": model, "query": readable[0], "candidates": readable, "top_k": 3, "tell_cached": True},
            )
            if model in ("avg-paraphrase", "avg-sick", "dan"):
                yield "/embed", {"model": model, "sentences": readable[:50]}
            if model in ("avg-sick", "pwim-general"):
                yield (
                    "/entailment",
                    {"model": model, "pairs": [{"premise": p["a"], "hypothesis": p["b"]} for p in pairs[:50]]},
                )
        yield "/explain", {"model": model, "a": "It's 5. A man, isn't he?", "b": "No. 3.14 men don't."}
    two = {"model": "avg-paraphrase", "rerank_model": "avg-sick", "rerank_top": 4}
    yield "/rank", {"query": "A man eats.", "candidates": [text for text in ODD if text != "\u00ad"], **two}
    yield from BROKEN


async def answers() -> list[tuple[int, Any]]:
    """Status and content of every answer, each body three times."""
    app = create_app(Settings())
    found: list[tuple[int, Any]] = []
    for path, body in bodies():
        content = json.dumps(body).encode()
        for _ in range(3):
            found.append(await ask(app, path, content))
    return found


async def ask(app: Any, path: str, content: bytes) -> tuple[int, Any]:
    """One request to the application."""
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"x"), (b"content-type", b"application/json"), (b"x-request-id", b"same")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": headers, "client": ("127.0.0.1", 1), "http_version": "1.1"}, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


def compare(ours: Any, theirs: Any, where: str) -> Iterator[float]:
    """The differences of all numbers that are no whole ones.

    Raises:
        SystemExit: something else differs.
    """
    if type(ours) is float and type(theirs) is float:
        yield abs(ours - theirs)
    elif type(ours) is type(theirs) and isinstance(ours, dict | list | tuple) and len(ours) == len(theirs):
        if isinstance(ours, dict) and list(ours) != list(theirs):
            raise SystemExit(f"{where}: {list(ours)} and {list(theirs)}")
        for key in ours if isinstance(ours, dict) else range(len(ours)):
            yield from compare(ours[key], theirs[key], f"{where}.{key}")
    elif ours != theirs or type(ours) is not type(theirs):
        raise SystemExit(f"{where}: {str(ours)[:300]} and {str(theirs)[:300]}")


def main() -> None:
    """Ask both, and print the largest difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="a checkout")
    options = parser.parse_args()
    if options.before is None:
        json.dump(uvloop.run(answers()), sys.stdout)
        return
    asked = [(path, n) for path, _ in bodies() for n in range(3)]
    for cache in ("memory", "off"):  # with `auto` a busy machine decides
        found = [asked_of(root, cache) for root in (options.before.resolve(), ROOT)]
        differences: list[float] = []
        for (path, n), before, now in zip(asked, *found, strict=True):
            differences += compare(now, before, f"{path}, time {n + 1}")
        refused = sum(status != 200 for status, _ in found[1])
        largest = max(differences)
        found_in = f"cache {cache}: {len(asked)} answers, {refused} of them errors"
        print(f"{found_in}: {len(differences):,} numbers within {largest:.1e}")
        if not largest <= MOST:
            raise SystemExit(f"more than {MOST:g}")


def asked_of(root: Path, cache: str) -> list[Any]:
    """The answers of a checkout."""
    settings = {"SEMBLANCE_MODELS": ",".join(MODELS), "SEMBLANCE_LOG_LEVEL": "error", "OMP_NUM_THREADS": "1"}
    own = {**os.environ, **settings, "SEMBLANCE_CACHE": cache, "IN_PROCESS_ROOT": str(root), "PYTHONPATH": str(root)}
    ran = subprocess.run([sys.executable, __file__], env=own, cwd=root, stdout=subprocess.PIPE, check=True)
    return list(json.loads(ran.stdout))


if __name__ == "__main__":
    main()
