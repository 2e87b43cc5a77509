"""Rows a second of the ways to score a file without a service: `python -m benchmarks.engines --rows 50000`.

The same pairs by the same model: columns in one call, a batch on threads, a batch on two workers of Ray, DuckDB, Daft
and Spark with two workers. Columns and queries give a mean, a batch reads and writes a file. The model is open and
workers are started before the clock runs; the ways take turns, and the median of the rounds counts. Ways whose package
is not installed are left out by name.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import RESULTS, machine, table, write
from semblance import scorer
from semblance.batch.job import run_batch
from semblance.batch.local import LocalModels
from semblance.batch.tasks import DEFAULT_COLUMNS, Options

WORDS = "a the man woman dog cat is plays playing guitar flute runs sleeps in park on sofa".split()  # noqa: SIM905
Pairs = list[tuple[str, str]]


def made(rows: int) -> Pairs:
    """Pairs of 4 to 12 words, the same each time."""
    chosen = random.Random(0)
    texts = [" ".join(chosen.choices(WORDS, k=chosen.randint(4, 12))) for _ in range(2 * rows)]
    return list(zip(texts[::2], texts[1::2], strict=True))


def columns_of(pairs: Pairs) -> dict[str, list[str]]:
    """The same as two columns."""
    return {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}


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

    os.environ.setdefault("RAY_worker_niceness", "0")  # 15 otherwise, so that other work comes first
    workers = RayWorkers(2)
    return batch(model, pairs, folder, LocalModels(None, workers.run, workers.close))


def in_duckdb(model: str, pairs: Pairs, _: Path) -> float:
    """A query over a table."""
    import duckdb

    from semblance.engines.duckdb import register

    connection = duckdb.connect()
    register(connection, scorer(model), "similarity")
    given = pa.table(columns_of(pairs))  # noqa: F841 - DuckDB finds it by its name
    connection.execute("CREATE TABLE pairs AS SELECT * FROM given")
    connection.execute("SELECT similarity('a', 'b').score").fetchall()
    began = perf_counter()
    connection.execute("SELECT avg(similarity(a, b).score) FROM pairs").fetchall()
    return perf_counter() - began


def in_daft(model: str, pairs: Pairs, _: Path) -> float:
    """A query over columns."""
    import daft

    from semblance.engines.daft import as_expression

    score = as_expression(scorer(model))(daft.col("a"), daft.col("b"))["score"]
    frame = daft.from_arrow(pa.table(columns_of(pairs)))
    frame.limit(8).agg(score.mean()).to_pydict()
    began = perf_counter()
    frame.agg(score.mean()).to_pydict()
    return perf_counter() - began


def on_spark(model: str, pairs: Pairs, folder: Path) -> float:
    """A query over a file of two parts, on two workers."""
    from pyspark.sql import SparkSession, functions

    from semblance.engines.spark import as_column

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        for part in range(2):
            pq.write_table(pa.table(columns_of(pairs[part::2])), folder / f"spark-{part}.parquet")
        frame = spark.read.parquet(*(str(folder / f"spark-{part}.parquet") for part in range(2)))
        mean = functions.avg(as_column(scorer(model))("a", "b")["score"])
        frame.limit(8).repartition(2).agg(mean).collect()
        began = perf_counter()
        frame.agg(mean).collect()
        return perf_counter() - began
    finally:
        spark.stop()


WAYS: dict[str, Callable[[str, Pairs, Path], float]] = {
    "columns in one call": in_one_call,
    "batch, threads": batch,
    "batch, two workers of Ray": on_ray,
    "DuckDB": in_duckdb,
    "Daft": in_daft,
    "Spark, two workers": on_spark,
}


def main() -> None:
    """Run all ways in turns, print a table, and write the dated results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="avg-paraphrase")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    pairs = made(chosen.rows)
    seconds: dict[str, list[float]] = {}
    missing = []
    with TemporaryDirectory() as folder:
        for _ in range(chosen.rounds):
            for name in [name for name in WAYS if name not in missing]:
                try:
                    seconds.setdefault(name, []).append(WAYS[name](chosen.model, pairs, Path(folder)))
                except ImportError as error:
                    missing.append(name)
                    print(f"{name}: left out: {error}", file=sys.stderr)
    seconds = {name: found for name, found in seconds.items() if found}
    base = statistics.median(seconds["batch, threads"])
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    rows = [
        [name, f"{chosen.rows / median:,.0f}", f"{base / median:.2f}", f"{min(found):.2f} to {max(found):.2f}"]
        for (name, median), found in zip(medians.items(), seconds.values(), strict=True)
    ]
    lines = table(["way", "rows a second", "beside a batch on threads", "seconds"], rows)
    lines += ["", f"Left out, not installed: {', '.join(missing)}."] if missing else []
    versions = [name for name in ("onnxruntime", "ray", "duckdb", "daft", "pyspark") if find_spec(name)]
    about = (
        f"`python -m benchmarks.engines --rows {chosen.rows} --rounds {chosen.rounds} --model {chosen.model}`, medians "
        f"over rounds, on {machine(*versions)}; load at the end {os.getloadavg()[0]:.1f}."
    )
    write(chosen.out, "engines", "One model on several engines", about, lines, {"seconds": seconds})


if __name__ == "__main__":
    main()
