"""HAProxy with the project's configuration before servers of a test."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.harness.process import ROOT
from tests.harness.service import free_port

needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="apt-get install haproxy")
CONFIGURATION = (ROOT / "deploy/haproxy.cfg").read_text()


@contextmanager
def proxy(tmp_path: Path, *ports: int, **instead: str) -> Iterator[str]:
    """The address of a proxy before servers on these ports; `instead` has other values for timeouts and limits."""
    port, file = free_port(), tmp_path / "haproxy.cfg"
    lines = "\n    ".join(f"server at{number} 127.0.0.1:{at}" for number, at in enumerate(ports))
    text = re.sub(r"^resolvers.*?\n\n", "", CONFIGURATION, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"server-template .*", lines, text).replace("bind :8000", f"bind 127.0.0.1:{port}")
    for known, value in instead.items():
        known = known.replace("__", "-") if known.startswith("timeout") else known
        known = known.replace("timeout_", "timeout ").replace("_gt", " gt")
        assert known in text, known
        text = re.sub(rf"{known} \S+", f"{known} {value}", text)
    file.write_text(text)
    with subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
