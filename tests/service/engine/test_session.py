"""What a session asks of CUDA, as far as a CPU can show it; when it gives memory back."""

import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from pydantic import ValidationError

from core.graph import SLOW_FUSIONS
from core.manifest import Manifest
from service.app import create_app
from service.engine.graph import CPU, CUDA, SHRINK_SECONDS, cuda_options
from service.settings import Settings
from tests.harness import fakes


class Cuda:
    """An ONNX Runtime that has CUDA but finds no device: what it is asked for, with a session on the CPU instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.paths: list[str] = []
        self.left_out: list[Any] = []
        self.loaded, self.starts = 0, False
        self._open = ort.InferenceSession
        monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
        monkeypatch.setattr("onnxruntime.InferenceSession", self._session)
        monkeypatch.setattr("service.engine.graph._load_cuda", self._load)

    def _load(self) -> None:
        self.loaded += 1

    def _session(self, path: str, options: Any, providers: Any, disabled_optimizers: Any) -> Any:
        self.asked.append(providers)
        self.paths.append(Path(path).name)
        self.left_out.append(list(disabled_optimizers))
        opened = self._open(path, options, [each for each in providers if each[0] != CUDA])
        if not self.starts:
            return opened
        said = {"get_providers": lambda: [CUDA, CPU]}
        return SimpleNamespace(run=opened.run, get_inputs=opened.get_inputs, get_outputs=opened.get_outputs, **said)


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


def _with_a_graph_for_cuda(folder: Path) -> None:
    """Give avg-paraphrase a graph for GPUs, by other bytes of the same graph."""
    graph = onnx.load(folder / "encoder.onnx", load_external_data=False)
    graph.doc_string = "for a GPU"
    (folder / "encoder.cuda.onnx").write_bytes(graph.SerializeToString())
    fakes.sign(folder, "encoder.cuda.onnx", on_cuda={"encoder.onnx": "encoder.cuda.onnx"})


@pytest.mark.parametrize("starts", [True, False])
def test_a_gpu_opens_its_own_graph_and_a_cpu_that_of_the_cpu(
    models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, starts: bool
) -> None:
    root = tmp_path / "models"
    shutil.copytree(models, root)
    _with_a_graph_for_cuda(root / "avg-paraphrase")
    cuda = Cuda(monkeypatch)
    cuda.starts = starts
    scorer = create_app(Settings(models_dir=root, models=("avg-paraphrase",))).service.registry["avg-paraphrase"].scorer
    assert cuda.paths == (["encoder.cuda.onnx"] if starts else ["encoder.cuda.onnx", "encoder.onnx"])
    assert cuda.left_out == ([[]] if starts else [[], list(SLOW_FUSIONS)])
    assert scorer.embeddings._space.graph == ("encoder.cuda.onnx" if starts else "")


def test_a_graph_for_cuda_stands_for_one_of_the_model(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "avg-paraphrase"
    shutil.copytree(models / "avg-paraphrase", folder)
    content = json.loads((folder / "manifest.json").read_text())
    for wrong, message in (
        ({"other.onnx": "encoder.onnx"}, "on_cuda replaces graphs of the model, got other.onnx"),
        ({"encoder.onnx": "not-there.onnx"}, "'not-there.onnx' is used but not listed in files"),
    ):
        with pytest.raises(ValidationError, match=message):
            Manifest.model_validate(content | {"on_cuda": wrong})


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
