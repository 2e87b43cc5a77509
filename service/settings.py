"""All settings of the service, read from the environment once, in `service/__main__.py`.

`SEMBLANCE_CACHE_BYTES` sets the field `cache_bytes`. An empty variable counts as not set."""

import hashlib
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.manifest import ModelId
from service import parsing
from service.errors import SettingsError
from service.folders import usual_models

PREFIX = "SEMBLANCE_"
CLIENTS_KEY = "SEMBLANCE_API_KEY"
HASH_KEY = f"{shlex.quote(sys.executable)} -m service hash-key"  # a command, for messages
_OF_OTHER_PROGRAMS = {"SEMBLANCE_DATA", "SEMBLANCE_URL", CLIENTS_KEY}  # of training, and of the command line
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")  # of an API key
DIGEST = re.compile(r"[0-9a-f]{64}")  # of an API key: SHA-256
RATE = re.compile(r"([1-9][0-9]{0,8})/(second|minute|hour)")
# As browsers send it: small letters, a name in other letters as xn--, no port that goes without saying.
_ORIGIN = re.compile(r"(https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\]))(:[1-9][0-9]{0,4})?")
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_MOST_SECONDS = 86_400
CachePolicy = Literal["auto", "memory", "redis", "off"]
MIN_SECRET = 16  # characters

_Processes = Annotated[int | Literal["auto"], parsing.number_or_auto(64)]
_Threads = Annotated[int | Literal["auto"], parsing.number_or_auto(256)]


class Settings(BaseSettings):
    """The settings; the defaults serve the published models on loopback."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    # where to listen
    host: str = Field(default="127.0.0.1", description="address to listen on; 0.0.0.0 is every one of this machine")
    port: int = Field(
        default=8000, ge=0, le=65535, description="port to listen on; 0 is a free one, which the log names"
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=_MOST_SECONDS,
        description="after SIGTERM, how long to serve on while /health/ready says 'shutting down' (docs/operating.md)",
    )
    shutdown_grace_seconds: int = Field(
        default=10,
        ge=0,
        le=_MOST_SECONDS,
        description="then, how long connections and requests in flight may take to end",
    )

    # what to serve
    models_dir: Annotated[tuple[Path, ...], NoDecode, parsing.folders()] = Field(
        default_factory=usual_models,
        description="folders of models (docs/models.md), with a colon between them; `models`, else a wheel's own, and "
        "`own-models`, which need not be there",
    )
    models: Annotated[tuple[ModelId, ...], NoDecode] = Field(
        default=(), description="serve only these: ID,ID; all without it"
    )
    preload: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="models to open before the service is ready, beside the defaults of /similarity and /rank and "
        "those that other settings name: ID,ID or all; none opens not even those",
    )
    default_similarity: str | None = Field(
        default=None,
        description="model of /similarity, /explain and /embed when none is named; without it minilm-small, or the "
        "only one that can",
    )
    default_rank: str | None = Field(
        default=None, description="model of /rank when none is named; without it as for /similarity"
    )
    default_entailment: str | None = Field(
        default=None,
        description="model of /entailment, of /classify with labels, and of /claims when none is named; without it "
        "minilm-cross, pwim-general, avg-sick, or the only one that can",
    )
    model_aliases: Annotated[dict[str, str], NoDecode] = Field(
        default={}, description="names that other services' clients send: NAME=MODEL,NAME=MODEL (docs/dialects.md)"
    )

    # how to run it
    providers: Literal["auto", "cuda", "cpu"] = Field(
        default="auto", description="auto is CUDA where this ONNX Runtime has it, and else the CPU"
    )
    cuda_memory_bytes: int = Field(
        default=0, ge=0, description="most of the GPU's memory for one graph; 0: no limit (docs/how-to/gpu.md)"
    )
    workers: _Processes = Field(
        default=1, description="processes; auto is one for each CPU that this container may use"
    )
    worker_threads: _Threads = Field(
        default="auto",
        description="graph runs of a process outside the event loop at a time; auto is its share of CPUs",
    )
    max_in_flight: int = Field(
        default=1024,
        ge=1,
        description="requests received and not yet answered; more are refused (429), but of callers below their share",
    )
    max_queue_seconds: float = Field(
        default=2.0,
        gt=0,
        le=_MOST_SECONDS,
        description="seconds that a request may be expected to wait for its turn; more is refused (429), unless its "
        "caller has no other request there",
    )
    request_timeout: float = Field(
        default=10.0,
        ge=0.001,
        le=_MOST_SECONDS,
        description="seconds a request may take, its body's arrival included, but not the opening of a model",
    )

    reproducible: bool = Field(
        default=False,
        description="whether an answer is the same to the last digit whatever is asked beside it, which takes longer; "
        "not of every model (docs/faults.md)",
    )

    # what to cache
    cache: CachePolicy = Field(
        default="auto",
        description="auto keeps them in memory, and in Redis, each where that costs less than the model",
    )
    cache_bytes: int = Field(
        default=64 * 1_048_576,
        ge=0,
        description="of all caches in a process' memory together (vectors, scores, token ids of texts); 0 keeps none",
    )
    redis_url: SecretStr | None = Field(
        default=None,
        description="redis://host:6379/0; used as `cache` says, and for the rate limit of several workers "
        "(docs/caching.md)",
    )
    redis_secret: SecretStr | None = Field(
        default=None,
        description="signs vectors in Redis; the same in all processes (docs/caching.md)",
    )
    redis_timeout_ms: int = Field(
        default=50, ge=1, le=1000 * _MOST_SECONDS, description="time for a whole exchange with Redis"
    )

    # what a request may ask
    max_body_bytes: int = Field(
        default=4 * 1_048_576, ge=1, description="of one request; enough for 10,000 candidates of 400 characters"
    )
    max_pairs: int = Field(default=256, ge=1, description="of one request; texts times labels count too")
    max_candidates: int = Field(default=10_000, ge=1, description="of one request to /rank")
    max_sentences: int = Field(default=2048, ge=1, description="of one request to /embed or /classify")

    # who may ask, and how often
    api_keys: Annotated[dict[str, str], NoDecode] = Field(
        default={},
        repr=False,
        description="NAME:SHA256,NAME:SHA256 of the keys that all routes but health require; `hash-key` makes an entry",
    )
    rate_limit: str | None = Field(
        default=None, description="requests of one key, or without keys of one address: 100/second, 600/minute, 9/hour"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="origins whose pages may ask: https://a.example,https://b.example, or * for any"
    )

    # what it shows and says
    playground: bool = Field(
        default=True, description="whether `/` is a page that asks the routes (docs/playground.md)"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least of what is logged"
    )
    access_log: bool = Field(
        default=False,
        description="whether each request is logged: route, status, model, time, name of the key; no text",
    )

    @field_validator("models", "preload", "cors_origins", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        return tuple(parsing.parts_of(value)) if isinstance(value, str) else value

    @field_validator("model_aliases", mode="before")
    @classmethod
    def _name_by_name(cls, value: object) -> object:
        return parsing.entries_of(value, "NAME=MODEL,NAME=MODEL")

    @field_validator("preload")
    @classmethod
    def _a_word_alone(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) > 1 and {parsing.ALL, parsing.NONE} & set(names):
            raise ValueError("expected names of models, or `all` or `none` alone")
        return names

    @field_validator("redis_url")
    @classmethod
    def _whole_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            parsing.redis_address(url.get_secret_value())
        return url

    @field_validator("redis_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < MIN_SECRET:
            raise ValueError(f"expected at least {MIN_SECRET} characters, such as from `openssl rand -hex 32`")
        return secret

    @field_validator("api_keys", mode="before")
    @classmethod
    def _key_by_key(cls, keys: object) -> object:
        return parsing.keys_of(keys)

    @field_validator("api_keys")
    @classmethod
    def _only_hashes(cls, keys: dict[str, str]) -> dict[str, str]:
        # The value is not quoted: it may be a key.
        if not all(NAME.fullmatch(name) and DIGEST.fullmatch(digest) for name, digest in keys.items()):
            raise ValueError(
                f"expected NAME:SHA256,NAME:SHA256, not keys themselves; `{HASH_KEY} NAME` reads a key and writes its "
                "entry"
            )
        return keys

    @field_validator("rate_limit")
    @classmethod
    def _known_rate(cls, rate: str | None) -> str | None:
        if rate is not None and not RATE.fullmatch(rate):
            raise ValueError("expected a number, a slash, and second, minute or hour, such as 100/second")
        return rate

    @field_validator("cors_origins")
    @classmethod
    def _only_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_as_sent, origins))

    @property
    def redis_address(self) -> str | None:
        """The address of Redis without credentials, for the log."""
        return None if self.redis_url is None else parsing.redis_address(self.redis_url.get_secret_value())

    @classmethod
    def from_environment(cls) -> Self:
        """Read the settings in the environment's variables.

        Raises:
            SettingsError: one line for each invalid variable.
        """
        try:
            return cls()
        except ValidationError as error:
            raise SettingsError("\n".join(parsing.lines_of(error, PREFIX))) from None

    @classmethod
    def unknown(cls, environment: Iterable[str]) -> list[str]:
        """Variables with our prefix that are not settings, probably misspelt."""
        known = {PREFIX + name.upper() for name in cls.model_fields} | _OF_OTHER_PROGRAMS
        return sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)


def _as_sent(origin: str) -> str:
    """An origin as browsers send it; raises ValueError where it is none."""
    found = _ORIGIN.fullmatch(origin.lower())
    if origin != "*" and not found:
        raise ValueError("expected https://host or https://host:port, with commas between them, or *")
    if found is None:
        return origin
    host, port = found.groups()
    return host if port in (None, _USUAL_PORTS[host.partition(":")[0]]) else host + port


SHORTEST_KEY = 16


def digest_of(key: str) -> str:
    """The hash of a key, as in the settings."""
    return hashlib.sha256(key.encode()).hexdigest()


def hash_key(name: str, key: str) -> str:
    """An entry of `SEMBLANCE_API_KEYS`.

    Args:
        name: of the key's owner, for logs.
        key: the key itself.

    Raises:
        ValueError: the name has other characters, or the key is short or does not fit into a header.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"a name is made of letters, digits, '.', '_' and '-', 64 at most; found {name!r}")
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        raise ValueError("a key travels in a header: expected printable ASCII without spaces around it")
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"a key of {len(key)} characters can be guessed; expected {SHORTEST_KEY} or more")
    return f"{name}:{digest_of(key)}"
