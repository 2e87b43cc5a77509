"""Every setting of the service, typed; read from the environment once, in `service/__main__.py`.

A field `cache_size` is set by `SEMBLANCE_CACHE_SIZE`. An empty variable counts as not set.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PlainValidator, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.cache import Policy
from service.errors import SettingsError

PREFIX = "SEMBLANCE_"
CLIENTS_KEY = "SEMBLANCE_API_KEY"
_OTHERS = {"SEMBLANCE_DATA", "SEMBLANCE_URL", CLIENTS_KEY}  # of the training half, and of the command line
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")  # of an API key
DIGEST = re.compile(r"[0-9a-f]{64}")  # of an API key: SHA-256
RATE = re.compile(r"([1-9][0-9]{0,8})/(second|minute|hour)")
_ORIGIN = re.compile(r"https?://[^/?#@\s*,]+")
LATEST: Literal["latest"] = "latest"
ALL: Literal["all"] = "all"
Version = int | Literal["latest", "all"]
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_REDIS_SCHEMES = ("redis", "rediss", "unix")


def _number_or_auto(most: int) -> PlainValidator:
    """A count, or the word that leaves it to the machine; a union of types would have two lines for one mistake."""

    def read(value: object) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        if str(value).isdecimal() and 1 <= int(str(value)) <= most:
            return int(str(value))
        raise ValueError(f"expected a whole number from 1 to {most}, or auto")

    return PlainValidator(read)


_Processes = Annotated[int | Literal["auto"], _number_or_auto(64)]
_Threads = Annotated[int | Literal["auto"], _number_or_auto(256)]


class Settings(BaseSettings):
    """What an operator may choose; the defaults serve the published models on loopback."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    # where to listen; a host other than loopback is the operator's decision
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    keep_alive_seconds: int = Field(
        default=75,
        ge=1,
        description="how long a connection may wait for its next request; longer than a load balancer keeps it, which "
        "would otherwise send a request as it closes",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        description="after SIGTERM, how long to answer on while /health/ready says 'shutting down': what a load "
        "balancer needs to notice (docs/operating.md)",
    )
    shutdown_grace_seconds: int = Field(
        default=10, ge=0, description="then, how long connections and requests in flight may take to end"
    )

    # what to serve
    models_dir: Path = Path("models")
    default_similarity: str = Field(
        default="avg-paraphrase", description="model of /similarity, /explain and /embed, when none is named"
    )
    default_rank: str = "avg-paraphrase"
    default_rerank: str | None = Field(
        default=None,
        description="second model of /rank, when a request asks for a second stage and names none; "
        "without it pwim-qa, where that is among the models",
    )
    default_entailment: str = "avg-sick"
    model_versions: Annotated[dict[str, int | Literal["latest"]], NoDecode] = Field(
        default={}, description="which version a model's bare id means: ID=2,ID=latest; latest for all others"
    )
    model_versions_also: Annotated[dict[str, tuple[Version, ...]], NoDecode] = Field(
        default={},
        description="versions to serve beside, as ID@VERSION: ID=1+3,ID=latest,ID=all; each takes its model's memory",
    )
    models_poll_seconds: float = Field(
        default=0,
        ge=0,
        description="how often to look for new or changed models; 0: only when told to (docs/models.md)",
    )
    model_aliases: Annotated[dict[str, str], NoDecode] = Field(
        default={}, description="names that other services' clients send: NAME=MODEL,NAME=MODEL (docs/dialects.md)"
    )

    # how to run it
    providers: Literal["auto", "cuda", "cpu"] = "auto"
    workers: _Processes = Field(
        default=1, description="processes that share the port; auto is one for each CPU that this container may use"
    )
    worker_threads: _Threads = Field(
        default="auto",
        description="graph runs of a process outside the event loop at a time; auto is its share of CPUs",
    )
    ort_threads: _Threads = Field(
        default="auto", description="threads inside one graph run; auto is what worker_threads leaves of that share"
    )
    max_in_flight: int = Field(
        default=1024, ge=1, description="requests received and not yet answered; more are refused (429)"
    )
    max_waiting: int = Field(
        default=64, ge=0, description="large requests that may wait for a worker thread; more are refused (429)"
    )
    max_held_bytes: int = Field(
        default=256 * 1_048_576,
        ge=1,
        description="bytes of bodies that have begun to arrive and not ended; more is refused (429)",
    )
    max_queue_seconds: float = Field(
        default=2.0,
        gt=0,
        description="seconds that a request may be expected to wait for its work; more is refused (429)",
    )
    request_timeout: float = Field(
        default=10.0, gt=0, description="seconds a request may take, its body's arrival included"
    )

    # vectors kept: embeddings of sentences, and what interaction models say of pairs; docs/caching.md
    cache: Policy = Field(
        default="auto", description="auto keeps them in memory, and in Redis where that costs less than the model"
    )
    model_cache: Annotated[dict[str, Policy], NoDecode] = Field(
        default={}, description="of single models: MODEL=memory,MODEL=redis (memory too),MODEL=off"
    )
    cache_size: int = Field(default=20_000, ge=0, description="vectors kept in memory; 0 keeps none")
    redis_url: SecretStr | None = None
    redis_ttl_seconds: int = Field(default=7 * 24 * 3600, ge=1)
    redis_timeout_ms: int = Field(default=50, ge=1)
    redis_dtype: Literal["float32", "float16"] = Field(
        default="float32", description="float16 halves Redis' memory, but a score may then move in its fourth digit"
    )

    # what a request may ask
    max_body_bytes: int = Field(default=4 * 1_048_576, ge=1, description="10,000 candidates of 400 characters")
    max_pairs: int = Field(default=256, ge=1)
    max_candidates: int = Field(default=10_000, ge=1)
    max_sentences: int = Field(default=256, ge=1)
    max_text_chars: int = Field(default=100_000, ge=1)
    max_explained_tokens: int = Field(
        default=128, ge=1, description="tokens of each sentence of /explain: it scores the pair again without each"
    )

    # who may ask, and how often; docs/security.md
    api_keys: Annotated[dict[str, str], NoDecode] = Field(
        default={},
        repr=False,
        description="NAME:SHA256,NAME:SHA256 of the keys, one of which every route but health then asks for; an entry "
        "is made by `python -m service hash-key NAME`",
    )
    rate_limit: str | None = Field(
        default=None, description="requests of one key, or without keys of one address: 100/second, 600/minute, 9/hour"
    )
    rate_limit_store: Literal["auto", "memory", "redis"] = Field(
        default="auto",
        description="where requests are counted: redis is one count for all processes, memory one for each; auto is "
        "redis with several workers and a Redis, else memory",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="origins whose pages may ask: https://a.example,https://b.example, or * for any"
    )

    # what it says
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    access_log: bool = False

    @field_validator("model_aliases", mode="before")
    @classmethod
    def _name_by_name(cls, aliases: object) -> object:
        return _pairs_of(aliases, "NAME=MODEL,NAME=MODEL")

    @field_validator("model_versions", mode="before")
    @classmethod
    def _version_by_id(cls, versions: object) -> object:
        form = "ID=2,ID=latest"
        pairs = _pairs_of(versions, form)
        return pairs if not isinstance(pairs, dict) else {name: _version(v, form) for name, v in pairs.items()}

    @field_validator("model_versions_also", mode="before")
    @classmethod
    def _versions_by_id(cls, versions: object) -> object:
        form = "ID=1+3,ID=latest,ID=all"
        pairs = _pairs_of(versions, form)
        if not isinstance(pairs, dict):
            return pairs
        lists = {name: v.split("+") if isinstance(v, str) else v for name, v in pairs.items()}
        return {name: tuple(_version(part, form, ALL) for part in parts) for name, parts in lists.items()}

    @field_validator("model_cache", mode="before")
    @classmethod
    def _model_by_model(cls, policies: object) -> object:
        return _pairs_of(policies, "MODEL=POLICY,MODEL=POLICY")

    @field_validator("redis_url")
    @classmethod
    def _known_scheme(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and urlsplit(url.get_secret_value()).scheme not in _REDIS_SCHEMES:
            raise ValueError("expected redis://host:port/db, rediss://... or unix://path")
        return url

    @field_validator("api_keys", mode="before")
    @classmethod
    def _key_by_key(cls, keys: object) -> object:
        if not isinstance(keys, str):
            return keys
        entries = [entry.strip().partition(":") for entry in keys.split(",") if entry.strip()]
        if len({name for name, _, _ in entries}) != len(entries):
            raise ValueError("each key has a name of its own")
        return {name: digest for name, _, digest in entries}

    @field_validator("api_keys")
    @classmethod
    def _only_hashes(cls, keys: dict[str, str]) -> dict[str, str]:
        # What is wrong is not quoted: it may be a key.
        if not all(NAME.fullmatch(name) and DIGEST.fullmatch(digest) for name, digest in keys.items()):
            raise ValueError(
                "expected NAME:SHA256,NAME:SHA256, not keys themselves; `python -m service hash-key NAME` reads a key "
                "and writes its entry"
            )
        return keys

    @field_validator("rate_limit")
    @classmethod
    def _known_rate(cls, rate: str | None) -> str | None:
        if rate is not None and not RATE.fullmatch(rate):
            raise ValueError("expected a number, a slash, and second, minute or hour, such as 100/second")
        return rate

    @field_validator("rate_limit_store")
    @classmethod
    def _store_that_is_there(cls, store: str, others: ValidationInfo) -> str:
        if store == "redis" and others.data.get("redis_url") is None:
            raise ValueError("redis needs SEMBLANCE_REDIS_URL")
        return store

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _origin_by_origin(cls, origins: object) -> object:
        return [part.strip() for part in origins.split(",") if part.strip()] if isinstance(origins, str) else origins

    @field_validator("cors_origins")
    @classmethod
    def _only_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if not all(origin == "*" or _ORIGIN.fullmatch(origin) for origin in origins):
            raise ValueError("expected https://host or https://host:port, with commas between them, or *")
        return origins

    @property
    def redis_address(self) -> str | None:
        """Where Redis is, without credentials: safe to log."""
        if self.redis_url is None:
            return None
        parts = urlsplit(self.redis_url.get_secret_value())
        return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @classmethod
    def from_environment(cls) -> Self:
        """Read the environment.

        Raises:
            SettingsError: one line for each variable that does not fit.
        """
        try:
            return cls()
        except ValidationError as error:
            raise SettingsError("\n".join(_lines(error))) from None

    @classmethod
    def unknown(cls, environment: Iterable[str]) -> list[str]:
        """Variables with our prefix that are no setting: most likely misspelt."""
        known = {PREFIX + name.upper() for name in cls.model_fields} | _OTHERS
        return sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)


def _pairs_of(value: object, form: str) -> object:
    """A variable of `NAME=VALUE` entries as a dict; what is no text passes.

    Raises:
        ValueError: it is not of this form.
    """
    if not isinstance(value, str):
        return value
    entries = [[part.strip() for part in entry.split("=")] for entry in value.split(",") if entry.strip()]
    if not all(len(entry) == 2 and all(entry) for entry in entries):
        raise ValueError(f"expected {form}")
    return {entry[0]: entry[1] for entry in entries}


def _version(value: object, form: str, *words: str) -> object:
    """A version, or one of the words for several; what is no text passes.

    Raises:
        ValueError: it is neither.
    """
    if not isinstance(value, str) or (value := value.strip()) in (LATEST, *words):
        return value
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"expected {form}")
    return int(value)


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        name = PREFIX + "_".join(map(str, problem["loc"])).upper()
        secret = any(word in name for word in ("KEY", "URL"))
        found = "" if secret else f", found {problem['input']!r}"
        lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')}{found}")
    return lines
