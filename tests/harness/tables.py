"""Files of rows in each format that the command line reads."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = "a the man woman dog cat is plays playing guitar flute runs sleeps in park on sofa".split()  # noqa: SIM905
SUFFIXES = [".jsonl", ".csv", ".tsv", ".parquet"]
TSV: Any = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}


def sentences(n: int, seed: int = 0) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=chosen.randint(1, 8))) for _ in range(n)]


def rows(n: int) -> list[dict[str, Any]]:
    return [
        {"id": str(i), "a": a, "b": b} for i, (a, b) in enumerate(zip(sentences(n, 1), sentences(n, 2), strict=True))
    ]


def write(path: Path, content: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(content), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, content[0], **(TSV if path.suffix == ".tsv" else {}))
            writer.writeheader()
            writer.writerows(content)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, **(TSV if path.suffix == ".tsv" else {})))
