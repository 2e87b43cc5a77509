"""What the base install can do, and what it says of the rest."""

import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from semblance.extras import DISTRIBUTION, install_command
from tests.harness.imports import imports

ROOT = Path(__file__).parents[3]


def python(code: str, *missing: str) -> subprocess.CompletedProcess[str]:
    """Run code where these packages are not installed."""
    absent = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
    return subprocess.run([sys.executable, "-c", absent + code], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_package_alone_loads_nothing() -> None:
    done = python("import semblance, sys; print(sorted({'httpx', 'typer', 'torch', 'onnxruntime'} & set(sys.modules)))")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_client_alone_loads_no_service() -> None:
    done = python(
        "from semblance import Client; Client('http://host').close(); import sys\n"
        "print(sorted({'typer', 'torch', 'training', 'service', 'onnxruntime', 'pyarrow'} & set(sys.modules)))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("package", ["httpx", "tenacity"])
def test_a_client_without_its_packages_says_what_to_install(package: str) -> None:
    done = python("import semblance\ntry: semblance.Client\nexcept ImportError as error: print(error)", package)
    assert done.stdout == f"the client needs {package}, which is not installed: {install_command('cli')}\n"


@pytest.mark.parametrize(
    ("arguments", "package", "what", "extra"),
    [
        *([[], package, "the command line", "cli"] for package in ("typer", "rich", "httpx")),
        (["tune", "x.csv"], "torch", "tuning", "training"),
        (["import", "x/y"], "huggingface_hub", "importing", "import"),
    ],
    ids=["typer", "rich", "httpx", "torch", "huggingface_hub"],
)
def test_a_command_without_its_packages_says_what_to_install(
    arguments: list[str], package: str, what: str, extra: str
) -> None:
    done = python(f"from semblance.__main__ import main; sys.argv[1:] = {arguments}; sys.exit(main())", package)
    needs = f"semblance: {what} needs {package}, which is not installed: {install_command(extra)}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", needs)


def test_what_to_install_is_what_works_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed distribution by its name, whose extras pip knows without an index; a checkout by its folder."""
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    monkeypatch.setattr(metadata, "version", lambda name: "1")
    assert install_command("parquet") == f"{pip} '{DISTRIBUTION}[parquet]'"

    def unknown(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    monkeypatch.chdir(tmp_path)
    assert install_command("parquet") == f"{pip} {shlex.quote(f'{ROOT}[parquet]')}"
    monkeypatch.chdir(ROOT)
    assert install_command("parquet") == f"{pip} '.[parquet]'"


def test_nothing_heavy_is_imported() -> None:
    assert not {name for name, _ in imports("semblance")} & {"torch", "sklearn", "onnxruntime", "fastapi"}


def test_the_workbench_is_imported_when_it_is_called() -> None:
    done = python("import semblance.cli.app, sys; print('workbench' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")
