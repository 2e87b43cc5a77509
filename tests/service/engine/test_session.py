"""What a session asks of CUDA, as far as a CPU can show it; when it gives memory back."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from service.app import create_app
from service.engine.graph import CPU, CUDA, SHRINK_SECONDS, cuda_options
from service.settings import Settings


class Cuda:
    """An ONNX Runtime that has CUDA but finds no device: what it is asked for, with a session on the CPU instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.loaded = 0
        self._open = ort.InferenceSession
        monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
        monkeypatch.setattr("onnxruntime.InferenceSession", self._session)
        monkeypatch.setattr("service.engine.graph._load_cuda", self._load)

    def _load(self) -> None:
        self.loaded += 1

    def _session(self, path: str, sess_options: Any, providers: Any) -> Any:
        self.asked.append(providers)
        return self._open(path, sess_options=sess_options, providers=[each for each in providers if each[0] != CUDA])


def test_settings_reach_cuda(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda(monkeypatch)
    create_app(Settings(models_dir=models, cuda_memory_bytes=4096))
    assert cuda.asked[0] == [(CUDA, cuda_options(4096)), (CPU, {})]
    assert cuda.loaded >= 1


def test_cuda_that_does_not_start_is_told_once(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda = Cuda(monkeypatch)
    with caplog.at_level(logging.WARNING):
        create_app(Settings(models_dir=models, preload="all"))
    told = [record for record in caplog.records if "CUDA does not start here" in record.message]
    assert len(told) == 1
    # The first model's graphs were tried; later ones open on the CPU, where they share their weights.
    tried = [CUDA in dict(providers) for providers in cuda.asked]
    assert tried == sorted(tried, reverse=True)
    assert not tried[-1]


def test_memory_is_given_back_once_in_a_while_but_not_in_the_event_loop(models: Path, monkeypatch) -> None:
    app = create_app(Settings(models_dir=models))
    graph = app.service.registry["avg-paraphrase"].scorer.graphs["encoder.onnx"]
    session, asked = graph.run, list[bool]()

    def run(outputs: Any, feeds: Any, options: ort.RunOptions | None = None) -> Any:
        asked.append(options is not None)
        return inner(outputs, feeds, options)

    inner = session._run
    monkeypatch.setattr(session, "_run", run)
    now = 1e9
    monkeypatch.setattr("service.engine.graph.monotonic", lambda: now)
    feeds = {"input_ids": np.array([[1, 2]]), "lengths": np.array([2])}
    session(feeds)
    assert asked == [False]  # this is the event loop's thread
    with ThreadPoolExecutor(1) as other:
        found = [other.submit(session, feeds).result() for _ in range(3)]
        assert asked == [False, True, False, False]
        now += SHRINK_SECONDS
        other.submit(session, feeds).result()
    assert asked[4:] == [True]
    assert all(np.array_equal(each, found[0]) for each in found)
