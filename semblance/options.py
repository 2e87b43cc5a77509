"""Options that several commands share, and the client that they select."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from semblance.async_client import AsyncClient
from semblance.batch.job import Asked
from semblance.batch.local import LocalModels
from semblance.client import Client
from semblance.errors import RequestFailed
from semblance.retries import Retries

Url = Annotated[str | None, typer.Option(envvar="SEMBLANCE_URL", help="service to ask, such as http://127.0.0.1:8000")]
Local = Annotated[bool, typer.Option("--local", help="open the models here even if SEMBLANCE_URL is set")]
ModelsDir = Annotated[
    Path | None,
    typer.Option(help="folder of models to open here, as --local [default: SEMBLANCE_MODELS_DIR, or models]"),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        envvar="SEMBLANCE_API_KEY", show_envvar=True, help="of the service; in the variable other users do not see it"
    ),
]
Timeout = Annotated[float, typer.Option(min=0.001, help="seconds to wait for an answer of a service")]
Json = Annotated[bool, typer.Option("--json", help="print the answer as one line of JSON")]
ModelName = Annotated[str | None, typer.Option(help="who answers; see `semblance models` [default: the service's]")]
RerankModel = Annotated[str | None, typer.Option(help="a second model, which orders the best again")]
RerankTop = Annotated[int | None, typer.Option(min=1, help="how many the second model orders")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="begin again, and replace OUTPUT")]
Concurrency = Annotated[int, typer.Option(min=1, help="requests under way at once")]
Patience = Annotated[
    float, typer.Option(min=0, help="seconds to go on asking a service that refuses everything because it is busy")
]
TopK = Annotated[int | None, typer.Option(min=1, help="how many of the best to give; all without it")]


@contextmanager
def client_of(
    url: str | None,
    local: bool,
    models_dir: Path | None,
    api_key: str | None,
    timeout: float,
    words: Mapping[str, str] | None = None,
) -> Iterator[Client]:
    """The client that the options select, closed afterwards; its errors name what the user typed.

    `words` is field of the request -> its name on the command line; "*" stands for the number of an item.

    Raises:
        InvalidArgument: the URL or the key is invalid.
        SemblanceError: raised by the client.
    """
    if opens_models(url, local, models_dir):
        client = Client.local(models_dir)
    else:
        assert url is not None, "without one the models are opened here"
        client = Client(url, api_key=api_key, timeout=timeout)
    with client:
        try:
            yield client
        except RequestFailed as error:
            raise error.about(in_words(error, {**_OPTIONS, **(words or {})})) from None


def async_client_of(
    url: str | None, local: bool, models_dir: Path | None, api_key: str | None, timeout: float
) -> Asked:
    """Whom a batch asks: models here, of which only those asked are opened, or a service.

    The client of a service does not retry refusals, because the batch does (see `semblance/batch/pace.py`).

    Raises:
        InvalidArgument: the URL or the key is invalid.
        CannotStart: the models folder cannot be read.
    """
    if opens_models(url, local, models_dir):
        return LocalModels(models_dir)
    assert url is not None, "without one the models are opened here"
    return AsyncClient(url, api_key=api_key, timeout=timeout, retries=Retries(statuses=frozenset()))


def opens_models(url: str | None, local: bool, models_dir: Path | None) -> bool:
    """Whether to open the models in this process; if so, silences the service's log: errors carry its messages."""
    here = url is None or local or models_dir is not None
    if here:
        logging.getLogger("service").addHandler(logging.NullHandler())
    return here


def in_words(error: RequestFailed, words: Mapping[str, str]) -> str | None:
    """The name of an error's field on the command line, such as `--model` or `candidate 3`; else the field itself."""
    if error.field is None:
        return None
    if error.field in words:
        return words[error.field]
    name, _, rest = error.field.partition(".")
    if rest.isdecimal() and f"{name}.*" in words:
        return words[f"{name}.*"].format(int(rest) + 1)
    return error.field


_OPTIONS: Mapping[str, str] = {
    "model": "--model",
    "top_k": "--top-k",
    "rerank_model": "--rerank-model",
    "rerank_top": "--rerank-top",
}
