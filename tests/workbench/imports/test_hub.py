"""Models by name: fetched from a hub over HTTP, pinned to a commit, without pickles and code; else refused in one line.

test_families.py imports every family in this way.
"""

import hashlib
import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.manifest import MANIFEST_NAME, Manifest, Origin
from tests.harness import hub as small_hub
from tests.harness.hub import Hub, Repository
from tests.workbench import foreign
from training.publish.runtime import PublishedModel
from workbench.__main__ import run_cli
from workbench.imports import sources
from workbench.imports.files import ImportRefused, read_stated
from workbench.imports.folder import id_of, import_model
from workbench.imports.sources import _hub_errors, open_source

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.extras]
NAME = "people/Tiny_Static.v2"
CARD = "---\nmodel-index:\n- name: x\nlanguage:\n- multilingual\n- de\n- zh-Hant\n- no\nlicense: mit\n---\n# Tiny\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static model, which is imported in a fraction of a second, beside what must never be fetched."""
    made = foreign.static(tmp_path_factory.mktemp("static") / "model")
    (made / "README.md").write_text(CARD)
    for name in ("pytorch_model.bin", "modeling_mine.py", "training_args.pt", "model.pkl", "openvino/weights.bin"):
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes(b"never")
    return made


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str = NAME, *options: str) -> str:
    """What the command says of a source that it does not take, which is one line and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        run_cli(["import", name, "--models", str(tmp_path / "models"), *options])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert "Traceback" not in said.err
    assert said.out.startswith("error: ")
    assert said.out.count("\n") == 1
    assert not (tmp_path / "models").exists()
    return said.out


def test_a_model_by_its_name(hub: Hub, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sha = hub.add(NAME, folder).revisions["main"]
    with pytest.raises(SystemExit) as ended:
        run_cli(["import", NAME, "--models", str(tmp_path / "models")])
    assert ended.value.code == 0, capsys.readouterr().out
    assert {"README.md", "modules.json", "model.safetensors"} <= {*hub.asked}
    assert not [each for each in hub.asked if each.endswith((".bin", ".py", ".pt", ".pkl"))]
    made = tmp_path / "models" / "tiny-static-v2"
    manifest = Manifest.load(made)
    assert manifest.origin is not None
    assert manifest.origin.model_dump() == {"hub": hub.url.removeprefix("http://"), "name": NAME, "revision": sha}
    assert manifest.provenance.commands == (f"semblance import {NAME}@{sha} --id tiny-static-v2",)
    assert manifest.languages == ("de", "zh", "no")
    assert manifest.training_data[0].licence == "mit"
    card = (made / "README.md").read_text()
    assert f"- From: `{NAME}` of {manifest.origin.hub}, revision `{sha}`." in card
    local = import_model(folder, "local", tmp_path / "models").folder
    texts = ["the cat sat on the sofa", "a dog"]
    assert PublishedModel(made).embed(texts).tolist() == PublishedModel(local).embed(texts).tolist()
    assert Manifest.load(local).origin is None


def test_a_model_does_not_replace_one_of_another_owner(hub: Hub, folder: Path, tmp_path: Path) -> None:
    owner, _, name = NAME.partition("/")
    hub.add(f"another-{owner}/{name}", folder)
    hub.add(NAME, folder)
    made = import_model(NAME, None, tmp_path / "models").folder
    with pytest.raises(ImportRefused, match=f"{made.name} has another model .*--id"):
        import_model(f"another-{owner}/{name}", None, tmp_path / "models")
    assert import_model(NAME, None, tmp_path / "models").folder == made  # anew


def test_hubs_are_kept_apart(hub: Hub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add(NAME, folder)
    made = import_model(NAME, None, tmp_path / "models").folder
    with small_hub.running() as other:
        constants = importlib.import_module("huggingface_hub.constants")
        monkeypatch.setattr(constants, "ENDPOINT", other.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(hub.url, other.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        other.add(NAME, folder)
        with pytest.raises(ImportRefused, match="has another model"):
            import_model(NAME, None, tmp_path / "models")
        assert "model.safetensors" in other.asked  # not the first hub's, from the cache
        assert Manifest.load(made).origin.hub == hub.url.removeprefix("http://")  # type: ignore[union-attr]


def test_only_the_same_source_is_replaced_without_a_word(folder: Path, tmp_path: Path) -> None:
    other, models = Path(shutil.copytree(folder, tmp_path / "b" / "model")), tmp_path / "models"
    made = import_model(folder, None, models).folder
    was = (made / MANIFEST_NAME).read_bytes()
    assert str(folder) not in was.decode()
    for model_id in (None, made.name):
        with pytest.raises(ImportRefused, match=r"has another model \(model: .*--id.*--overwrite"):
            import_model(other, model_id, models)
    assert (made / MANIFEST_NAME).read_bytes() == was
    assert import_model(folder, made.name, models).folder == made  # anew
    manifest = Manifest.load(made)
    recipe = {name: value for name, value in manifest.provenance.recipe.items() if name not in ("imported", "folder")}
    tuned = manifest.provenance.model_copy(update={"recipe": recipe | {"tuned": {}}})
    manifest.model_copy(update={"provenance": tuned}).save(made)
    with pytest.raises(ImportRefused, match="has another model"):
        import_model(folder, None, models)
    assert import_model(folder, None, models, overwrite=True).folder == made
    (models / "mine" / "1").mkdir(parents=True)
    with pytest.raises(ImportRefused, match=r"mine has no model: .*--id"):
        import_model(folder, "mine", models)
    (made / MANIFEST_NAME).write_text('{"contract_version": 2}')  # of an earlier version
    with pytest.raises(ImportRefused, match=r"anew.*: --overwrite replaces it, or give .*--id"):
        import_model(folder, None, models)
    assert import_model(folder, None, models, overwrite=True).folder == made


def test_a_password_of_the_hubs_address_is_in_no_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://bob:secret@127.0.0.1:9")
    with pytest.raises(ImportRefused, match="cannot be fetched") as refused, _hub_errors(NAME, None):
        raise OSError("no answer of http://bob:secret@127.0.0.1:9/api")
    assert "secret" not in str(refused.value)


def test_licence_and_languages_by_option(hub: Hub, folder: Path, tmp_path: Path) -> None:
    hub.add(NAME, folder)
    with pytest.raises(SystemExit):
        run_cli(["import", NAME, "--models", str(tmp_path), "--licence", "CC0", "--languages", "en,nl"])
    manifest = Manifest.load(tmp_path / "tiny-static-v2")
    assert (manifest.training_data[0].licence, manifest.languages) == ("CC0", ("en", "nl"))
    assert manifest.provenance.commands[0].endswith("--licence CC0 --languages en,nl")


def test_a_revision_is_a_branch_a_tag_a_pull_request_or_a_commit(hub: Hub, folder: Path) -> None:
    repository = hub.add(NAME, folder)
    first = repository.revisions["main"]
    for revision, card in (("v2", "---\nlicense: x\n---\n"), ("refs/pr/1", "---\nlicense: y\n---\n")):
        files = repository.commits[first] | {"README.md": card.encode()}
        repository.commit(files, revision)
        for wanted in (revision, repository.revisions[revision]):
            with open_source(f"{NAME}@{wanted}") as found:
                assert found.origin is not None
                assert found.origin.revision == repository.revisions[revision]
                assert read_stated(found.folder).licence == card.split()[2]
    with open_source(NAME) as found:
        assert found.name == f"{NAME}@{first}"


def test_without_the_hub_the_cache_answers(hub: Hub, folder: Path, offline: Callable[[], None]) -> None:
    sha = hub.add(NAME, folder).revisions["main"]
    with open_source(NAME) as found:
        before = {path.name: path.read_bytes() for path in found.folder.rglob("*") if path.is_file()}
    offline()
    for name in (NAME, f"{NAME}@{sha}"):
        with open_source(name) as found:
            assert {path.name: path.read_bytes() for path in found.folder.rglob("*") if path.is_file()} == before
    for name in ("people/other", f"{NAME}@v9", f"{NAME}@{'0' * 40}"):
        with (
            pytest.raises(ImportRefused, match="not in the cache, and HF_HUB_OFFLINE forbids to ask"),
            open_source(name),
        ):
            pass


def test_what_others_left_in_the_cache_is_not_read(hub: Hub, folder: Path) -> None:
    hub.add(NAME, folder)
    from huggingface_hub import snapshot_download

    assert (Path(snapshot_download(NAME)) / "modeling_mine.py").is_file()
    with open_source(NAME) as found:
        suffixes = {path.suffix for path in found.folder.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".md", ".safetensors"}


def _private(repository: Repository) -> None:
    repository.token = "secret"


def _gated(repository: Repository) -> None:
    repository.token, repository.gated = "secret", True


def _files(*changes: str, **content: str) -> Callable[[Repository], None]:
    """Without the files whose name ends so, and with others."""

    def change(repository: Repository) -> None:
        files = repository.commits[repository.revisions["main"]]
        kept = {name: value for name, value in files.items() if not name.endswith(changes)}
        repository.commit(kept | {name: value.encode() for name, value in content.items()})

    return change


REFUSED: dict[str, tuple[str, Callable[[Repository], None], str]] = {
    "unknown": ("people/none", lambda _: None,
        "people/none: no such folder, and no such model on HUB, or a private one: then give a token in HF_TOKEN"),
    "revision": (f"{NAME}@v7", lambda _: None, f"{NAME}: HUB has no revision v7 of it"),
    "private": (NAME, _private,
        f"{NAME}: no such folder, and no such model on HUB, or a private one: then give a token in HF_TOKEN"),
    "gated": (NAME, _gated,
        f"{NAME}: HUB asks to agree to its conditions there first; then give a token in HF_TOKEN"),
    "pickle": (NAME, _files(".safetensors"),
        f"{NAME}: pytorch_model.bin: weights in a pickle, which can run code when it is read"),
    "pickled module": (NAME, _files(**{"2_Dense/pytorch_model.bin": "x", "modules.json": json.dumps(
        [{"type": f"sentence_transformers.models.{each}", "path": path}
         for each, path in (("StaticEmbedding", ""), ("Dense", "2_Dense"))])}),
        f"{NAME}: 2_Dense/pytorch_model.bin: weights in a pickle"),
    "nothing": (NAME, _files(".safetensors", ".bin"), f"{NAME}: has neither model.safetensors nor onnx/model.onnx"),
    "another graph": (NAME, _files(".safetensors", ".bin", **{"onnx/model_O3.onnx": "x"}),
        f"{NAME}: has neither model.safetensors nor onnx/model.onnx (--graph takes one of onnx/model_O3.onnx)"),
    "code": (NAME, _files(**{"config.json": json.dumps({"auto_map": {"AutoModel": "modeling_mine.X"}})}),
        f"{NAME}/config.json: auto_map: custom code, which is never run"),
    "large": (NAME, lambda repository: repository.stated_bytes.update(
        {name: 3 << 30 for name in repository.commits[repository.revisions["main"]] if name.endswith("tensors")}),
        "model.safetensors has 3,221,225,472), the limit is 2,147,483,648"),
    "name": ("people/a..b", lambda _: None, "people/a..b: no such folder, and it cannot be fetched from HUB: "),
    "folder": ("./people/none", lambda _: None, "./people/none: no such folder (a model of a hub is named owner/name"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_fetched_is_one_line(
    case: str, hub: Hub, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, change, reason = REFUSED[case]
    change(hub.add(NAME, folder))
    assert reason.replace("HUB", hub.url.removeprefix("http://")) in refused(capsys, tmp_path, name, "--id", "x")
    assert not [each for each in hub.asked if each.endswith((".safetensors", ".bin", ".py"))]


@pytest.mark.parametrize("size", ["9", None, -(10**15), 1e400])
def test_a_size_that_is_none_is_refused(size: object, hub: Hub, folder: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    hub.add(NAME, folder).stated_bytes["config_sentence_transformers.json"] = size
    assert f"lists config_sentence_transformers.json with a size of {size!r}" in refused(capsys, tmp_path)


def test_bytes_of_another_digest_than_the_hub_lists_are_refused_and_forgotten(hub: Hub, folder: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    repository = hub.add(NAME, folder)
    own = (folder / "model.safetensors").read_bytes()
    digest = hashlib.sha256(own).hexdigest()
    repository.sent[digest] = own[:-1] + bytes([own[-1] ^ 0x40])
    assert (
        f"model.safetensors came with the SHA-256 {hashlib.sha256(repository.sent[digest]).hexdigest()}, the hub "
        in (refused(capsys, tmp_path))
    )
    repository.sent[digest] = own[:-9]
    said = refused(capsys, tmp_path)
    assert "file should be of size" in said
    assert "force_download" not in said
    repository.sent.clear()
    assert import_model(NAME, "x", tmp_path / "models").parity is not None


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_hub_that_drips_is_not_waited_for(part: str, hub: Hub, folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    hub.add(NAME, folder).drips = part
    monkeypatch.setattr(sources, "PATIENCE", 0.5)
    assert "too slow to wait for" in refused(capsys, tmp_path)


def test_a_private_model_with_a_token(hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    _private(hub.add(NAME, folder))
    monkeypatch.setenv("HF_TOKEN", "other")
    assert "or a private one: the token may not read it" in refused(capsys, tmp_path)
    monkeypatch.setenv("HF_TOKEN", "secret")
    with open_source(NAME) as found:
        assert (found.folder / "modules.json").is_file()


def test_a_hub_that_cannot_be_reached(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be fetched from 127.0.0.1:9: " in refused(capsys, tmp_path)


@pytest.mark.parametrize(
    ("torch", "options", "taken"),
    [
        (True, None, {"model.safetensors"}),
        (False, None, {"onnx/model.onnx"}),
        (True, "onnx/model_O2.onnx", {"onnx/model_O2.onnx", "model.safetensors"}),
        (False, "onnx/model_O2.onnx", {"onnx/model_O2.onnx"}),
    ],
)
def test_weights_or_where_torch_is_missing_a_graph(
    torch: bool, options: str | None, taken: set[str], hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = {"onnx/model.onnx": "x", "onnx/model_O2.onnx": "x", "model.safetensors": "x", "config.json": "{}"}
    hub.add(NAME, tmp_path, **graphs)
    if not torch:
        monkeypatch.setattr(sources, "find_spec", lambda _: None)
    with open_source(NAME, options) as found:
        files = {str(path.relative_to(found.folder)) for path in found.folder.rglob("*") if path.is_file()}
    assert files == {"config.json", *taken}


def test_weights_in_parts(hub: Hub, tmp_path: Path) -> None:
    parts = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json")
    hub.add(NAME, tmp_path, **dict.fromkeys(("config.json", "other-00001-of-00001.safetensors", *parts), "{}"))
    with open_source(NAME) as found:
        assert {path.name for path in found.folder.rglob("*")} == {"config.json", *parts}


@pytest.mark.parametrize("host", ["my_hub:9000", "[::1]:9182"])
def test_a_hub_may_have_any_host(host: str) -> None:
    assert Origin(hub=host, name="a/b", revision="0" * 40).hub == host


def test_folders_of_modules_by_any_name(hub: Hub, tmp_path: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Pooling", "path": "parts/how-pooled"}]
    wanted = {"modules.json": json.dumps(modules), "parts/how-pooled/config.json": "{}", "model.safetensors": "x"}
    hub.add(NAME, tmp_path, **wanted, **{"1_Other/config.json": "{}", "1_Other/model.safetensors": "x"})
    with open_source(NAME) as found:
        files = {path.relative_to(found.folder).as_posix() for path in found.folder.rglob("*") if path.is_file()}
    assert files == {*wanted}


def test_the_id_of_a_model_that_is_given_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model").mkdir()
    found = {name: id_of(name) for name in (NAME, f"{NAME}@refs/pr/1", "my_model", "a/b/My Model/", Path("../X"))}
    assert [*found.values()] == ["tiny-static-v2", "tiny-static-v2", "my-model", "my-model", "x"]
