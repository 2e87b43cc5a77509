"""What the load asks: request bodies on disk, warm ones that are asked again and again, cold ones that never recur.

A cold load goes round more distinct sentences, and pairs of them, than the service keeps: a least-recently-used cache
then finds none of them, and still does all the work of keeping. Every load goes on where the one before it stopped.
"""

import http.client
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sentences import sentences

CACHE_SIZE = 20_000  # of the service under load: its default
COLD_ITEMS = CACHE_SIZE * 3 // 2  # pairs or candidates that a cold load goes round
WARM_BODIES = {1: 500, 64: 20}  # of this many pairs each
WARM_ITEMS = 8_000  # of larger bodies

Shape = Callable[[Sequence[str]], dict[str, object]]


def pairs(texts: Sequence[str]) -> dict[str, object]:
    """Our own `/similarity`."""
    return {"pairs": [{"a": a, "b": b} for a, b in zip(texts[::2], texts[1::2], strict=True)]}


def embeddings(texts: Sequence[str]) -> dict[str, object]:
    """OpenAI's `/embeddings`, as infinity answers it; base64 is the least that it can be made to write."""
    return {"model": "minilm", "input": list(texts), "encoding_format": "base64"}


def candidates(texts: Sequence[str]) -> dict[str, object]:
    """Our `/rank`: the first text is the query."""
    return {"query": texts[0], "candidates": list(texts[1:])}


@dataclass
class Load:
    """Bodies in a file, one a line, and how far they have been sent."""

    path: Path
    bodies: list[bytes]
    warm: bool
    position: int = 0

    def sent(self, count: int) -> None:
        """So many have been sent since; the next load begins after them."""
        self.position = (self.position + count) % len(self.bodies)

    def upcoming(self) -> list[bytes]:
        """All bodies, the next one first."""
        return self.bodies[self.position :] + self.bodies[: self.position]


def write(folder: Path, name: str, shape: Shape, items: int, *, warm: bool, seed: int) -> Load:
    """Make the bodies of a load.

    Args:
        folder: where the file goes.
        name: of the load, for the file's name.
        shape: what a body looks like.
        items: pairs, or candidates, a body.
        warm: few enough to be kept, or too many.
        seed: loads of other seeds have other sentences.
    """
    each = items + 1 if shape is candidates else 2 * items
    count = WARM_BODIES.get(items, max(1, WARM_ITEMS // items)) if warm else -(-COLD_ITEMS // items)
    texts = sentences(count * each, seed)
    bodies = [json.dumps(shape(texts[i : i + each])).encode() for i in range(0, len(texts), each)]
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"\n".join(bodies) + b"\n")
    return Load(path, bodies, warm)


def ask_once(port: int, path: str, bodies: Sequence[bytes]) -> None:
    """Send every body once, one after the other, so that what can be kept is kept.

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
