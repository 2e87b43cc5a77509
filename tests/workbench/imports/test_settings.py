"""What a folder says beside its network, and what the user asks for, is honoured or refused: never passed over."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from core.manifest import Manifest
from core.subwords import Subwords
from tests.workbench import foreign
from tests.workbench.foreign import changed
from training.publish.graphs import ParityError
from training.publish.runtime import PublishedModel
from workbench.__main__ import run_cli
from workbench.imports.files import ImportRefused
from workbench.imports.folder import import_model
from workbench.imports.model import ImportOptions

pytestmark = [pytest.mark.timeout(1500), pytest.mark.filterwarnings("ignore"), pytest.mark.extras]
GRAPH = ImportOptions(graph="onnx/model.onnx")
SENTENCES = "config_sentence_transformers.json"
A = ("the cat sat on the sofa", "A man plays the guitar.", "Dog")


def _weights(folder: Path, change: Callable[[str, torch.Tensor], torch.Tensor | None]) -> None:
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    made = {name: change(name, tensor) for name, tensor in load_file(path).items()}
    save_file({name: each for name, each in made.items() if each is not None}, path, metadata={"format": "pt"})


class TestPrompts:
    def test_a_cross_encoder_with_one_is_refused_by_name(self, tmp_path: Path) -> None:
        from sentence_transformers import CrossEncoder

        folder = foreign.transformer(tmp_path / "plain", "bert", labels=("x",))
        prompts: dict[str, Any] = {"prompts": {"p": "the dog: "}, "default_prompt_name": "p"}
        for name, more in (("ce", prompts), ("without", {})):
            CrossEncoder(str(folder), device="cpu", **more).save_pretrained(str(tmp_path / name))
        with pytest.raises(ImportRefused, match=r"config_sentence_transformers\.json: default_prompt_name is 'p'"):
            import_model(tmp_path / "ce", "x", tmp_path / "models")
        assert import_model(tmp_path / "without", "x", tmp_path / "models").parity is not None

    def test_that_of_plain_texts_is_compared_with_the_library(self, tmp_path: Path) -> None:
        prompts = {"query": "the cat ", "document": "a dog ", "sts": "[CLS] the cat "}
        folder = foreign.encoder(tmp_path / "bert", prompts=prompts, default_prompt_name="sts")
        with pytest.raises(ParityError, match="differs from sentence-transformers by"):
            import_model(folder, "x", tmp_path / "models")
        changed(folder / SENTENCES, prompts={**prompts, "sts": "the cat and a dog "})
        model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
        assert model.embed(A) == pytest.approx(foreign.embedded(folder, A, "the cat and a dog "), abs=1e-4)

    def test_one_that_is_given_stands_before_every_text(self, tmp_path: Path) -> None:
        given = ImportOptions(prompts={"text": "the dog: ", "query": None, "passage": None})
        done = import_model(foreign.encoder(tmp_path / "bert"), "x", tmp_path / "models", options=given)
        prompts = Manifest.load(done.folder).prompts
        assert prompts is not None
        assert {prompts.text, prompts.query, prompts.passage} == {"the dog: "}

    @pytest.mark.parametrize("make", [foreign.static, foreign.model2vec])
    def test_a_table_of_rows_gets_those_of_queries_and_documents(
        self, make: Callable[[Path], Path], tmp_path: Path
    ) -> None:
        folder = make(tmp_path / "static")
        if not (folder / SENTENCES).exists():
            (folder / SENTENCES).write_text("{}")
        prompts = {"query": "the dog: ", "document": "a cat "}
        changed(folder / SENTENCES, prompts=prompts)
        model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
        assert model.embed(A, "query") == pytest.approx(model.embed(["the dog: " + text for text in A]))
        assert model.embed(A, "passage") == pytest.approx(model.embed(["a cat " + text for text in A]))
        assert np.abs(model.embed(A, "query") - model.embed(A)).max() > 0.01
        given = ImportOptions(prompts={"text": None, "query": "Dog ", "passage": None})
        model = PublishedModel(import_model(folder, "y", tmp_path / "models", options=given).folder)
        assert model.embed(A, "query") == pytest.approx(model.embed(["Dog " + text for text in A]))


@pytest.mark.parametrize("given", [None, 7])
def test_a_static_model_reads_as_many_tokens_as_its_tokenizers_truncation(given: int | None, tmp_path: Path) -> None:
    folder = foreign.static(tmp_path / "cut")
    cut = {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
    changed(folder / "tokenizer.json", truncation=cut)
    done = import_model(folder, "x", tmp_path / "models", options=ImportOptions(max_tokens=given))
    model = PublishedModel(done.folder)
    assert model.manifest.limits.max_tokens == (given or 9)
    if given is None:
        texts = ["a cat and the dog " * 20]
        assert model.embed(texts) == pytest.approx(foreign.embedded(folder, texts), abs=1e-5)
    changed(folder / "tokenizer.json", truncation=cut | {"direction": "Left"})
    with pytest.raises(ImportRefused, match=r"tokenizer\.json: truncation: .*'Left'"):
        import_model(folder, "y", tmp_path / "models")


def test_what_a_static_models_library_raises_is_one_line(tmp_path: Path) -> None:
    folder = foreign.static(tmp_path / "static")
    changed(folder / SENTENCES, __version__={"sentence_transformers": "dev (main)"})
    with pytest.raises(ImportRefused, match=r"static: cannot be read: .*dev"):
        import_model(folder, "x", tmp_path / "models")


@pytest.mark.parametrize("make", [foreign.static, foreign.model2vec])
def test_where_a_static_model_is_cut_is_compared_with_its_library(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Subwords.encode
    monkeypatch.setattr(Subwords, "encode", lambda self, text, most: theirs(self, text, min(most, 100)))
    with pytest.raises(ParityError, match="differs from"):
        import_model(make(tmp_path / "static"), "x", tmp_path / "models")


@pytest.mark.parametrize("name", ["dot", "euclidean"])
def test_a_table_of_rows_is_compared_by_the_cosine(name: str, tmp_path: Path) -> None:
    folder = foreign.static(tmp_path / "static")
    changed(folder / SENTENCES, similarity_fn_name=name)
    with pytest.raises(ImportRefused, match=f"similarity_fn_name is '{name}'"):
        import_model(folder, "x", tmp_path / "models")


def test_the_dot_product_of_a_dense_layer_without_normalize_is_refused(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "dense", dense=10, normalise=False)
    changed(folder / SENTENCES, similarity_fn_name="dot")
    with pytest.raises(ImportRefused, match="similarity_fn_name is 'dot' and no Normalize module is last"):
        import_model(folder, "x", tmp_path / "models")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_encoder_in_half_precision_answers_as_its_library_in_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "half", dense=10)
    _weights(folder, lambda _, tensor: tensor.to(dtype))
    changed(folder / "config.json", dtype=str(dtype).removeprefix("torch."))
    done = import_model(folder, "x", tmp_path / "models")
    assert done.parity is not None
    assert done.parity.max_difference_float32 < 1e-4


class TestOptions:
    @pytest.fixture(scope="class")
    def folders(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        made = tmp_path_factory.mktemp("folders")
        foreign.static(made / "static")
        foreign.of_graph(foreign.encoder(made / "encoder"))
        for name, labels in (("one", ["x"]), ("two", ["n", "p"]), ("three", ["a", "b", "c"]), ("", ["", "b"])):
            foreign.of_graph(foreign.transformer(made / f"head-{name}", "bert", labels))
        return made

    @pytest.mark.parametrize(
        ("name", "options", "said"),
        [
            ("static", ["--pooling", "cls"], "--pooling: a table of rows has no use for it"),
            ("static", ["--head", "similarity"], "--head: a table of rows"),
            ("encoder", ["--labels", "a,b"], "--labels: an embedder"),
            ("encoder", ["--pairs-head", "no"], "--pairs-head: an embedder"),
            ("encoder", ["--pooling", "cls"], "--pooling cls: "),
            ("head-one", ["--query-prompt", "q: "], "--prompt: a model that scores or labels"),
            ("head-one", ["--labels", "a"], "--labels: a model with one output"),
            ("head-two", ["--head", "similarity"], "--head: a model with 2 outputs"),
            ("head-three", ["--labels", "entailment,not_entailment"], "expected a name for each of 3 outputs"),
            ("head-two", ["--labels", "entailment,neutral,contradiction"], "expected a name for each of 2 outputs"),
            ("head-three", ["--labels", "a,,b", "--pairs-head", "no"], "--labels is 'a', '', 'b'; expected a name"),
            ("head-", ["--pairs-head", "no"], "id2label is '', 'b'; expected a name for each of 2 outputs"),
            ("head-two", ["--labels", f"a,{'b' * 65}", "--pairs-head", "no"], "expected a name for each"),
        ],
    )
    def test_those_without_a_use_or_that_do_not_fit_are_refused(
        self, name: str, options: Sequence[str], said: str, folders: Path, tmp_path: Path, capsys: Any
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            run_cli(["import", str(folders / name), "--id", "x", "--models", str(tmp_path), *options])
        assert (ended.value.code, list(tmp_path.iterdir())) == (2, [])
        assert said in capsys.readouterr().out

    def test_a_graph_of_another_number_of_outputs_than_the_folder_names(self, tmp_path: Path) -> None:
        folder = foreign.of_graph(foreign.transformer(tmp_path / "three", "bert", labels=("a", "b", "c")))
        changed(folder / "config.json", id2label={"0": "entailment", "1": "not_entailment"})
        with pytest.raises(ImportRefused, match=r"id2label is .*; expected a name for each of 3 outputs"):
            import_model(folder, "x", tmp_path / "models")


def test_a_folder_without_some_of_its_weights_is_refused(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "bert")
    _weights(folder, lambda name, tensor: None if "LayerNorm" in name else tensor)
    with pytest.raises(ImportRefused, match=r"the weights lack embeddings\.LayerNorm\.bias, .* \(6 in all\)"):
        import_model(folder, "x", tmp_path / "models")


def test_weights_beyond_float16_are_not_published_in_it(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "bert")
    _weights(folder, lambda name, tensor: tensor * 1e6 if "value.weight" in name else tensor)
    with pytest.raises(ParityError, match=r"--float16 changes answers: their cosine falls to"):
        import_model(folder, "x", tmp_path / "models", storage="float16")
    assert Manifest.load(import_model(folder, "x", tmp_path / "models").folder).id == "x"


def test_the_length_that_sentence_transformers_states_counts_and_not_the_tokenizers(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "long", limit=50)
    changed(folder / "tokenizer_config.json", model_max_length=20)
    changed(folder / "sentence_bert_config.json", max_seq_length=50)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    assert model.manifest.limits.max_tokens == 48
    text = "a cat and the dog " * 20
    assert model.embed([text]) == pytest.approx(foreign.embedded(folder, [text]), abs=1e-4)


@pytest.mark.parametrize(("family", "stated", "read"), [("roberta", 66, 62), ("bert", 100, 62)])
def test_no_more_tokens_are_read_than_the_network_has_positions_for(
    tmp_path: Path, family: str, stated: int, read: int
) -> None:
    folder = foreign.encoder(tmp_path / "long", family)
    changed(folder / "sentence_bert_config.json", max_seq_length=stated)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    assert model.manifest.limits.max_tokens == read


def test_a_network_that_cannot_read_as_many_tokens_as_its_folder_says_is_no_fault_of_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = foreign.encoder(tmp_path / "long")
    changed(folder / "sentence_bert_config.json", max_seq_length=100)
    monkeypatch.setattr("workbench.imports.described._ABSOLUTE", set())  # as of a family that is not listed
    with pytest.raises(ParityError, match=r"long: cannot run with 3 x 100 tokens: .*give --max-tokens"):
        import_model(folder, "x", tmp_path / "models")


def test_settings_under_an_old_name_are_those_that_count(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "old", limit=50)
    (folder / "sentence_bert_config.json").unlink()
    (folder / "sentence_roberta_config.json").write_text('{"max_seq_length": 20, "do_lower_case": true}')
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    assert model.manifest.limits.max_tokens == 18


def test_a_graph_that_pools_and_leaves_out_what_follows_is_refused(tmp_path: Path) -> None:
    folder = foreign.with_graph(foreign.encoder(tmp_path / "pooled", normalise=False, dense=24))
    import_model(folder, "x", tmp_path / "models", options=GRAPH)
    pooling = folder / "1_Pooling" / "config.json"
    mean = pooling.read_text()
    changed(pooling, pooling_mode="cls")
    with pytest.raises(ImportRefused, match=r"model\.onnx: the graph gives other answers than the weights beside it"):
        import_model(folder, "y", tmp_path / "models", options=GRAPH)
    pooling.write_text(mean)
    changed(folder / "2_Dense" / "config.json", activation_function="torch.nn.missing.Tanh")
    with pytest.raises(ImportRefused, match=r"cannot be read: No module named 'torch\.nn\.missing'"):
        import_model(folder, "y", tmp_path / "models")
    changed(folder / "2_Dense" / "config.json", activation_function="torch.nn.modules.activation.Tanh")
    _weights(folder / "2_Dense", lambda name, tensor: tensor.flip(0) if "weight" in name else tensor)
    with pytest.raises(ImportRefused, match=r"model\.onnx: the graph gives other answers than the weights beside it"):
        import_model(folder, "y", tmp_path / "models", options=GRAPH)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ImportRefused, match=r"modules\.json: nothing tells whether the folder's graph has the Dense"):
        import_model(folder, "y", tmp_path / "models", options=GRAPH)
    modules = json.loads((folder / "modules.json").read_text())
    normalise = {"idx": 3, "name": "3", "path": "", "type": "sentence_transformers.models.Normalize"}
    (folder / "modules.json").write_text(json.dumps([*modules, normalise]))
    with pytest.raises(ImportRefused, match=r"modules\.json: a Normalize module follows, and the folder's graph gives"):
        import_model(folder, "z", tmp_path / "models")


def test_the_limit_under_the_tokenizers_old_name_counts(tmp_path: Path) -> None:
    folder = foreign.with_graph(foreign.encoder(tmp_path / "old", limit=50))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("model_max_length", None)
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "max_len": 20}))
    changed(folder / "sentence_bert_config.json", max_seq_length=None)
    assert PublishedModel(import_model(folder, "x", tmp_path / "models").folder).manifest.limits.max_tokens == 18
    changed(folder / "sentence_bert_config.json", max_seq_length=2)
    with pytest.raises(ImportRefused, match=r"reads 2 tokens, 2 special ones among them: none is left"):
        import_model(folder, "y", tmp_path / "models")


def test_a_graph_of_pairs_is_one_whatever_its_configuration_says(tmp_path: Path) -> None:
    folder = foreign.of_graph(foreign.transformer(tmp_path / "pairs", "bert", labels=("score",)))
    changed(folder / "config.json", architectures=None)
    done = import_model(folder, "x", tmp_path / "models")
    assert PublishedModel(done.folder).manifest.limits.max_pair_tokens == 61  # of 64 positions


@pytest.mark.parametrize("graph", [True, False])
def test_a_tokenizer_with_more_ids_than_the_network_has_rows_is_refused(tmp_path: Path, graph: bool) -> None:
    folder = foreign.encoder(tmp_path / "more")
    if graph:
        foreign.of_graph(folder)
    content = json.loads((folder / "tokenizer.json").read_text())
    last = max(content["model"]["vocab"].values())
    content["added_tokens"].append(
        {**content["added_tokens"][0], "id": last + 1, "content": "covid19", "special": False}
    )
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ImportRefused, match=rf"cannot run with .* the tokenizer's last id, {last + 1}: "):
        import_model(folder, "x", tmp_path / "models")


def _moved(name: str, tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 1.01 if "word_embeddings" in name else tensor  # as after little training


def _another(name: str, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(0) if "word_embeddings" in name else tensor


def _another_head(name: str, tensor: torch.Tensor) -> torch.Tensor:
    return -tensor if name == "classifier.weight" else tensor


@pytest.mark.parametrize(
    ("labels", "change"),
    [(None, _another), (("entailment", "neutral", "contradiction"), _another_head), (("score",), _another_head)],
)
def test_a_graph_that_is_asked_for_beside_weights_of_another_model_is_refused(
    tmp_path: Path, labels: tuple[str, ...] | None, change: Callable[[str, torch.Tensor], torch.Tensor]
) -> None:
    folder = foreign.encoder(tmp_path / "a") if labels is None else foreign.transformer(tmp_path / "a", "bert", labels)
    _weights(folder, lambda name, tensor: tensor - 100 if name == "classifier.bias" else tensor)
    import_model(foreign.with_graph(folder), "x", tmp_path / "models", options=GRAPH)
    _weights(folder, change)
    with pytest.raises(ImportRefused, match=r"model\.onnx: the graph gives other answers than the weights beside it"):
        import_model(folder, "y", tmp_path / "models", options=GRAPH)
    (folder / "model.safetensors").unlink()
    import_model(folder, "z", tmp_path / "models")


def test_weights_count_and_not_a_graph_beside_them_that_nobody_asks_for(tmp_path: Path) -> None:
    folder = foreign.with_graph(foreign.encoder(tmp_path / "a"))
    _weights(folder, _moved)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    assert model.embed(A) == pytest.approx(foreign.embedded(folder, A), abs=1e-4)


def test_a_family_that_torch_cannot_export_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        sys.stderr.write("a graph " * 1000)  # as torch does
        raise TypeError("a shape\nand more")

    monkeypatch.setattr("workbench.imports.exporting.network_graph", fails)
    with pytest.raises(ImportRefused, match=r"torch cannot export bert to ONNX \(a shape\): a folder with a graph"):
        import_model(foreign.encoder(tmp_path / "a"), "x", tmp_path / "models")
    assert "a graph" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("family", "architectures"), [("bert", ["BertForSequenceClassification"]), ("t5", ["T5EncoderModel"])]
)
def test_of_an_embedder_neither_a_head_nor_a_decoder_is_asked_for(
    tmp_path: Path, family: str, architectures: list[str]
) -> None:
    folder = foreign.encoder(tmp_path / family, family)
    changed(folder / "config.json", architectures=architectures)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    assert model.embed(A) == pytest.approx(foreign.embedded(folder, A), abs=1e-4)


def test_an_adapter_beside_a_graph_is_refused(tmp_path: Path) -> None:
    folder = foreign.with_graph(foreign.encoder(tmp_path / "adapted"))
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ImportRefused, match=r"adapter_config\.json: an adapter: merge it"):
        import_model(folder, "x", tmp_path / "models")


def test_neither_the_shared_files_nor_the_source_are_replaced(tmp_path: Path) -> None:
    folder = foreign.static(tmp_path / "models" / "shared")
    for overwrite in (False, True):
        with pytest.raises(ImportRefused, match="--id shared: the folder of that name has the files that models share"):
            import_model(folder, None, tmp_path / "new", overwrite=overwrite)
        with pytest.raises(ImportRefused, match="the model would replace its own source"):
            import_model(folder.rename(tmp_path / "own"), "own", tmp_path, overwrite=overwrite)
        folder = (tmp_path / "own").rename(folder)
    (tmp_path / "link").symlink_to(folder)
    assert import_model(tmp_path / "link", "linked", tmp_path / "new").folder.is_dir()


def test_a_cross_encoder_of_modules_is_no_embedder(tmp_path: Path) -> None:
    folder = foreign.encoder(tmp_path / "scores", normalise=False, dense=1)
    changed(folder / SENTENCES, model_type="CrossEncoder")
    with pytest.raises(ImportRefused, match=rf"{SENTENCES}: model_type is 'CrossEncoder', and the network has no head"):
        import_model(folder, "x", tmp_path / "models")


@pytest.mark.parametrize("family", ["deberta-v2", "qwen3"])
def test_a_network_without_absolute_positions_reads_what_the_folder_states(tmp_path: Path, family: str) -> None:
    folder = foreign.encoder(tmp_path / "relative", family, limit=100)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models").folder)
    texts = ["a cat and the dog " * 30]
    assert model.embed(texts) == pytest.approx(foreign.embedded(folder, texts), abs=1e-4)


def test_labels_of_which_several_may_be_right_are_refused(tmp_path: Path) -> None:
    folder = foreign.transformer(tmp_path / "nli", "bert", ("entailment", "neutral", "contradiction"))
    changed(folder / "config.json", sentence_transformers={"activation_fn": "torch.nn.modules.activation.Sigmoid"})
    with pytest.raises(ImportRefused, match=r"config\.json: activation_fn is Sigmoid"):
        import_model(folder, "x", tmp_path / "models")
    changed(folder / "config.json", sentence_transformers=None, problem_type="regression")
    with pytest.raises(ImportRefused, match=r"config\.json: problem_type is 'regression'"):
        import_model(folder, "x", tmp_path / "models")


def test_a_graph_of_fewer_tokens_than_its_configuration_says_is_refused(tmp_path: Path) -> None:
    folder = foreign.of_graph(foreign.encoder(tmp_path / "short"))
    changed(folder / "config.json", max_position_embeddings=4000)
    changed(folder / "sentence_bert_config.json", max_seq_length=4000)
    with pytest.raises(ImportRefused, match=r"model\.onnx: cannot run with 2050 tokens \(--max-tokens\)"):
        import_model(folder, "x", tmp_path / "models")
    done = import_model(folder, "x", tmp_path / "models", options=ImportOptions(max_tokens=60))
    assert PublishedModel(done.folder).manifest.limits.max_tokens == 60


def test_a_graph_whose_weights_lie_in_a_file_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = foreign.with_graph(foreign.encoder(tmp_path / "apart"))
    path = folder / "onnx" / "model.onnx"
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    model = PublishedModel(import_model(folder, "x", tmp_path / "models", options=GRAPH).folder)
    assert model.embed(A) == pytest.approx(foreign.embedded(folder, A), abs=1e-4)
