"""Rows a second of the ways to score a file without a service: `python -m benchmarks.engines --rows 50000`.

The same pairs by the same model: columns in one call, a batch on threads, a batch on workers of Ray, DuckDB. The
model is open and workers are started before the clock runs. Ways whose package is not installed are left out by name.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from semblance import scorer
from semblance.batch.job import run_batch
from semblance.batch.local import LocalModels
from semblance.batch.tasks import DEFAULT_COLUMNS, Options
from semblance.errors import MissingExtra

WORDS = "a the man woman dog cat is plays playing guitar flute runs sleeps in park on sofa".split()  # noqa: SIM905
Pairs = list[tuple[str, str]]


def made(rows: int) -> Pairs:
    """Pairs of 4 to 12 words, the same each time."""
    chosen = random.Random(0)
    texts = [" ".join(chosen.choices(WORDS, k=chosen.randint(4, 12))) for _ in range(2 * rows)]
    return list(zip(texts[::2], texts[1::2], strict=True))


def in_one_call(model: str, pairs: Pairs, _: Path) -> float:
    """The scorer itself, in one thread."""
    ask = scorer(model)
    ask(["a"], ["b"])
    began = perf_counter()
    ask(*zip(*pairs, strict=True))
    return perf_counter() - began


def batch(model: str, pairs: Pairs, folder: Path, asked: LocalModels | None = None) -> float:
    """A batch from JSON Lines to JSON Lines, on threads or on an engine."""
    source, few = folder / "pairs.jsonl", folder / "few.jsonl"
    source.write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in pairs))
    few.write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in pairs[:2048]))
    options = Options("similarity", DEFAULT_COLUMNS["similarity"], model)

    async def run() -> float:
        async with asked or LocalModels() as models:
            await run_batch(models, few, folder / "opened.jsonl", options, overwrite=True)
            began = perf_counter()
            await run_batch(models, source, folder / "out.jsonl", options, overwrite=True)
            return perf_counter() - began

    return asyncio.run(run())


def on_ray(model: str, pairs: Pairs, folder: Path) -> float:
    """The same on two workers of Ray."""
    from semblance.engines.ray import RayWorkers

    workers = RayWorkers(2)
    return batch(model, pairs, folder, LocalModels(None, workers.run, workers.close))


def in_duckdb(model: str, pairs: Pairs, folder: Path) -> float:
    """A query over a Parquet file."""
    import duckdb

    from semblance.engines.duckdb import register

    connection = duckdb.connect()
    register(connection, scorer(model), "similarity")
    connection.execute("CREATE TABLE pairs (a VARCHAR, b VARCHAR)")
    source = folder / "pairs.jsonl"
    connection.execute(f"INSERT INTO pairs SELECT a, b FROM read_json('{source}')")
    connection.execute("SELECT similarity('a', 'b').score").fetchall()
    began = perf_counter()
    connection.execute("SELECT avg(similarity(a, b).score) FROM pairs").fetchall()
    return perf_counter() - began


WAYS: dict[str, Callable[[str, Pairs, Path], float]] = {
    "columns in one call": in_one_call,
    "batch, threads": batch,
    "batch, two workers of Ray": on_ray,
    "DuckDB": in_duckdb,
}


def main() -> None:
    """Run all ways, each once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--model", default="avg-paraphrase")
    chosen = parser.parse_args()
    pairs = made(chosen.rows)
    with TemporaryDirectory() as folder:
        for name, way in WAYS.items():
            try:
                print(f"{name:26} {chosen.rows / way(chosen.model, pairs, Path(folder)):10,.0f} rows/s")
            except MissingExtra as error:
                print(f"{name:26} left out: {error}")


if __name__ == "__main__":
    main()
