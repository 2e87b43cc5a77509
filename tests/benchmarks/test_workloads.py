import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import workloads
from benchmarks.closed_loop import read
from benchmarks.servers import Counts, counts, settled, shares, usage


def test_a_cold_load_has_more_distinct_sentences_and_pairs_than_the_service_keeps(tmp_path: Path) -> None:
    load = workloads.write(tmp_path, "cold", workloads.pairs, 64, warm=False, seed=1)
    pairs = [(pair["a"], pair["b"]) for body in load.bodies for pair in json.loads(body)["pairs"]]
    assert all(len(json.loads(body)["pairs"]) == 64 for body in load.bodies)
    assert len(set(pairs)) > workloads.CACHE_SIZE
    assert len({text for pair in pairs for text in pair}) > workloads.CACHE_SIZE * 2


@pytest.mark.parametrize("items", [1, 64, 1000])
def test_a_warm_load_fits_into_the_cache(tmp_path: Path, items: int) -> None:
    load = workloads.write(tmp_path, "warm", workloads.pairs, items, warm=True, seed=1)
    assert 1 < len(load.bodies) * items * 2 < workloads.CACHE_SIZE
    assert load.path.read_bytes().splitlines() == load.bodies


def test_bodies_of_every_shape(tmp_path: Path) -> None:
    asked = workloads.write(tmp_path, "a", workloads.embeddings, 3, warm=True, seed=1).bodies[0]
    ranked = workloads.write(tmp_path, "b", workloads.candidates, 5, warm=True, seed=2).bodies[0]
    assert len(json.loads(asked)["input"]) == 6
    assert len(json.loads(ranked)["candidates"]) == 5
    assert json.loads(ranked)["query"] not in json.loads(ranked)["candidates"]


def test_a_load_goes_on_where_the_last_one_stopped() -> None:
    load = workloads.Load(Path(), [b"0", b"1", b"2"], warm=False)
    load.sent(4)
    assert load.upcoming() == [b"1", b"2", b"0"]


def test_what_wrk_says_is_read() -> None:
    times = '"p50": 500, "p95": 900, "p99": 1500, "max": 2000'
    line = f'{{"requests": 1000, "microseconds": 2000000, "refused": 100, "broken": 3, {times}}}'
    found = read(f"Running 2s test\n  1 threads and 16 connections\n{line}\n")
    assert (found.rate, found.seconds, found.refused, found.broken) == (450.0, 2.0, 100, 3)
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms) == (0.5, 0.9, 1.5, 2.0)


def test_wrk_without_a_result_is_an_error() -> None:
    with pytest.raises(ValueError, match="no result"):
        read("unable to connect")


METRICS = """# TYPE semblance_cache_hits counter
semblance_cache_hits_total{tier="memory"} 30.0
semblance_cache_hits_total{tier="redis"} 5.0
# TYPE semblance_cache_misses counter
semblance_cache_misses_total{tier="memory"} 10.0
semblance_cache_misses_total{tier="redis"} 0.0
# TYPE semblance_sentences counter
semblance_sentences_total{model="avg"} 30.0
semblance_sentences_total{model="pwim"} 10.0
# TYPE semblance_batch_rows histogram
semblance_batch_rows_sum{model="avg",graph="encoder.onnx"} 5.0
semblance_batch_rows_sum{model="avg",graph="similarity.onnx"} 15.0
semblance_batch_rows_sum{model="pwim",graph="pair.onnx"} 4.0
"""


def test_metrics_are_read() -> None:
    found = counts(METRICS)
    assert found == Counts({"memory": (30.0, 10.0), "redis": (5.0, 0.0)}, sentences=40.0, computed=13.0)


def test_shares_are_of_what_was_asked_meanwhile() -> None:
    before = Counts({"memory": (30.0, 10.0), "redis": (5.0, 0.0)}, sentences=40.0, computed=13.0)
    after = Counts({"memory": (60.0, 20.0), "redis": (5.0, 0.0), "scores": (0.0, 8.0)}, sentences=80.0, computed=23.0)
    assert shares(before, after) == {"memory": 0.75, "scores": 0.0, "computed": 0.25}  # redis was not asked
    assert shares(after, after) == {}


def test_usage_counts_child_processes() -> None:
    alone = usage(os.getpid())
    code = "x = bytearray(50_000_000); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        together = usage(os.getpid())
        child.communicate("\n")
    assert together.resident_mb > alone.resident_mb + 40
    assert together.peak_mb >= together.resident_mb
    assert alone.cpu_seconds > 0


def test_a_server_without_work_is_settled() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert settled(child.pid)
        child.communicate(b"\n")
