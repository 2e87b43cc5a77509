"""A client of the service, over HTTP or in this process; and the command line (`semblance --help`).

    from semblance import Client

    with Client("http://127.0.0.1:8000") as client:
        for result in client.similarity([("A man is playing a guitar.", "Someone plays an instrument.")]).results:
            print(result.score)

See docs/client.md.
"""

from typing import TYPE_CHECKING, Any

from semblance.extras import needs

if TYPE_CHECKING:
    from semblance.client.clients import AsyncClient, Client
    from semblance.client.faq import FAQ
    from semblance.client.retries import Retries
    from semblance.jobs.columns import scorer

__all__ = ["FAQ", "AsyncClient", "Client", "Retries", "scorer"]


def __getattr__(name: str) -> Any:
    """Import the clients on first use, so that the package itself needs only the base install."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("the client", extra="cli"):
        from semblance.client import clients, faq, retries
        from semblance.jobs import columns
    return getattr({"Retries": retries, "scorer": columns, "FAQ": faq}.get(name, clients), name)
