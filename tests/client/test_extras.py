"""What the base install can do, and what it says of the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_repository import imports

ROOT = Path(__file__).parents[2]


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
    assert done.stdout == f"the client needs {package}, which is not installed: pip install 'semblance[cli]'\n"


@pytest.mark.parametrize("package", ["typer", "rich", "httpx"])
def test_a_command_line_without_its_packages_says_what_to_install(package: str) -> None:
    done = python("from semblance.__main__ import main; sys.exit(main())", package)
    assert done.returncode == 2
    assert done.stderr == (
        f"semblance: the command line needs {package}, which is not installed: pip install 'semblance[cli]'\n"
    )


def test_imports_go_one_way() -> None:
    of_client = {name for name, _ in imports("semblance")}
    assert not of_client & {"torch", "training", "contract", "onnxruntime", "fastapi"}
    for package in ("contract", "service", "training"):
        assert "semblance" not in {name for name, _ in imports(package)}


def test_there_are_no_other_names() -> None:
    import semblance

    with pytest.raises(AttributeError, match="no attribute 'Cleint'"):
        _ = semblance.Cleint
