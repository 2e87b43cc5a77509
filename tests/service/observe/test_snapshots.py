"""Several workers' metrics as one: what is added, what is not, and what remains of those that ended."""

from pathlib import Path

import numpy as np
import pytest
from prometheus_client import Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.parser import text_string_to_metric_families as families

from service.observe.exposition import Collected
from service.observe.snapshots import Ended, Snapshots
from service.observe.tallies import CounterFamily, HistogramFamily, LockedHistogram, Registry
from service.observe.telemetry import NO_MODEL, ModelTelemetry, Telemetry

BOUNDS = (0.1, 0.5, 1.0)


class Worker:
    """One worker's metrics, of every kind there is."""

    def __init__(self, folder: Path, number: int) -> None:
        self.registry = registry = Registry()
        self.counts = CounterFamily("counts", "what", ["a"], registry)
        for a in "xy":
            self.counts.labels(a)
        self.distributions = HistogramFamily("distributions", "what", ["a"], BOUNDS, registry)
        for a in "xy":
            self.distributions.labels(a)
        self.counter = Counter("counter", "what", ["a"], registry=registry)
        self.counter.labels("x")
        self.histogram = Histogram("histogram", "what", ["a"], buckets=BOUNDS, registry=registry)
        self.histogram.labels("x")
        self.locked = HistogramFamily("locked", "what", ["a"], BOUNDS, registry, kind=LockedHistogram)
        self.locked.labels("x")
        self.gauge = Gauge("gauge", "what", registry=registry)
        self.up = Gauge("semblance_redis_up", "what", registry=registry)
        Info("served", "what", ["model"], registry=registry).labels("m").info({"fingerprint": "f"})
        self.restarts = CounterFamily("semblance_worker_restarts", "what", ["reason"], registry)
        self.restarts.labels("killed")
        self.snapshots = Snapshots(folder, number, registry)

    def told(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """What a scrape of this worker says."""
        text = generate_latest(Collected(self.snapshots.collect())).decode()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families(text)
            for sample in family.samples
        }


def told(worker: Worker, name: str, **labels: str) -> float:
    return worker.told()[name, frozenset(labels.items())]


def test_counters_and_histograms_are_added_up_and_all_series_are_there(tmp_path: Path) -> None:
    one, two, three = (Worker(tmp_path, number) for number in (1, 2, 3))
    alone = {key for key in one.told() if not key[0].endswith("_created")}
    for i, worker in enumerate((one, two, three), start=1):
        worker.counts.labels("x").inc(i)
        worker.counter.labels("x").inc(10 * i)
        for value in (0.05, 0.7, 5.0)[:i]:
            worker.distributions.labels("x").observe(value)
            worker.histogram.labels("x").observe(value)
            worker.locked.labels("x").observe(value)
        worker.snapshots.write()
    for worker in (one, two, three):
        found = worker.told()
        assert {key for key in found if not key[0].endswith("_created")} == alone
        assert told(worker, "counts_total", a="x") == 6
        assert told(worker, "counts_total", a="y") == 0
        assert told(worker, "counter_total", a="x") == 60
        for name in ("distributions", "histogram", "locked"):
            buckets = {le: told(worker, f"{name}_bucket", a="x", le=le) for le in ("0.1", "0.5", "1.0", "+Inf")}
            assert buckets == {"0.1": 3, "0.5": 3, "1.0": 5, "+Inf": 6}
            assert told(worker, f"{name}_count", a="x") == 6
            assert told(worker, f"{name}_sum", a="x") == pytest.approx(3 * 0.05 + 2 * 0.7 + 5)


def test_what_ended_is_counted_once_and_its_gauges_are_gone(tmp_path: Path) -> None:
    one, two = Worker(tmp_path, 1), Worker(tmp_path, 2)
    ended = Ended(tmp_path)
    for round_ in range(1, 6):  # five workers in turn, each replaced by the next
        other = Worker(tmp_path, 10 + round_)
        other.counts.labels("x").inc()
        other.distributions.labels("x").observe_all(np.array([0.3, 0.3]))
        other.gauge.set(7)
        other.snapshots.write()
        assert told(one, "counts_total", a="x") == round_
        assert told(one, "gauge") == 7
        left_over = (tmp_path / f"{10 + round_}.json").read_bytes()
        ended.add(10 + round_, "killed")
        assert told(one, "counts_total", a="x") == round_
        (tmp_path / f"{10 + round_}.json").write_bytes(left_over)  # as who read the folder just before has it
        assert told(one, "counts_total", a="x") == round_
        (tmp_path / f"{10 + round_}.json").unlink()
        assert told(one, "gauge") == 0
        assert told(two, "distributions_count", a="x") == 2 * round_
        assert told(two, "semblance_worker_restarts_total", reason="killed") == round_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.json", "2.json", "gone.json"]


def test_who_is_scraped_tells_the_others_first(tmp_path: Path) -> None:
    one, two = Worker(tmp_path, 1), Worker(tmp_path, 2)
    one.counts.labels("x").inc(5)
    assert told(one, "counts_total", a="x") == 5
    assert told(two, "counts_total", a="x") == 5  # no tick in between


def test_a_folder_that_is_gone_is_told_once_and_answered_without(tmp_path: Path, caplog) -> None:
    worker = Worker(tmp_path / "nowhere", 1)
    worker.counts.labels("x").inc()
    assert told(worker, "counts_total", a="x") == 1
    assert told(worker, "counts_total", a="x") == 1
    [record] = caplog.records
    assert record.message == "this worker's metrics are missing where other workers are scraped"
    (tmp_path / "nowhere").mkdir()
    worker.snapshots.write()
    assert told(Worker(tmp_path / "nowhere", 2), "counts_total", a="x") == 1


def test_all_the_service_measures_can_be_joined_and_put_into_words(tmp_path: Path) -> None:
    services = [Telemetry(), Telemetry()]
    for i, telemetry in enumerate(services):
        telemetry.add_route("/similarity")
        model = ModelTelemetry(["encoder.onnx"])
        telemetry.list({"m": {"fingerprint": "f"}})
        telemetry.serve({"m": model})
        model.ran("encoder.onnx", 4, 0.01)
        telemetry.answered("/similarity", NO_MODEL, 200, 0.01, None)
        telemetry.redis_failed("timeout")
        Snapshots(tmp_path, i, telemetry.registry).write()
    together = Collected(list(Snapshots(tmp_path, 0, services[0].registry).collect()))
    name = "semblance_requests_total"
    for text in (generate_latest(together).decode(), openmetrics(together).decode()):
        assert f'{name}{{route="/similarity",status="200"}} 2.0' in text
        assert 'semblance_batch_rows_count{graph="encoder.onnx",model="m"} 2.0' in text
        assert 'semblance_redis_failures_total{kind="timeout"} 2.0' in text
        assert "semblance_worker_processes 2.0" in text
        assert 'semblance_model_info{fingerprint="f",model="m"} 1.0' in text
    alone = {(f.name, s.name, tuple(s.labels.items())) for f in services[0].registry.collect() for s in f.samples}
    joined = {(f.name, s.name, tuple(s.labels.items())) for f in together.collect() for s in f.samples}
    assert joined == alone


def test_what_a_worker_lacks_counts_for_all(tmp_path: Path) -> None:
    """A gauge that says how well it is shows the worst of the workers; what all have in common is not added up."""
    workers = []
    for number, (ready, refused) in enumerate([(1, 0), (0, 2)]):
        telemetry = Telemetry()
        telemetry.ready.set(ready)
        telemetry.models_refused.set(refused)
        telemetry.redis_wanted.set(1)
        telemetry.memory_limit.set(100)
        telemetry.queue_limit.set(2)
        workers.append(Snapshots(tmp_path, number, telemetry.registry))
    for worker in workers:
        worker.write()
    found = {sample.name: sample.value for family in workers[0].collect() for sample in family.samples}
    assert found["semblance_ready"] == 0
    assert found["semblance_models_refused"] == 2
    assert found["semblance_redis_wanted"] == 1
    assert found["semblance_memory_limit_bytes"] == 100
    assert found["semblance_queue_limit_seconds"] == 4
