"""Several workers' metrics as one: what is added, what is not, and what remains of those that ended."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import values
from prometheus_client.multiprocess import mark_process_dead
from prometheus_client.parser import text_string_to_metric_families as families

from service.observe import METRICS_FOLDER
from service.observe.metrics import Exposition
from service.observe.shared import add_up_ended, locked
from service.observe.telemetry import NO_MODEL, ModelTelemetry, Telemetry

Start = Callable[[int], Telemetry]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Begins the metrics of a worker by its process id, each in files of its own, as in a process of its own."""
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))

    def begin(pid: int) -> Telemetry:
        monkeypatch.setattr(values, "ValueClass", values.MultiProcessValue(lambda: pid))
        telemetry = Telemetry()
        telemetry.add_route("/similarity")
        return telemetry

    return begin


def shown(telemetry: Telemetry) -> dict[str, float]:
    """What a scrape of one worker answers; each sample by its name and labels' values."""
    page, _ = asyncio.run(Exposition(telemetry.refresh, telemetry, kept_seconds=0).page(""))
    samples = [sample for family in families(page.decode()) for sample in family.samples]
    return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


def test_whichever_worker_is_scraped_answers_for_all_and_for_those_that_ended(start: Start) -> None:
    workers, folder = [], os.environ[METRICS_FOLDER]
    for pid in (1, 2):
        workers.append(telemetry := start(pid))
        model = ModelTelemetry(["encoder.onnx"])
        model.ran("encoder.onnx", 100, 1.0)  # while it is proven: nobody's
        telemetry.list({"m": {"fingerprint": "f"}})
        telemetry.serve({"m": model})
        model.ran("encoder.onnx", 4, 0.01)
        telemetry.answered("/similarity", NO_MODEL, 200, 0.01, None)
        telemetry.redis_failed("timeout")
        telemetry.refresh()
    seen = shown(workers[0])
    assert shown(workers[1]).keys() == seen.keys()
    for name in ("requests_total /similarity 200", "batch_rows_count encoder.onnx m", "redis_failures_total timeout"):
        assert seen[f"semblance_{name}"] == 2, name
    assert seen["semblance_worker_processes"] == 2
    assert seen["semblance_model_info f m"] == 1
    assert seen["process_resident_memory_bytes"] > 0
    mark_process_dead(2)
    ended: set[int | None] = {2}
    with locked(folder):  # as somebody else's scrape
        add_up_ended(folder, ended)
    assert ended == {2}
    add_up_ended(folder, ended)
    assert ended == set()
    assert not list(Path(folder).glob("*_2.db"))
    after = shown(workers[0])
    assert after["semblance_worker_processes"] == 1
    assert [name for name in seen if name.endswith(("_total", "_count", "_sum")) and after[name] < seen[name]] == []


def test_what_a_worker_lacks_counts_for_all(start: Start) -> None:
    """A gauge that says how well it is shows the worst of the workers; what all have in common is not added up."""
    workers = [start(1), start(2)]
    for telemetry, ready, refused in zip(workers, (1, 0), (0, 2), strict=True):
        telemetry.ready.set(ready)
        telemetry.models_refused.set(refused)
        telemetry.memory_limit.set(100)
        telemetry.queue_limit.set(2)
    seen = shown(workers[0])
    assert seen["semblance_ready"] == 0
    assert seen["semblance_models_refused"] == 2
    assert seen["semblance_memory_limit_bytes"] == 100
    assert seen["semblance_queue_limit_seconds"] == 4


def test_a_worker_that_still_begins_makes_nobody_unready(start: Start) -> None:
    serving, _ = start(1), start(2)
    serving.ready.set(1)
    seen = shown(serving)
    assert seen["semblance_ready"] == 1
    assert seen["semblance_worker_processes"] == 1


def test_files_that_a_worker_just_makes_are_not_read_yet(start: Start) -> None:
    """They are empty until it gives them their size; one that is killed at that moment leaves them so."""
    serving, folder = start(1), Path(os.environ[METRICS_FOLDER])
    for kind in ("counter", "gauge_livesum", "histogram"):
        (folder / f"{kind}_2.db").touch()
    assert shown(serving)["semblance_worker_processes"] == 1
    ended: set[int | None] = {2}
    add_up_ended(str(folder), ended)
    assert ended == set()
