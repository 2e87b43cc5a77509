"""The worst bodies of each kind of request: whatever 4 MB say, the process grows by less than 100 MB.

The bodies are made of the examples in the OpenAPI document, so a new route is tried without a line here.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx

from tests.harness.process import running

MB = 1_048_576
MOST = 4_000_000  # bytes of a body
GROWN, KEPT = 100 * MB, 100 * MB  # while it is answered; after all have been
WIDE = "\U0001f600"  # four bytes in a body and, as any text that holds one, in memory
WORDS = "a man plays 3.10,3.11 guitars - "
# A table whose first column's name, or whose lines, would be repeated by each row.
TABLE = f"x\t{WIDE * 50_000}\n" + "a\tb\n" * 5500
TEXTS = {
    "one character": WIDE * (MOST // 4 - 500),
    "words": WORDS * (MOST // len(WORDS) - 20),
    "a table": TABLE,
    "headings": f"# {WIDE * 45_000}\n\n" + "a man.\n\n" * 6000,
    "list items": "- a\n" * 49_000,
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts and lists in a body."""
    if isinstance(value, str):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, list):
        yield path
    for key, each in items:
        yield from leaves(each, (*path, key))


def with_value(body: Any, path: tuple[Any, ...], change: Any) -> Any:
    """A copy of a body, with what stands at a place changed."""
    copied = {"": deepcopy(body)}
    at: Any = copied
    *steps, last = ("", *path)
    for step in steps:
        at = at[step]
    at[last] = change(at[last])
    return copied[""]


def worst(example: Any, request: str, tried: set[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Bodies of up to 4 MB, each an example with one of its texts, or one of its lists, as large as may be.

    Of the items of a list, and of several examples, that have the same texts and lists one is `tried`.
    """
    for path in leaves(example):
        place = ".".join("0" if isinstance(step, int) else step for step in path)
        if (request, place) in tried:
            continue
        tried.add((request, place))
        found = example
        for step in path:
            found = found[step]
        if isinstance(found, str):
            for name, text in TEXTS.items():
                yield f"{place}: {name}", as_json(with_value(example, path, lambda _, text=text: text))
        else:
            item = found[:1]
            size = len(as_json(item))
            for name, count in (("very many", MOST // size - 200), ("as many as pass", 1000), ("some", 60)):
                room = max(1, min(240, (MOST // count - size) // 4))
                filled = item
                for inner in leaves(item) if name != "very many" else ():
                    if is_text(item, inner):
                        filled = with_value(item, inner, lambda text, n=room: text + WIDE * n)
                yield f"{place}: {name}", as_json(with_value(example, path, lambda _, f=filled, n=count: f * n))


def is_text(value: Any, path: tuple[Any, ...]) -> bool:
    for step in path:
        value = value[step]
    return isinstance(value, str)


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()[:MOST]


def resident(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) * 1024


def test_the_worst_body_of_every_route_takes_little_memory_and_gives_it_back(models: Path) -> None:
    found: dict[str, object] = {}
    tried: set[str] = set()
    bodies: set[tuple[str, str]] = set()  # kinds of request, with the place of what is large in it
    with running(models, cache_bytes=0) as (process, url), httpx.Client(base_url=url, timeout=240) as client:
        api = client.get("/openapi.json").json()
        first = resident(process.pid, "VmRSS")
        for path, methods in api["paths"].items():
            if (body := methods.get("post", {}).get("requestBody")) is None:
                continue
            request = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            if request in tried:  # by a path of the same requests
                continue
            tried.add(request)
            for example in api["components"]["schemas"][request]["examples"]:
                for name, content in worst(example, request, bodies):
                    before = resident(process.pid, "VmRSS")
                    Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak begins anew
                    answer = client.post(path, content=content, headers={"content-type": "application/json"})
                    grown = resident(process.pid, "VmHWM") - before
                    if answer.status_code >= 500 or grown > GROWN:
                        found[f"{path} {name}"] = (answer.status_code, grown // MB)
        assert found == {}
        assert client.get("/health/live").status_code == 200
        assert resident(process.pid, "VmRSS") - first < KEPT
