"""The proxy before the replicas: its configuration, and what deploy/replicas.sh says where it cannot run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = (ROOT / "deploy/haproxy.cfg").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


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


def test_only_what_had_no_answer_yet_is_sent_again() -> None:
    (retried,) = re.findall(r"retry-on (.*)", CONFIGURATION)
    assert set(retried.split()) == {"conn-failure", "empty-response"}


def test_the_profile_has_as_many_replicas_as_the_proxy_expects() -> None:
    replica, proxy = COMPOSE["replica"], COMPOSE["proxy"]
    assert replica["profiles"] == proxy["profiles"] == ["replicas"]
    (count, name, port) = re.findall(r"server-template \S+ (\d+) (\w+):(\d+)", CONFIGURATION)[0]
    assert (int(count), name, port) == (replica["deploy"]["replicas"], "replica", "8000")
    assert replica["ports"] == []
    assert {name for name in COMPOSE["api"] if COMPOSE["api"][name] != replica[name]} == {"ports"}
    assert proxy["volumes"] == ["./deploy/haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro"]


def test_a_machine_without_haproxy_is_told(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/ensure.sh").write_text('echo "SKIPPED: $3"; exit 1\n')
    run = subprocess.run(["bash", "deploy/replicas.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "NOT RUN: two replicas behind a proxy" in run.stdout
