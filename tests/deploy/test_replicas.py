"""The proxy before the replicas: its configuration, and what deploy/replicas.sh says where it cannot run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = (ROOT / "deploy/haproxy.cfg").read_text()


def seconds(name: str) -> int:
    (found,) = re.findall(rf"^\s*timeout {name} (\d+)s", CONFIGURATION, re.MULTILINE)
    return int(found)


def test_haproxy_reads_it() -> None:
    if shutil.which("haproxy") is None:
        pytest.skip("no haproxy here (apt-get install haproxy)")
    run = subprocess.run(
        ["haproxy", "-c", "-f", "deploy/haproxy.cfg"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_service_never_closes_first_and_is_never_given_up_first() -> None:
    settings = Settings.model_fields
    assert seconds("http-keep-alive") < settings["keep_alive_seconds"].default
    assert seconds("server") > settings["request_timeout"].default + settings["max_queue_seconds"].default
