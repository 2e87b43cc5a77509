"""What a model is made to expect that its work takes."""

from service.engine.batcher import Cost
from tests.harness.service import Client


def unmeasured(client: Client) -> None:
    """Keep the pace that is expected of a machine on which nothing was measured, however busy this one is."""
    client.app.service.queue.admissions.pace.record = lambda *_: None  # type: ignore[method-assign]


def costs(client: Client, model: str, seconds: float) -> list[int]:
    """Make a model expect so much of each text or pair, whatever its length; the batches that its graphs run."""
    scorer = client.app.service.registry[model].scorer
    ran: list[int] = []
    found = scorer.outputs.values() if hasattr(scorer, "outputs") else [scorer.embeddings]
    for vectors in found:
        vectors.batcher.cost = Cost(0.0, 0.0, per_item=seconds)
    scorer.seconds_per_new_pair = seconds
    for graph in scorer.graphs.values():
        graph.run = lambda feeds, run=graph.run: ran.append(1) or run(feeds)
    return ran


def pace(client: Client, model: str, seconds: float) -> None:
    """Make a model expect that it reads a character of new text in so many seconds."""
    client.app.service.registry[model].scorer._cost.tokenising = seconds
