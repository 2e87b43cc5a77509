"""A model that reads both texts of each near pair, asked in batches that go on where they stopped."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from core.duplicates import PairReading
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, Name
from semblance.jobs.dedupe.options import CorpusSession
from semblance.tables.outputs import errors_of

Texts = tuple[str, str]


async def read_pairs(work: CorpusSession, pairs: Sequence[Texts], model: str, beside: Path) -> list[PairReading | None]:
    """What the model says of each pair; None of one that it cannot read.

    Args:
        work: asks.
        pairs: of texts.
        model: its id; it has paraphrase and entailment.
        beside: how names of the working files begin.

    Raises:
        BatchError, SemblanceError: as `run_batch`.
    """
    entails = await _scores(work, [*pairs, *((b, a) for a, b in pairs)], "entailment", model, beside)
    says_same = await _scores(work, pairs, "paraphrase", model, beside)
    found: list[PairReading | None] = []
    for same, there, back in zip(says_same, entails[: len(pairs)], entails[len(pairs) :], strict=True):
        if same is None or there is None or back is None:
            found.append(None)
        else:
            found.append(PairReading(same, min(there, back)))
    return found


async def _scores(
    work: CorpusSession, pairs: Sequence[Texts], task: Name, model: str, beside: Path
) -> list[float | None]:
    given = beside.with_name(f"{beside.name}.pairs.jsonl")
    names = DEFAULT_COLUMNS[task]
    lines = [json.dumps({"n": n, **dict(zip(names, pair, strict=True))}) + "\n" for n, pair in enumerate(pairs)]
    given.write_text("".join(lines), encoding="utf-8", newline="\n")
    digest = hashlib.sha256(f"{model} {task}\n{''.join(lines)}".encode()).hexdigest()[:12]  # of others progress differs
    scored = beside.with_name(f"{beside.name}.{digest}.scored.jsonl")
    options = BatchOptions(task, names, model=model, prefix="")
    doing = (f"asking {model} about", len(pairs), "pairs")
    await work.batch(given, scored, options, overwrite=work.asking.overwrite or scored.exists(), doing=doing)
    found: list[float | None] = [None] * len(pairs)
    column = "entailment" if task == "entailment" else "score"
    with scored.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["n"]] = row[column]
    for path in (given, scored, errors_of(scored)):
        path.unlink(missing_ok=True)
    return found
