"""Several workers' metrics as one: what is added, what is not, and what remains of those that ended."""

import random
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics

from service.observe.metrics import FamilyCollector
from service.observe.multiprocess_metrics import EndedWorkers, WorkerSnapshots
from service.observe.telemetry import NO_MODEL, ModelTelemetry, Telemetry

ROUTES = [f"/route-{number}" for number in range(20)]


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
        WorkerSnapshots(tmp_path, i, telemetry.registry).write()
    together = FamilyCollector(list(WorkerSnapshots(tmp_path, 0, services[0].registry).collect()))
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
        workers.append(WorkerSnapshots(tmp_path, number, telemetry.registry))
    for worker in workers:
        worker.write()
    found = {sample.name: sample.value for family in workers[0].collect() for sample in family.samples}
    assert found["semblance_ready"] == 0
    assert found["semblance_models_refused"] == 2
    assert found["semblance_redis_wanted"] == 1
    assert found["semblance_memory_limit_bytes"] == 100
    assert found["semblance_queue_limit_seconds"] == 4


def test_a_sum_of_seconds_does_not_fall_by_rounding_when_a_worker_ends(tmp_path: Path) -> None:
    """Its counters are then added to the others' in another order, which gives most sums of floats another last bit."""
    draw, workers = random.Random(0), []
    for number in range(4):
        telemetry = Telemetry()
        for route in ROUTES:
            telemetry.add_route(route)
            telemetry.answered(route, NO_MODEL, 200, draw.random(), None)
        workers.append(WorkerSnapshots(tmp_path, number, telemetry.registry))
        workers[-1].write()

    def sums() -> list[float]:
        samples = [sample for family in workers[0].collect() for sample in family.samples]
        return [s.value for s in samples if s.name == "semblance_request_seconds_sum"]

    before = sums()
    assert len(before) == len(ROUTES)
    ended = EndedWorkers(tmp_path)
    for number in (3, 1, 2):
        ended.add(number, None)
        assert sums() == before
