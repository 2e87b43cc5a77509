"""What README and docs show of Python and of the command line, run from an empty folder against the published models.

Each block runs as it is printed, but for the port. curl's: tests/test_readme.py; the tutorial's: test_tutorial.py.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from semblance.client.clients import Client
from semblance.jobs.batch.tasks import DEFAULT_COLUMNS, BatchOptions, make_task
from semblance.types import Models
from tests.harness.commands import Run
from tests.harness.process import running

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    (page.relative_to(ROOT).as_posix(), language, block)
    for page in PAGES
    for language, block in re.findall(
        r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
]
SECURITY = [block for page, language, block in BLOCKS if (page, language) == ("docs/security.md", "sh")]
PAGE = (ROOT / "docs/client.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |^```)", PAGE, flags=re.DOTALL | re.MULTILINE)
BATCHES = re.findall(r"^semblance (batch .*)$", PAGE, flags=re.MULTILINE)
README = (ROOT / "README.md").read_text(encoding="utf-8")
OF_PAPERS = {  # pages of networks, each with a command that scores a pair
    page: line for page, _, block in BLOCKS for line in re.findall(r"^semblance score .*", block) if "/papers/" in page
}

pytestmark = pytest.mark.artifacts


@pytest.fixture(scope="module")
def served(published: str) -> Models:
    with Client(published) as client:
        return client.models()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing but the models, to be in."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_example_is_run() -> None:
    """Those in Python and of `semblance` are counted by page, so that a new one is not forgotten here."""
    assert (len(SNIPPETS), len(COMMANDS), len(BATCHES)) == (1, 2, 4)
    python = [page for page, language, _ in BLOCKS if language == "python"]
    # Those of dialects.md: tests/dialects/test_clients.py; of engines.md: test_engines.py; of integrations.md:
    # tests/dialects/test_integrations.py; that of faq.md:
    # test_faq_page.py.
    assert python == [
        "README.md", "docs/client.md", *["docs/dialects.md"] * 4, *["docs/engines.md"] * 4,
        "docs/faq.md", *["docs/integrations.md"] * 6,
    ]  # fmt: skip
    ours = [
        page
        for page, _, block in BLOCKS
        if re.search(r"^(?:\$ |\.venv-serve/bin/)?semblance ", block, flags=re.MULTILINE)
    ]
    # README's are those of the tutorial and of client.md; the others: tests/workbench/imports, tests/test_packages.py,
    # and test_claims.py, test_threshold.py, test_choose.py and test_tutorial.py.
    assert ours == [
        *["README.md"] * 2,
        "docs/claims.md",
        *["docs/client.md"] * 2,
        *(f"docs/{page}.md" for page in ("faq", "how-to/other-languages", "packages")),
        *OF_PAPERS,
        *(f"docs/{page}.md" for page in ("threshold", *["tutorial"] * 3)),
    ]


def test_a_key_is_made_as_documented_and_lets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    make, ask = SECURITY
    serve = re.findall(r'^(SEMBLANCE_API_KEYS="\$entry") make serve', make, flags=re.MULTILINE)
    assert serve
    script = re.sub(r"^SEMBLANCE_API_KEYS=.*", "", make, flags=re.MULTILINE)
    script = script.replace(".venv-serve/bin/python", shlex.quote(sys.executable))
    done = subprocess.run(["bash", "-eu"], cwd=ROOT, input=script, capture_output=True, text=True, check=True)
    key, entry = done.stdout.splitlines()
    assert entry in make.replace("9f86d081884c7d65...", entry.partition(":")[2])
    with running(ROOT / "models", models="avg-paraphrase", api_keys=entry) as (_, url):
        _, where, _, header = shlex.split(ask.replace("127.0.0.1:8000", url).replace("$key", key))
        name, _, value = header.partition(": ")
        assert httpx.get(where, headers={name: value}).status_code == 200
        assert httpx.get(where).status_code == 401


@pytest.mark.parametrize(("code", "printed"), SNIPPETS, ids=["client"])
def test_a_snippet_prints_what_it_says(code: str, printed: str, printed_by: Callable[[str], str], empty: Path) -> None:
    assert printed_by(code) == printed


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=["score", "rank"])
def test_a_command_prints_what_it_says(
    command: str, printed: str, published: str, semblance: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMBLANCE_URL", published)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir("/")
    program, *arguments = shlex.split(command)
    assert program == "semblance"
    code, out, err = semblance(*arguments)
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == printed.splitlines()


@pytest.mark.parametrize("command", OF_PAPERS.values(), ids=OF_PAPERS)
def test_the_network_of_a_page_scores_its_pair(command: str, published: str, semblance: Run) -> None:
    code, out, err = semblance(*shlex.split(command)[1:], "--url", published)
    assert (code, err) == (0, "")
    assert re.search(r"\d\.\d", out)


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
    model = "minilm-cross" if task in ("paraphrase", "relevance") else None  # the defaults have neither
    made = make_task(BatchOptions(task, DEFAULT_COLUMNS[task], model), served)
    assert re.findall(r"`(\w+)`", reads) == list(made.columns)
    assert re.findall(r"`(\w+)`", adds) == list(made.adds)


def test_the_readme_shows_the_client(printed_by: Callable[[str], str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert printed_by(code) == "1\n"
