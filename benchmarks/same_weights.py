"""all-MiniLM-L6-v2 served by infinity and by us: the same weights, texts, requests and cores.

    python3 -m venv /somewhere/infinity       # versions that infinity-emb 0.0.78 works with
    /somewhere/infinity/bin/pip install "infinity-emb[torch,server]==0.0.78" "transformers<4.50" "click<8.2"
    python benchmarks/same_weights.py --infinity /somewhere/infinity/bin/infinity_emb

A pair is two new sentences; nothing is cached on either side. Both answer the same body of OpenAI's `/embeddings`, one
request after the other; ours also answers the same pairs at `/similarity`. The servers take turns within each round,
so that other work on the machine meets both; CPU seconds of the server's processes per pair depend on it less than
wall time does. On a busy machine give one core (`--cpus 0`): there two threads of torch spend CPU on waiting for each
other. infinity runs torch in float32, with a thread for each core; a first round is not counted.
"""

import argparse
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.minilm_folder import folder  # noqa: E402 - the repository is not installed
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402
from benchmarks.sentences import sentences  # noqa: E402
from benchmarks.servers import Server, Service, free_port  # noqa: E402

MODEL = "minilm"
PAIRS = {1: 20, 64: 2}  # pairs of a request -> requests of a round
INFINITY, EMBED, SIMILARITY = "infinity /embeddings", "ours /v1/embeddings", "ours /similarity"


class Infinity(Server):
    """infinity on a free port."""

    def is_ready(self) -> bool:
        """Whether its model answers."""
        return self.get("/health")[0] == 200


def bodies(route: str, pairs: int, texts: list[str]) -> bytes:
    """A request of a route for these texts, two for each pair."""
    if route == SIMILARITY:
        both = zip(texts[::2], texts[1::2], strict=True)
        return json.dumps({"model": MODEL, "pairs": [{"a": a, "b": b} for a, b in both]}).encode()
    return json.dumps({"model": MODEL, "input": texts}).encode()


def ask(server: Server, path: str, body: bytes) -> None:
    """POST; raises OSError for anything but an answer."""
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(server.url + path, body, headers), timeout=120) as response:
        response.read()


def measure(servers: Mapping[str, tuple[Server, str]], rounds: int) -> list[dict[str, object]]:
    """CPU and wall seconds of each round, route and size; the servers take turns."""
    found: list[dict[str, object]] = []
    for round_ in range(rounds + 1):  # the first one warms up
        for size, requests in PAIRS.items():
            texts = sentences(2 * size * requests, seed=1000 * round_ + size)
            parts = [texts[i : i + 2 * size] for i in range(0, len(texts), 2 * size)]
            for route, (server, path) in servers.items():
                asked = [bodies(route, size, part) for part in parts]
                server.settled()
                cpu, start = server.cpu_seconds(), time.perf_counter()
                for body in asked:
                    ask(server, path, body)
                wall = time.perf_counter() - start
                server.settled()
                spent = server.cpu_seconds() - cpu
                if round_:
                    row = {"round": round_, "route": route, "pairs": size, "count": size * requests}
                    found.append({**row, "cpu": spent, "wall": wall})
                    print(found[-1], file=sys.stderr, flush=True)
    return found


def lines_of(rows: list[dict[str, object]]) -> list[str]:
    """A table: medians over the rounds, and the medians of the ratios within a round."""
    cells = {(r["round"], r["route"], r["pairs"]): r for r in rows}
    rounds = sorted({int(str(r["round"])) for r in rows})
    lines = []
    for size in PAIRS:
        for route in dict.fromkeys(str(r["route"]) for r in rows):
            own = [cells[i, route, size] for i in rounds]
            per = {k: [1e3 * float(str(r[k])) / float(str(r["count"])) for r in own] for k in ("cpu", "wall")}
            peer = {
                k: [
                    1e3 * float(str(cells[i, INFINITY, size][k])) / float(str(cells[i, INFINITY, size]["count"]))
                    for i in rounds
                ]
                for k in ("cpu", "wall")
            }
            ratio = {k: statistics.median(p / o for p, o in zip(peer[k], per[k], strict=True)) for k in per}
            medians = [f"{statistics.median(per[k]):.2f} ms" for k in ("cpu", "wall")]
            lines.append([str(size), route, *medians, f"{ratio['cpu']:.2f}", f"{ratio['wall']:.2f}"])
    head = ["pairs a request", "who", "CPU a pair", "wall time a pair"]
    return table([*head, "times less CPU than infinity", "times faster than infinity"], lines)


def main() -> None:
    """Measure, print a table, and write the dated result, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--infinity", required=True, help="the program infinity_emb")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpus", default="0,1", help="cores of both servers, with commas between them")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    port = free_port()
    command = [options.infinity, "v2", "--model-id", str(folder()), "--served-model-name", MODEL, "--engine", "torch"]
    command += ["--device", "cpu", "--dtype", "float32", "--no-bettertransformer", "--no-model-warmup"]
    command += ["--batch-size", "64", "--host", "127.0.0.1", "--port", str(port), "--no-compile"]
    threads = {"OMP_NUM_THREADS": str(len(options.cpus.split(","))), "OMP_WAIT_POLICY": "passive"}
    quiet = {**threads, "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0", "HF_HUB_OFFLINE": "1"}
    ours: dict[str, object] = {
        "default_similarity": MODEL,
        "default_rank": MODEL,
        "models": f"{MODEL},avg-sick",
        "cache": "off",
    }
    ours |= {"request_timeout": 120, "max_queue_seconds": 120}  # a busy machine is slow, and refuses nothing
    with (
        Infinity(command, port, quiet, options.cpus) as infinity,
        Service(options.cpus, **ours) as service,
    ):
        routes = {
            INFINITY: (infinity, "/embeddings"),
            EMBED: (service, "/v1/embeddings"),
            SIMILARITY: (service, "/similarity"),
        }
        rows = measure(routes, options.rounds)
    command_line = "python benchmarks/same_weights.py --infinity infinity_emb"
    about = (
        f"`{command_line} --rounds {options.rounds} --cpus {options.cpus}`: all-MiniLM-L6-v2 by infinity (torch, "
        f"float32, batches of up to 64) and by the service, one request at a time, other work beside it. "
        f"{machine('onnxruntime', 'torch', 'uvicorn')}. Medians over rounds, and of ratios within a round."
    )
    write(options.out, "same-weights", "The same weights by infinity and by us", about, lines_of(rows), {"rows": rows})


if __name__ == "__main__":
    main()
