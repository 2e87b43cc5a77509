"""The least that a request of 64 new pairs costs in Python: CPU seconds, printed.

    python -m benchmarks.floor [ID]

The body read by `json.loads`, one regular expression and one dictionary look-up a word, the ids padded, the graph run
by ONNX Runtime, a cosine, the answer written by `json.dumps`: no limits, no word pieces, no calibration, no metrics, no
HTTP.
"""

import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.sentences import pairs, sentences
from contract.graph import SPECS
from contract.manifest import Manifest
from contract.scoring import Run
from contract.tensors import load_tensors
from contract.tokenizer import Tokenizer, pad
from service.compute.graph import CPU, open_session

MODELS = Path(__file__).resolve().parent.parent / "models"
PAIRS, BODIES, ROUNDS = 64, 40, 5
WORD = re.compile(r"\w+|[^\w\s]")


def opened(model: str) -> Callable[[], float]:
    """A model -> a function that gives the CPU seconds of one request, the mean of new bodies."""
    folder = MODELS / model
    manifest = Manifest.load(folder)
    assert manifest.encoder is not None, "only averaging models have this floor"
    words = Tokenizer.load(manifest.path_of(folder, manifest.tokenizer)).words
    ids = {word: i for i, word in enumerate(words, start=1)}
    run = open_session(
        manifest.path_of(folder, manifest.encoder),
        SPECS["encoder"],
        [CPU],
        threads=1,
        must_use_cuda=False,
        tensors=load_tensors(folder, manifest, {}),
    )
    seeds = count()

    def turn() -> float:
        texts = sentences(2 * PAIRS * BODIES, next(seeds))
        bodies = [json.dumps(pairs(texts[i : i + 2 * PAIRS])).encode() for i in range(0, len(texts), 2 * PAIRS)]
        began = time.process_time()
        for body in bodies:
            answer(body, ids, run)
        return (time.process_time() - began) / len(bodies)

    return turn


def answer(body: bytes, ids: dict[str, int], run: Run) -> str:
    """The scores of a body's pairs, as JSON."""
    known = ids.get
    texts = [text for pair in json.loads(body)["pairs"] for text in (pair["a"], pair["b"])]
    input_ids, lengths = pad([[known(word, 1) for word in WORD.findall(text.lower())] for text in texts])
    rows = run({"input_ids": input_ids, "lengths": lengths})
    a, b = rows[::2], rows[1::2]
    scores = np.vecdot(a, b) / np.sqrt(np.vecdot(a, a) * np.vecdot(b, b))
    return json.dumps({"results": [{"score": score, "raw_score": score} for score in scores.tolist()]})


if __name__ == "__main__":
    of_a_round = opened(sys.argv[1] if sys.argv[1:] else "avg-paraphrase")
    print(statistics.median(of_a_round() for _ in range(ROUNDS)))
