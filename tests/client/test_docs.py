"""docs/client.md and the README's lines about the client, run against the published models."""

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from semblance.batch.tasks import DEFAULT_COLUMNS, Options, make_task
from semblance.client import Client
from semblance.types import Models
from tests.client.alike import assert_alike
from tests.client.conftest import Run
from tests.service.test_process import running

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/client.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |^```)", PAGE, flags=re.DOTALL | re.MULTILINE)
BATCHES = re.findall(r"^semblance (batch .*)$", PAGE, flags=re.MULTILINE)
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.artifacts


@pytest.fixture(scope="module")
def published() -> Iterator[str]:
    """A service of the published models."""
    with running(ROOT / "models") as (_, address):
        yield address


@pytest.fixture(scope="module")
def served(published: str) -> Models:
    with Client(published) as client:
        return client.models()


def printed_by(code: str, url: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code.replace("http://127.0.0.1:8000", url), "snippet", "exec"), {})
    return out.getvalue()


def test_the_page_has_them() -> None:
    assert (len(SNIPPETS), len(COMMANDS), len(BATCHES)) == (3, 4, 4)
    assert PAGE.count("```python") == len(SNIPPETS)


@pytest.mark.parametrize(("code", "printed"), SNIPPETS, ids=["client", "async", "local"])
def test_a_snippet_prints_what_it_says(
    code: str, printed: str, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert printed_by(code, published) == printed


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=["score", "entail", "rank", "explain"])
def test_a_command_prints_what_it_says(
    command: str, printed: str, published: str, semblance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMBLANCE_URL", published)
    monkeypatch.setenv("COLUMNS", "120")
    program, *arguments = shlex.split(command)
    assert program == "semblance"
    code, out, err = semblance(*arguments)
    assert (code, err) == (0, "")
    if "--json" in arguments:
        assert_alike(json.loads(out), json.loads(printed))
    else:
        assert [line.rstrip() for line in out.splitlines()] == printed.splitlines()


@pytest.mark.parametrize("command", BATCHES)
def test_a_batch_reads_what_it_says(
    command: str, published: str, semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, source, output, *options = shlex.split(command)
    task = options[options.index("--task") + 1] if "--task" in options else "similarity"
    columns = [options[i + 1] for i, option in enumerate(options) if option == "--column"] or DEFAULT_COLUMNS[task]
    row: dict[str, object] = dict.fromkeys(columns, "A man plays guitar.")
    if task == "rank":
        row["candidates"] = ["A dog.", "Guitars."]
    if source.endswith(".csv"):
        Path(source).write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    else:
        Path(source).write_text(json.dumps(row) + "\n")
    assert semblance(*shlex.split(command), "--url", published).code == 0
    assert Path(output).stat().st_size


@pytest.mark.parametrize("task", DEFAULT_COLUMNS)
def test_the_table_of_tasks_names_every_column(task: str, served: Models) -> None:
    (reads, adds) = re.findall(rf"^\| `{task}` \| (.*?) \| (.*?) \|$", PAGE, flags=re.MULTILINE)[0]
    made = make_task(Options(task, DEFAULT_COLUMNS[task]), served)
    assert re.findall(r"`(\w+)`", reads) == list(made.columns)
    assert re.findall(r"`(\w+)`", adds) == list(made.adds)


def test_the_readme_shows_the_client(published: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert printed_by(code, published) == "1\n"


def test_the_readme_shows_the_command_line(published: str, semblance: Run) -> None:
    ((command, printed),) = re.findall(r"```console\n\$ (semblance .*?)\n(.*?)```", README, flags=re.DOTALL)
    code, out, _ = semblance(*shlex.split(command)[1:], "--url", published)
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == printed.splitlines()
