"""A second model, which reads the pairs that embeddings found near: filter by likeness, decide by paraphrase."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semblance.batch.outputs import errors_of
from semblance.corpus.neighbours import Near
from semblance.corpus.options import SCORE, CorpusSession
from semblance.corpus.work import EmbeddedCorpus


async def scores(
    work: CorpusSession, pairs: Iterable[tuple[str, str]], beside: Path, *, entailment: bool = False
) -> npt.NDArray[np.float64]:
    """The second model's score of each pair, NaN for one that it cannot read; interrupted, it goes on where it stopped.

    Args:
        work: names the second model, and the task whose score it is.
        pairs: of texts.
        beside: how names of the working files begin.
        entailment: give P(the first text entails the second) instead.

    Raises:
        BatchError, SemblanceError: as `run_batch`.
    """
    asking = work.asking
    options, column = asking.of_pairs(), SCORE
    if entailment:
        options = replace(options, task="entailment")
        column = SCORE.replace("score", "entailment")
    given = beside.with_name(f"{beside.name}.pairs.jsonl")
    digest, count = hashlib.sha256(f"{asking.rerank} {options.task}".encode()), 0
    with given.open("w", encoding="utf-8", newline="\n") as file:
        for count, (a, b) in enumerate(pairs, 1):
            line = json.dumps({"n": count - 1, "a": a, "b": b}) + "\n"
            digest.update(line.encode())
            file.write(line)
    scored = beside.with_name(f"{beside.name}.{digest.hexdigest()[:12]}.scored.jsonl")  # of others the progress differs
    found = np.full(count, np.nan)
    overwrite, doing = asking.overwrite or scored.exists(), (f"asking {asking.rerank} about", count, "pairs")
    await work.batch(given, scored, options, overwrite=overwrite, doing=doing)
    with scored.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["n"]] = row[column]
    for path in (given, scored, errors_of(scored)):
        path.unlink(missing_ok=True)
    return found


async def read_pairs(
    work: CorpusSession, pairs: Near, corpus: EmbeddedCorpus, beside: Path, *, entailment: bool = False
) -> npt.NDArray[np.float64]:
    """The second model's scores of pairs of a corpus' vectors, [n]; or the smaller P(entailment) of both directions."""
    numbers = corpus.vectors.texts
    text_of = corpus.texts.read(numbers[np.union1d(pairs.queries, pairs.rows)].tolist())
    texts = [
        (text_of[a], text_of[b])
        for a, b in zip(numbers[pairs.queries].tolist(), numbers[pairs.rows].tolist(), strict=True)
    ]
    if not entailment:
        return await scores(work, texts, beside)
    both = await scores(work, texts + [(b, a) for a, b in texts], beside, entailment=True)
    return np.fmin(both[: len(texts)], both[len(texts) :])
