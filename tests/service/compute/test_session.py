"""What a session says of where it runs, and what it asks of CUDA, as far as a CPU can show it."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from contract.graph import ENCODER
from service.app import create_app
from service.compute.session import CPU, CUDA, cuda_options, open_session
from service.service import Service
from service.settings import Settings


def test_onnx_runtime_tells_where_nodes_run(models: Path) -> None:
    session = open_session(models / "avg-paraphrase" / "encoder.onnx", ENCODER, [CPU], threads=1, must_use_cuda=False)
    assert list(session.placement) == ["cpu"]
    assert session.placement["cpu"]["Gather"] >= 1
    assert not session.has_cuda


class Cuda:
    """An ONNX Runtime that has CUDA but finds no device: what it is asked for, with a session on the CPU instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.loaded = 0
        self._open = ort.InferenceSession
        monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
        monkeypatch.setattr("onnxruntime.InferenceSession", self._session)
        monkeypatch.setattr("service.compute.session._load_cuda", self._load)

    def _load(self) -> None:
        self.loaded += 1

    def _session(self, path: str, sess_options: Any, providers: Any) -> Any:
        self.asked.append(providers)
        return self._open(path, sess_options=sess_options, providers=[each for each in providers if each[0] != CUDA])


def test_settings_reach_cuda(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda(monkeypatch)
    create_app(Settings(models_dir=models, cuda_device=3, cuda_memory_bytes=4096))
    assert cuda.asked[0] == [(CUDA, cuda_options(3, 4096)), (CPU, {})]
    assert cuda.loaded >= 1


def test_cuda_that_does_not_start_is_told_once(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda = Cuda(monkeypatch)
    with caplog.at_level(logging.WARNING):
        create_app(Settings(models_dir=models))
    told = [record for record in caplog.records if "CUDA does not start here" in record.message]
    assert len(told) == 1
    # The first model's graphs were tried; later ones open on the CPU, where they share their weights.
    tried = [CUDA in dict(providers) for providers in cuda.asked]
    assert tried == sorted(tried, reverse=True)
    assert not tried[-1]


def test_a_model_says_what_fell_back(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    split = {"cuda": Counter(MatMul=5), "cpu": Counter(Shape=2, Gather=1)}
    monkeypatch.setattr("service.compute.session.placement_of", lambda _: split)
    with caplog.at_level(logging.INFO):
        service = Service(Settings(models_dir=models, models=("avg-paraphrase", "avg-sick")))
    model = service.registry["avg-paraphrase"].opened
    assert model.provider == "cuda"
    assert model.placement == {"cuda": 5, "cpu": 3}
    told = [record for record in caplog.records if "a part of the model runs on the CPU" in record.message]
    assert told[0].__dict__["fields"]["on_cpu"] == {"Shape": 2, "Gather": 1}
    assert len(told) == 2


def test_a_model_of_which_cuda_took_nothing_is_warned_of(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Started(ort.InferenceSession):
        def __init__(self, path: str, sess_options: Any, providers: Any) -> None:
            super().__init__(path, sess_options=sess_options, providers=[CPU])

        def get_providers(self) -> list[str]:
            return [CUDA, CPU]

    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr("onnxruntime.InferenceSession", Started)
    monkeypatch.setattr("service.compute.session._load_cuda", lambda: None)
    with caplog.at_level(logging.WARNING):
        service = Service(Settings(models_dir=models, models=("avg-paraphrase", "avg-sick"), providers="cuda"))
    told = {record.__dict__["fields"]["model"] for record in caplog.records if record.message.startswith("all of the")}
    assert told == {"avg-paraphrase", "avg-sick"}
    assert service.registry["avg-sick"].opened.provider == "cpu"
