import os
import subprocess
import sys
from pathlib import Path

import pytest

from service import parsing
from service.errors import SettingsError
from service.settings import HASH_KEY, Settings

DIGEST = "0123456789abcdef" * 4
NO_HASHES = f"expected NAME:SHA256,NAME:SHA256, not keys themselves; `{HASH_KEY} NAME` reads a key and writes its entry"
NO_RATE = "expected a number, a slash, and second, minute or hour, such as 100/second"
NO_PRELOAD = "expected names of models, or `all` or `none` alone"
NO_ORIGIN = "expected https://host or https://host:port, with commas between them, or *"


def test_the_defaults_serve_the_published_models_on_loopback() -> None:
    settings = Settings.from_environment()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.models_dir == (Path("models"), Path("own-models"))
    # The service chooses by what is there.
    assert settings.default_similarity is settings.default_rank is settings.default_entailment is None
    assert settings.redis_url is None
    assert (settings.api_keys, settings.rate_limit, settings.cors_origins) == ({}, None, ())
    assert settings.access_log is False
    assert settings.playground is True


def test_the_environment_is_read(monkeypatch) -> None:
    for name, value, read in (
        ("port", "9000", 9000),
        ("cache_bytes", "0", 0),
        ("access_log", "true", True),
        ("playground", "false", False),
        ("api_keys", f"alice:{DIGEST}, bob:{DIGEST[::-1]}", {"alice": DIGEST, "bob": DIGEST[::-1]}),
        ("rate_limit", "600/minute", "600/minute"),
        ("cors_origins", "https://a.example, http://localhost:3000", ("https://a.example", "http://localhost:3000")),
        ("cors_origins", "HTTPS://A.example:443,http://[::1]:80,*", ("https://a.example", "http://[::1]", "*")),
        ("redis_url", "", None),  # as docker compose passes on what is not set
    ):
        monkeypatch.setenv(f"SEMBLANCE_{name.upper()}", value)
        assert getattr(Settings.from_environment(), name) == read


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("PORT", "http", "Input should be a valid integer, unable to parse string as an integer, found 'http'"),
        ("WORKERS", "65", "expected a whole number from 1 to 64, or auto, found '65'"),
        ("PROVIDERS", "tpu", "Input should be 'auto', 'cuda' or 'cpu', found 'tpu'"),
        ("REQUEST_TIMEOUT", "1e-9", "Input should be greater than or equal to 0.001, found '1e-9'"),
        ("DRAIN_SECONDS", "1e300", "Input should be less than or equal to 86400, found '1e300'"),
        ("REQUEST_TIMEOUT", "nan", "Input should be a finite number, found 'nan'"),
        *(
            ("REDIS_URL", url, parsing.REDIS_FORM)
            for url in (
                "http://u:hush@h",
                "rediss://u:hush@[h",
                "redis://:hush/x@h:6379/0",
                "redis://u:12#hush@h/0",
                "redis://h/zero",
                "redis+cluster://u:hush@h:1",
            )
        ),
        ("REDIS_URL", "redis://h/0?decode_responses=hush", f"decode_responses: {parsing.REDIS_OPTIONS}"),
        ("REDIS_URL", "rediss://h?ssl_cert_reqs=hush", f"ssl_cert_reqs: {parsing.REDIS_OPTIONS}"),
        ("REDIS_URL", "redis://h?ssl_ca_certs=hush", f"ssl_ca_certs: {parsing.REDIS_OPTIONS}"),
        ("REDIS_URL", "unix:///hush?db=hush", f"db: {parsing.REDIS_OPTIONS}"),
        ("REDIS_SECRET", "hush", "expected at least 16 characters, such as from `openssl rand -hex 32`"),
        ("API_KEYS", "hush", NO_HASHES),
        ("API_KEYS", f"alice:{DIGEST},hush", NO_HASHES),
        ("API_KEYS", f"al ice:{DIGEST}", NO_HASHES),
        ("API_KEYS", f"alice:{DIGEST},alice:{DIGEST}", "each key has a name of its own"),
        ("API_KEYS", ", ,", "expected entries with commas between them, found none"),
        ("MODELS", ",", "expected entries with commas between them, found none, found ','"),
        ("MODELS", "avg,Avg", "String should match pattern '^[a-z0-9][a-z0-9-]{0,63}$', found 'Avg'"),
        ("MODEL_ALIASES", "a=b,a=c", "expected NAME=MODEL,NAME=MODEL, each name once, found 'a=b,a=c'"),
        ("PRELOAD", "none,minilm", f"{NO_PRELOAD}, found 'none,minilm'"),
        ("RATE_LIMIT", "0/second", f"{NO_RATE}, found '0/second'"),
        ("RATE_LIMIT", "1/week", f"{NO_RATE}, found '1/week'"),
        ("CORS_ORIGINS", "https://*.example", f"{NO_ORIGIN}, found 'https://*.example'"),
        ("CORS_ORIGINS", "https://\xe4.example", f"{NO_ORIGIN}, found 'https://\xe4.example'"),
        ("CORS_ORIGINS", "https://a.example/path", f"{NO_ORIGIN}, found 'https://a.example/path'"),
    ],
)
def test_what_does_not_fit_is_one_line(monkeypatch, name: str, value: str, problem: str) -> None:
    monkeypatch.setenv(f"SEMBLANCE_{name}", value)
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment()
    assert str(caught.value) == f"SEMBLANCE_{name}: {problem}"


def test_every_mistake_has_its_line(monkeypatch) -> None:
    monkeypatch.setenv("SEMBLANCE_PORT", "x")
    monkeypatch.setenv("SEMBLANCE_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment()
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "SEMBLANCE_PORT",
        "SEMBLANCE_LOG_LEVEL",
    ]


def test_secrets_are_not_shown() -> None:
    settings = Settings(redis_url="redis://user:hush@cache.local:6380/1", api_keys={"alice": DIGEST})  # type: ignore[arg-type]
    assert "hush" not in repr(settings)
    assert DIGEST not in repr(settings)
    assert settings.redis_address == "cache.local:6380/1"


def test_importing_reads_no_environment_no_torch_and_no_redis() -> None:
    """The whole application in a process of its own: half the service image would be torch."""
    program = (
        "import os, sys\n"
        "os.environ['SEMBLANCE_PORT'] = 'nonsense'\n"
        "import service.__main__, service.app\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not found & {'torch', 'training', 'onnx', 'sentence_transformers', 'redis'}, found\n"
        "assert {'onnxruntime', 'core', 'fastapi'} <= found\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_several_folders_of_models_have_the_systems_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLANCE_MODELS_DIR", f"a{os.pathsep}b/c")
    assert Settings.from_environment().models_dir == (Path("a"), Path("b/c"))
    monkeypatch.setenv("SEMBLANCE_MODELS_DIR", os.pathsep)
    with pytest.raises(SettingsError, match="SEMBLANCE_MODELS_DIR: expected a folder"):
        Settings.from_environment()
