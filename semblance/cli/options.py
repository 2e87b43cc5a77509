"""Options that several commands share, and the client that they select."""

import inspect
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from semblance.client.clients import AsyncClient, Client
from semblance.client.retries import Retries
from semblance.errors import InvalidArgument
from semblance.tables.delimited import FileFormat

ModelsDir = Annotated[
    Path | None,
    typer.Option(help="folder of models to open here, as --local [default: SEMBLANCE_MODELS_DIR, or models]"),
]
File = Annotated[
    typer.FileText | None,
    typer.Option(encoding="utf-8", errors="surrogateescape", help="texts, one a line; - or nothing for standard input"),
]
Prefix = Annotated[str, typer.Option(help="put before the names of the new columns")]
Json = Annotated[bool, typer.Option("--json", help="print the answer as one line of JSON")]
ModelName = Annotated[str | None, typer.Option(help="who answers; see `semblance models` [default: the service's]")]
RerankModel = Annotated[str | None, typer.Option(help="a second model, which orders the best again")]
RerankTop = Annotated[int | None, typer.Option(min=1, help="how many the second model orders")]
QuoteFormulas = Annotated[
    bool, typer.Option("--quote-formulas", help="in .csv and .tsv: put an apostrophe before formulas")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace OUTPUT, and the progress of another command")]
NOT_UTF_8 = re.compile("[\udc80-\udcff]")  # the bytes that `surrogateescape` lets pass
PATIENCE = 600.0  # seconds
_TIMEOUT = 30.0  # seconds
Concurrency = Annotated[int, typer.Option(min=1, help="requests under way at once")]
Patience = Annotated[
    float, typer.Option(min=0, help="seconds to go on asking a service that refuses everything because it is busy")
]
TopK = Annotated[int | None, typer.Option(min=1, help="how many of the best to give; all without it")]


Encoding = Annotated[
    str | None, typer.Option(help="of text files, such as cp1252 or utf-16 [default: utf-8, with or without its mark]")
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="between the columns of .csv and .tsv: one character, or tab [default: what the header has]"),
]


@dataclass(frozen=True, slots=True)
class TextFile(FileFormat):
    """The options that say how text files are read."""

    encoding: Encoding = None
    delimiter: Delimiter = None


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options that select a service, or models that are opened in this process."""

    url: Annotated[
        str | None, typer.Option(envvar="SEMBLANCE_URL", help="service to ask, such as http://127.0.0.1:8000")
    ] = None
    local: Annotated[bool, typer.Option("--local", help="open the models here even if SEMBLANCE_URL is set")] = False
    models_dir: ModelsDir = None
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="SEMBLANCE_API_KEY",
            show_envvar=True,
            help="of the service; in the variable other users do not see it",
        ),
    ] = None
    timeout: Annotated[float, typer.Option(min=0.001, help="seconds to wait for an answer of a service")] = _TIMEOUT

    @property
    def is_here(self) -> bool:
        """Whether to open the models in this process; if so, silences the service's log: errors carry its messages.

        Raises:
            InvalidArgument: so it is, and an option says which service to ask, or how.
        """
        here = self.url is None or self.local or self.models_dir is not None
        if here:
            for option, given, unsaid in (
                ("--url", self.url, os.environ.get("SEMBLANCE_URL")),
                ("--api-key", self.api_key, os.environ.get("SEMBLANCE_API_KEY")),
                ("--timeout", self.timeout, _TIMEOUT),
            ):
                if given not in (None, unsaid):
                    raise InvalidArgument(f"{option} is for a service, not for models that are opened here")
            logging.getLogger("service").addHandler(logging.NullHandler())
        return here

    def client(self) -> Client:
        """What a command of one request asks: a service, or local models.

        Raises:
            SemblanceError: as of `Client` and `Client.local`.
        """
        if self.is_here:
            return Client.local(self.models_dir)
        assert self.url is not None, "without one the models are opened here"
        return Client(self.url, api_key=self.api_key, timeout=self.timeout)

    def of_batch(self, patience: float = PATIENCE) -> AsyncClient:
        """What a batch asks: a service, or local models, of which only the task's own are opened.

        A service that refuses a request because it is busy is asked again for `patience` seconds.

        Raises:
            InvalidArgument: the URL or the key is invalid.
            CannotStart: a setting, or the models folder, cannot be read.
        """
        if self.is_here:
            return AsyncClient.local(self.models_dir, whole_files=True)
        assert self.url is not None, "without one the models are opened here"
        return AsyncClient(self.url, api_key=self.api_key, timeout=self.timeout, retries=Retries.of_batch(patience))


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with a parameter for each field of its parameters that are dataclasses, such as `ServiceOptions`.

    Texts, and names of files, that are not UTF-8 are refused: no JSON has them.
    """
    whole, by_name = inspect.signature(command), inspect.Parameter.KEYWORD_ONLY
    groups: dict[str, Any] = {p.name: p.annotation for p in whole.parameters.values() if is_dataclass(p.annotation)}
    own = [p.replace(kind=by_name) for p in whole.parameters.values() if p.name not in groups]
    others = [
        inspect.Parameter(f.name, by_name, default=f.default, annotation=f.type)
        for group in groups.values()
        for f in fields(group)
    ]

    @wraps(command)
    def wrapped(**given: Any) -> None:
        for name, value in given.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str | Path) and (bad := NOT_UTF_8.search(str(text))):
                    raise typer.BadParameter(f"{name}: byte {ord(bad[0]) - 0xDC00:02X} is not UTF-8")
        made = {name: of(**{f.name: given.pop(f.name) for f in fields(of)}) for name, of in groups.items()}
        command(**made, **given)

    wrapped.__signature__ = whole.replace(parameters=[*own, *others])  # type: ignore[attr-defined]
    return wrapped
