"""Request bodies of the load tests, as files: warm ones recur within the cache size, cold ones do not.

A cold load cycles through more distinct sentences and pairs than the service caches, so that an LRU cache never hits
but still stores and evicts. Each load continues where the previous one stopped.
"""

import http.client
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sentences import sentences

CACHE_BYTES = 48 * 1_048_576  # cache budget of the service
PAIR_BYTES, SCORE_BYTES = 5_500, 700  # bytes cached for a pair with its vectors and texts; for its score alone
# Distinct pairs or candidates of a cold load: their scores alone are more than the cache holds.
COLD_ITEMS = 120_000
WARM_BODIES = {1: 500, 64: 20}  # pairs of a body -> bodies
WARM_ITEMS = 8_000  # pairs, for larger bodies

Shape = Callable[[Sequence[str]], dict[str, object]]


def pairs(texts: Sequence[str]) -> dict[str, object]:
    """A body of our `/similarity`."""
    return {"pairs": [{"a": a, "b": b} for a, b in zip(texts[::2], texts[1::2], strict=True)]}


def embeddings(texts: Sequence[str]) -> dict[str, object]:
    """A body of OpenAI's `/embeddings`, for infinity; base64 gives the smallest answers."""
    return {"model": "minilm", "input": list(texts), "encoding_format": "base64"}


def candidates(texts: Sequence[str]) -> dict[str, object]:
    """A body of our `/rank`: the first text is the query."""
    return {"query": texts[0], "candidates": list(texts[1:])}


@dataclass
class Load:
    """Bodies in a file, one a line, and the position of the next one."""

    path: Path
    bodies: list[bytes]
    warm: bool
    position: int = 0

    def sent(self, count: int) -> None:
        """Advance the position by `count` bodies."""
        self.position = (self.position + count) % len(self.bodies)

    def upcoming(self) -> list[bytes]:
        """All bodies, the next one first."""
        return self.bodies[self.position :] + self.bodies[: self.position]


def write(folder: Path, name: str, shape: Shape, items: int, *, warm: bool, seed: int) -> Load:
    """Write the bodies of a load.

    Args:
        folder: of the file.
        name: of the file, without suffix.
        shape: makes a body from texts.
        items: pairs, or candidates, a body.
        warm: whether they fit into the cache.
        seed: of the sentences.
    """
    each = items + 1 if shape is candidates else 2 * items
    count = WARM_BODIES.get(items, max(1, WARM_ITEMS // items)) if warm else -(-COLD_ITEMS // items)
    texts = sentences(count * each, seed)
    bodies = [json.dumps(shape(texts[i : i + each])).encode() for i in range(0, len(texts), each)]
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"\n".join(bodies) + b"\n")
    return Load(path, bodies, warm)


def ask_once(port: int, path: str, bodies: Sequence[bytes]) -> None:
    """Send every body once, to fill the caches.

    Raises:
        RuntimeError: an answer was not a 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for body in bodies:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path} answered {answer.status}: {content[:300]!r}")
    finally:
        connection.close()
